package toolguard

import (
	"slices"
	"strings"
)

// leastWorth is the length from which on it is worth looking which parts of a text are to be read.
const leastWorth = 512

// worth gives the parts of a shell's text in which rules may find something: those that are not calm, those that use variables which the text
// sets, and those that set these. The others neither hold anything nor change what is held in these.
func worth(calm *calm, text string) string {
	if calm == nil || len(text) < leastWorth {
		return text
	}
	parts := partsPOSIX(text)
	if len(parts) < 2 {
		return text
	}
	set := map[string]bool{"HOME": false} // names, and whether they are used; the parser knows this one
	for _, p := range parts {
		if !assigned(p, func(name string) { set[name] = false }) {
			return text
		}
	}
	keep := make([]bool, len(parts))
	functions, moved := declared(text), false
	if len(functions) > maxFunctions {
		return text
	}
	for i, p := range parts {
		uses := false
		used(p, func(name string) {
			if _, ok := set[name]; ok {
				set[name], uses = true, true
			}
		})
		moved = moved || moves(p) // what stands behind it may mean other paths
		keep[i] = uses || moved || !calm.text(POSIX, p) || slices.ContainsFunc(functions, func(name string) bool { return strings.Contains(p, name) })
	}
	var b strings.Builder
	for i, p := range parts {
		if !keep[i] {
			assigned(p, func(name string) { keep[i] = keep[i] || set[name] })
		}
		if keep[i] {
			b.WriteString(p)
		}
	}
	return b.String()
}

// moves says whether a part may go to a directory that is not below the one before.
func moves(text string) bool {
	for _, name := range []string{"cd", "pushd"} {
		for rest := text; ; {
			var ok bool
			if _, rest, ok = strings.Cut(rest, name); !ok {
				break
			}
			to := strings.TrimLeft(rest, " \t")
			if to == "" || len(to) < len(rest) && strings.IndexByte("/~\"'$\\`-\n;&|)", to[0]) >= 0 || strings.IndexByte("\"'\\\n;&|)", rest[0]) >= 0 {
				return true
			}
		}
	}
	return false
}

// declared are the names of a text's functions.
func declared(text string) (names []string) {
	for at := 0; len(names) <= maxFunctions; {
		n := strings.IndexByte(text[at:], '(')
		if n < 0 {
			break
		}
		at += n + 1
		if strings.HasPrefix(strings.TrimLeft(text[at:], " \t"), ")") {
			before := strings.TrimRight(text[:at-1], " \t")
			names = append(names, before[strings.LastIndexAny(before, " \t\n;&|(){}")+1:])
		}
	}
	return names
}

// worthOfCmd does the same for cmd, which reads line by line: it leaves calm lines out that neither go on in another nor have variables.
func worthOfCmd(calm *calm, text string) string {
	if calm == nil || len(text) < leastWorth {
		return text
	}
	var b strings.Builder
	goesOn := false
	for line := range strings.Lines(text) {
		keep := goesOn || strings.ContainsAny(line, "%!") && variables(line) || strings.ContainsAny(line, "^=") || !calm.text(Cmd, line)
		goesOn = strings.HasSuffix(strings.TrimRight(line, "\r\n"), "^")
		if keep {
			b.WriteString(line)
		}
	}
	return b.String()
}

// variables says whether a line has marks of variables, other than those of for.
func variables(line string) bool {
	for i := 0; i < len(line); i++ {
		if line[i] == '!' {
			return true
		}
		if line[i] == '%' {
			if i+2 >= len(line) || line[i+1] != '%' || lower[line[i+2]] == 0 || i+3 < len(line) && line[i+3] == '%' {
				return true
			}
			i += 2
		}
	}
	return false
}

// assigned calls is for each name that may be set in a text; false: that cannot be told.
func assigned(text string, is func(name string)) bool {
	for at := 0; ; at++ {
		n := strings.IndexByte(text[at:], '=')
		if n < 0 {
			return true
		}
		at += n
		end := at
		if end > 0 && text[end-1] == '+' {
			end--
		}
		if end > 0 && text[end-1] == ']' {
			open := strings.LastIndexByte(text[:end], '[')
			if open < 0 || at-open > 200 {
				return false
			}
			end = open
		}
		from := end
		for from > 0 && nameByte(text[from-1]) {
			from--
		}
		if from < end {
			is(text[from:end])
		}
	}
}

// used calls is for each name that follows a dollar sign.
func used(text string, is func(name string)) {
	for at := 0; ; {
		n := strings.IndexByte(text[at:], '$')
		if n < 0 {
			return
		}
		at += n + 1
		for at < len(text) && strings.IndexByte("{#!", text[at]) >= 0 {
			at++
		}
		from := at
		for at < len(text) && nameByte(text[at]) {
			at++
		}
		is(text[from:at])
	}
}

func nameByte(b byte) bool { return b == '_' || b != '-' && lower[b] != 0 }
