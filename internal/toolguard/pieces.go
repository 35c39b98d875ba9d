package toolguard

import "strings"

// newline is the length of a newline at i, or 0.
func newline(s string, i int) int {
	switch {
	case i < len(s) && s[i] == '\n':
		return 1
	case i+1 < len(s) && s[i] == '\r' && s[i+1] == '\n':
		return 2
	}
	return 0
}

// firstWord says whether what follows a text is a command's first word.
func firstWord(before string) bool {
	before = strings.TrimRight(before, " \t\"")
	return before == "" || strings.IndexByte("\n;&|(){", before[len(before)-1]) >= 0
}

// glue gives the place of the quote that goes on with a text that ends at i, as in 'a' + 'b', or 0.
func glue(s string, i int) int {
	j := i + 1
	for j < len(s) && s[j] == ' ' {
		j++
	}
	if j >= len(s) || s[j] != '+' {
		return 0
	}
	for j++; j < len(s) && s[j] == ' '; j++ {
	}
	if j < len(s) && (s[j] == '\'' || s[j] == '"') {
		return j
	}
	return 0
}

// joins gives the end of the variable of cmd's that begins at i, and says whether it stands beside something else without a blank, but for quotes
// and carets: both may be parts of one name.
func joins(s string, i int) (end int, glued bool) {
	n := strings.IndexAny(s[i+1:min(len(s), i+80)], "%! \t\r\n")
	if n <= 0 || s[i+1+n] != s[i] {
		return i + 1, false // none begins here
	}
	end = i + n + 2
	before, after := i, end
	for before > 0 && (s[before-1] == '"' || s[before-1] == '^' || before > 1 && (s[before-1] == '\n' || s[before-1] == '\r') && (s[before-2] == '^' || s[before-2] == '\r')) {
		before--
	}
	for after < len(s) && (s[after] == '"' || s[after] == '^') {
		after++
	}
	part := func(b byte) bool { return lower[b] != 0 || b == '%' || b == '!' }
	return end, before > 0 && part(s[before-1]) || after < len(s) && (part(s[after]) || s[after] == ':')
}

// driveRoot says whether what follows a drive's colon is nothing but its root.
func driveRoot(s string) bool {
	s = strings.TrimLeft(s, `/\`)
	return s == "" || lower[s[0]] == 0
}

// maxFunctions bounds the functions of a text that twice looks at.
const maxFunctions = 32

// twice says whether the function that begins at i may name itself again, twice.
func twice(s string, i int) bool {
	from := i
	for from > 0 && (s[from-1] == ' ' || s[from-1] == '\t') {
		from--
	}
	i = from
	for from > 0 && strings.IndexByte(" \t\n;&|(){}'\"", s[from-1]) < 0 {
		from--
	}
	name := s[from:i]
	return name == "" || strings.Count(s[i:], name) >= 2
}

// pieced says whether the variable at i stands beside something else without a blank, but for quotes: both may be parts of one name.
// Backslashes are looked through where they are escapes.
func pieced(s string, i int, escapes bool) bool {
	part := func(b byte) bool { return lower[b] != 0 || b == '}' || b == '`' || b == '$' }
	j := i
	for j > 0 && (s[j-1] == '"' || s[j-1] == '\'' || escapes && (s[j-1] == '\\' || j > 1 && (s[j-1] == '\n' || s[j-1] == '\r') && (s[j-2] == '\\' || s[j-2] == '\r'))) {
		j--
	}
	if j > 0 && part(s[j-1]) {
		return true
	}
	if j = i + 1; j < len(s) && s[j] == '(' {
		n := strings.IndexByte(s[j:min(len(s), j+200)], ')')
		if n < 0 {
			return true
		}
		for j += n; j < len(s) && s[j] == ')'; {
			j++
		}
	} else if j < len(s) && s[j] == '{' {
		n := strings.IndexByte(s[j:min(len(s), j+200)], '}')
		if n < 0 {
			return true
		}
		j += n + 1
	}
	for j < len(s) && lower[s[j]] != 0 && s[j] != '-' && s[i+1] != '{' && s[i+1] != '(' {
		j++
	}
	for j < len(s) && (s[j] == '"' || s[j] == '\'' || escapes && (s[j] == '\\' || newline(s, j) > 0 && s[j-1] == '\\')) {
		j += max(1, newline(s, j))
	}
	return j < len(s) && part(s[j])
}

// braced says whether braces at i are expanded into parts of names.
func braced(s string, i int) bool {
	n := strings.IndexAny(s[i+1:min(len(s), i+200)], "} \t\n")
	if n < 0 {
		return len(s) > i+200
	}
	if s[i+1+n] == '\n' && s[i+n] == '\\' {
		return true
	}
	if s[i+1+n] != '}' || !strings.Contains(s[i:i+n+1], ",") && !strings.Contains(s[i:i+n+1], "..") {
		return false
	}
	beside := func(b byte) bool { return lower[b] != 0 || strings.IndexByte("{}\"'\\$", b) >= 0 }
	return i > 0 && beside(s[i-1]) || i+n+2 < len(s) && (beside(s[i+n+2]) || s[i+n+2] == '/')
}

// amsi says whether these letters stand somewhere, in whatever case.
func amsi(s string) bool {
	for i := 3; i < len(s); i++ {
		if lower[s[i]] == 'i' && lower[s[i-1]] == 's' && lower[s[i-2]] == 'm' && lower[s[i-3]] == 'a' {
			return true
		}
	}
	return false
}
