package toolguard

import (
	"strings"
)

// psPlain turns the dashes, quotes and spaces that PowerShell takes for its own into those.
func psPlain(text string) string {
	for i := 0; ; i++ {
		if i == len(text) {
			return text
		}
		if text[i] >= 0x80 || text[i] == 0 {
			break
		}
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '–', '—', '―':
			return '-'
		case '‘', '’', '‚', '‛':
			return '\''
		case '“', '”', '„':
			return '"'
		case '\u00a0', '\u1680', '\u202f', '\u205f', '\u3000', '\u0085', '\u2028', '\u2029':
			return ' '
		case 0, '\ufeff':
			return -1
		}
		if r >= '\u2000' && r <= '\u200a' {
			return ' '
		}
		return r
	}, text)
}

// psLow is strings.ToLower without a copy of what is in lower case already, or is a word that is kept.
func psLow(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' || c >= 0x80 {
			return strings.ToLower(s)
		}
	}
	return s
}

// psLetter says whether a byte is one.
func psLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// psVariable gives the name of $name, ${name} or $scope:name at i, in lower case and without a scope, and its end.
func psVariable(s string, i int) (string, int) {
	j := i + 1
	if j < len(s) && s[j] == '{' {
		k := strings.IndexByte(s[j:], '}')
		if k < 0 {
			return "", len(s)
		}
		return scopeless(strings.ReplaceAll(s[j+1:j+k], "`", "")), j + k + 1
	}
	if j < len(s) && strings.IndexByte("$?^_", s[j]) >= 0 && (j+1 >= len(s) || !psNameByte(s[j+1]) || s[j] != '_') {
		return s[j : j+1], j + 1
	}
	for j < len(s) && (psNameByte(s[j]) || s[j] == ':' && j+1 < len(s) && psNameByte(s[j+1]) && j > i+1) {
		j++
	}
	return scopeless(s[i+1 : j]), j
}

// psNameByte says whether names of variables and members have it.
func psNameByte(c byte) bool { return psLetter(c) || c >= '0' && c <= '9' || c == '_' || c >= 0x80 }

func scopeless(name string) string {
	name = psLow(name)
	if strings.IndexByte(name, ':') < 0 {
		return name
	}
	for _, scope := range [...]string{"global:", "script:", "local:", "private:", "variable:", "using:"} {
		name = strings.TrimPrefix(name, scope)
	}
	return name
}
