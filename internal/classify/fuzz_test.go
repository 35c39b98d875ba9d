package classify_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/classify"
	"weir/test/classifytest"
	"weir/test/classifytest/cases"
)

// FuzzShell (G9, B09): nothing panics, the answer is of one form, and no rewriting that means the same to bash makes a text local.
func FuzzShell(f *testing.F) {
	for _, c := range cases.All() {
		f.Add(c.Text, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		r := classify.Shell(text, "/workspace")
		wellFormed(t, text, r)
		if r.Class == classify.Local {
			return
		}
		for _, same := range rewrite(text, rand.New(rand.NewPCG(seed, 1))) {
			if got := classify.Shell(same, "/workspace"); got.Class == classify.Local {
				t.Errorf("%q is %s, and local when it is written as %q", text, r.Class, same)
			}
		}
	})
}

// TestRewritten is the same for the cases and for generated commands.
func TestRewritten(t *testing.T) {
	g := classifytest.NewGrammar(7, 6)
	var texts []string
	for _, c := range cases.All() {
		texts = append(texts, c.Text)
	}
	for range 1000 {
		texts = append(texts, g.Command(), g.Soup())
	}
	rewritten := 0
	for i, text := range texts {
		r := classify.Shell(text, "/workspace")
		wellFormed(t, text, r)
		for _, same := range rewrite(text, rand.New(rand.NewPCG(uint64(i), 2))) {
			rewritten++
			if got := classify.Shell(same, "/workspace"); got.Class == classify.Local && r.Class != classify.Local {
				t.Errorf("%q is %s, and local when it is written as %q", text, r.Class, same)
			}
		}
	}
	if rewritten < len(texts) {
		t.Errorf("%d rewritten forms of %d texts: too few to prove anything", rewritten, len(texts))
	}
}

// wellFormed holds a result to what its type says.
func wellFormed(t *testing.T, text string, r classify.Result) {
	t.Helper()
	if r.Class != classify.Local && len(r.Reasons) == 0 {
		t.Errorf("%q is %s for no reason", text, r.Class)
	}
	for _, reason := range r.Reasons {
		if reason.Rule == "" || reason.Text == "" || reason.Offset < 0 || reason.Length < 0 || reason.Offset+reason.Length > len(text) {
			t.Errorf("%q: reason %+v does not point into the text", text, reason)
		}
	}
}

// rewrite writes a text in other ways that mean the same to bash: blanks, comments, quotes and continued lines at places where the
// parser found a plain word of a simple command. It is nil for a text that cannot be parsed.
func rewrite(text string, r *rand.Rand) []string {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil || !utf8.ValidString(text) || strings.ContainsAny(text, "\r\x00") {
		return nil
	}
	out := []string{"\n" + text, "# x\n" + text, " " + text, "\t\n" + text}
	if !strings.Contains(text, "<<") && !strings.HasSuffix(text, `\`) {
		out = append(out, text+"\n# x", text+"\n", text+"\n\n# '\n")
	}
	var words []*syntax.Word
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			for _, w := range n.Args {
				if lit := w.Lit(); lit != "" && plain(lit) && text[w.Pos().Offset():w.End().Offset()] == lit {
					words = append(words, w)
				}
			}
		case *syntax.CmdSubst:
			return !n.Backquotes // quotes inside are another language
		}
		return true
	})
	for range min(len(words), 6) {
		w := words[r.IntN(len(words))]
		before, lit, after := text[:w.Pos().Offset()], w.Lit(), text[w.End().Offset():]
		quoted := classifytest.Quote(r, lit)
		out = append(out, before+quoted+after, before+" \t"+lit+after, before+lit+" "+after)
		if len(lit) > 1 {
			k := 1 + r.IntN(len(lit)-1)
			out = append(out, before+lit[:k]+"\\\n"+lit[k:]+after)
		}
		if strings.HasSuffix(before, " ") {
			out = append(out, before+"\\\n"+lit+after, before+"\\\n "+lit+after)
		}
	}
	return out
}

// plain tells whether a word has only characters that mean nothing to a shell.
func plain(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-:,%@") == ""
}

// FuzzArgv: nothing panics, and a command line that was seen is local only if the same words are local as a text.
func FuzzArgv(f *testing.F) {
	for _, c := range cases.All() {
		f.Add(strings.Join(strings.Fields(c.Text), "\x00"), "", "")
	}
	f.Add("ls\x00-l", "/usr/bin/curl", "")
	f.Add("ls", "/usr/bin/ls", "LD_PRELOAD=x")
	f.Fuzz(func(t *testing.T, words, file, env string) {
		argv := strings.Split(words, "\x00")
		agree(t, argv)
		o := classify.Observed{Argv: argv, File: file, Dir: "/workspace"}
		if env != "" {
			o.Env = strings.Split(env, "\x00")
		}
		r := classify.Argv(o)
		wellFormed(t, strings.Join(argv, " "), r)
		o.Truncated = true
		if classify.Argv(o).Class == classify.Local {
			t.Errorf("%q is local although it is cut", argv)
		}
	})
}

// agree compares the two forms of a command. Text that shells may read in different ways is left out.
func agree(t *testing.T, argv []string) {
	t.Helper()
	var quoted []string
	for _, w := range argv {
		if !utf8.ValidString(w) || strings.ContainsFunc(w, unicode.IsControl) {
			return
		}
		quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	text := strings.Join(quoted, " ")
	asArgv, asText := classify.Argv(classify.Observed{Argv: argv, Dir: "/workspace"}).Class, classify.Shell(text, "/workspace").Class
	if asArgv == classify.Local && asText != classify.Local && !names[argv[0]] {
		t.Errorf("%q is local as a command line, and %s as the text %q", argv, asText, text)
	}
	if asText == classify.Local && asArgv != classify.Local && !builtins[argv[0]] {
		t.Errorf("%q is %s as a command line, and local as the text %q", argv, asArgv, text)
	}
}

// names are programs that do less than the builtins of their names, which know variables.
var names = map[string]bool{"test": true, "[": true, "printf": true}

// builtins are words that are commands in a text only.
var builtins = map[string]bool{"cd": true, "pushd": true, "popd": true, "eval": true, "export": true, "read": true, "set": true, "shift": true, "unset": true, "trap": true, "exit": true,
	"return": true, "break": true, "continue": true, ":": true, "type": true, "command": true, "builtin": true, "exec": true, "wait": true, "jobs": true, "shopt": true, "umask": true, "ulimit": true,
	"times": true, "hash": true, "getopts": true, "mapfile": true, "readarray": true, "fg": true, "bg": true, "dirs": true, "caller": true, "logout": true, "suspend": true, "disown": true,
	"alias": true, "unalias": true, "declare": true, "local": true, "typeset": true, "readonly": true, "let": true}

// TestFormsAgree compares the forms of all cases that are a single command.
func TestFormsAgree(t *testing.T) {
	compared := 0
	for _, c := range cases.All() {
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(c.Text), "")
		if err != nil || len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 {
			continue
		}
		call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
		if !ok || len(call.Assigns) > 0 {
			continue
		}
		var argv []string
		for _, w := range call.Args {
			text, ok := literal(w)
			if !ok {
				argv = nil
				break
			}
			argv = append(argv, text)
		}
		if len(argv) > 0 {
			compared++
			agree(t, argv)
		}
	}
	if compared < 200 {
		t.Errorf("only %d cases were compared", compared)
	}
}

// literal is the text of a word that is plain or in single quotes.
func literal(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		return p.Value, plain(p.Value)
	case *syntax.SglQuoted:
		return p.Value, !p.Dollar
	}
	return "", false
}
