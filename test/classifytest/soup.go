package classifytest

import (
	"slices"
	"strings"

	"weir/test/classifytest/cases"
)

// The pieces of which Soup is made: whatever means something to a shell, to sed or to awk, with words that start a stub.
var (
	shellPieces = []string{"pwn", "pwn", " ", " ", " ", "'", "'", `"`, `"`, `\`, "`", "$", "${x", "${x:-", "${x#", "${x/", "}", "}", "{", "(", ")", ")", "$(", "$((", "))", "<(", ">(", "#", ";", ";",
		"&", "|", "<", ">", "\n", "\n", "\\\n", "<<E\n", "<<'E'\n", "<<-E\n", "\nE\n", "$'", `\'`, `\"`, "echo ", "echo ", "ls ", "x=", "x", ":-", "[", "]", "[[ ", " ]]", "!", "~+", ",", "..", "*",
		"?", "=", "\t", "&&", "||", "case x in ", " in ", ";;", " esac", "if ", "; then ", "; fi", "fn() ", "{ ", "; }", "</dev/tcp/127.0.0.1/9", "@", "%", "é", "\xff", "\xc2", "-", "1", "a[", "$[", "&>", ">&",
		"<<<", "for x in ", "; do ", "; done", "function ", "eval ", "time ", "-exec ", "=(", "+=", "^", "$@", "$x", "\"$x\"", "sh -c ", "\\\\", "\u00a0", "$\"", "@P}", "|&", "\v"}
	sedPieces = []string{"e pwn", "e", "e", "s", "/", "/", "/", ",", ";", ";", "\n", "{", "}", "a", "b", "[", "]", "\\", "\\/", "1", "$", "!", "p", "d", "y", "g", "i\\\n", "a\\\n", "c x", "#", ":a", "ba", "t",
		" ", "n", "N", "w", "r", "&", "|", "^", "\\n", "s/a/b/", "/a/", "1,2", "\\,", "q", "l", "=", "x", "[^", "[:alpha:]", "0~2", "+1", "I", "M", "v", "F", "z", "}e pwn", "s,a,b,"}
	awkPieces = []string{`system("pwn")`, "system", `("pwn")`, `"pwn"`, `| "pwn"`, `"pwn" | getline`, "|", "|&", ">", ">>", "getline", "print ", "printf ", "/", "/", "/", `"`, `"`, `\"`, "\\", "\\/", "[", "]", "(", ")", "{", "}", ";", "\n",
		" ", "x", "$1", "a", "1", "#", "=", "~", "!", "&&", "||", "?", ":", ",", "BEGIN", "END", "if(", "for(", "in ", "function f(", "return ", "\\\n", "@", "+", "++", "-", "next", "delete ", "[/]", "/a/", "x=1", "close(", "while("}
)

// Soup makes a command that no grammar would: a random string of pieces, or a harmless case with a few pieces put in or taken out.
// Most of it is no command at all; the rest shows where shells read a text in another way than its judge.
func (g *Grammar) Soup() string {
	switch g.r.IntN(10) {
	case 0:
		return "sed " + g.quote(g.pieces(sedPieces, 12)) + " f"
	case 1:
		return "awk " + g.quote(g.pieces(awkPieces, 14)) + " f"
	case 2, 3, 4, 5:
		return "echo " + g.pieces(shellPieces, 14)
	}
	base := cases.Local[g.r.IntN(len(cases.Local))]
	for range 1 + g.r.IntN(4) {
		at := g.r.IntN(len(base) + 1)
		if g.chance(25) && at < len(base) {
			base = base[:at] + base[at+1:]
			continue
		}
		base = base[:at] + pickOne(g, shellPieces) + base[at:]
	}
	return base
}

func (g *Grammar) pieces(of []string, most int) string {
	var b strings.Builder
	for range 1 + g.r.IntN(most) {
		b.WriteString(pickOne(g, of))
	}
	return b.String()
}

// SedSoup is a random sed script.
func (g *Grammar) SedSoup() string {
	return g.pieces(slices.Concat(sedPieces, []string{"s/x/y/", "\\}", "/b/"}), 10)
}
