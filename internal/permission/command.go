package permission

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/policy"
	"weir/internal/shell"
)

const (
	maxParts = 1000 // commands of one text
	maxTexts = 4    // texts in texts: bash -c "bash -c …"
	maxWraps = 16   // commands in commands: sudo nice …
)

// part is one of the commands that a text runs.
type part struct {
	texts []string // how it may be written
	exact string   // how it stands there, without its redirections; empty: it only runs another
	whole bool     // only a rule that names all of it allows it
}

// script is what a text runs.
type script struct {
	text  string
	parts []part
	whole bool // nothing of it is left out
	many  bool // so much is left out that nothing can be said of it

	reads, writes []string // files that commands are given which are known to read, or to change, all that they are given
	sent          []word   // where redirections write, and what they connect to
	moves         bool     // it may be in another directory by then
}

// Commands that read, or change, the files that they are given; of some the first word is none.
var (
	showing  = commands.Names("cat head tail less more nl tac sort uniq wc cut od xxd hexdump strings base64 diff cmp source . cp bat sed grep egrep fgrep rg awk")
	changing = commands.Names("tee touch truncate rm unlink shred mv cp ln install chmod chown chgrp rmdir mkdir")
	scripted = commands.Names("sed grep egrep fgrep rg awk chmod chown chgrp")
	moving   = commands.Names("cd chdir pushd popd source .")
)

// files notes the files that a command is given, as far as that is known of it.
func (s *script) files(name string, args []word) {
	reads, writes := showing[name] || name == "mv", changing[name]
	if !reads && !writes {
		return
	}
	first := scripted[name]
	for _, a := range args {
		if strings.HasPrefix(a.text, "-") && a.text != "-" {
			writes = writes || name == "sed" && (strings.HasPrefix(a.text, "-i") || strings.HasPrefix(a.text, "--in-place"))
			continue
		}
		if first {
			first = false
			continue
		}
		s.file(a, reads, writes)
	}
}

func (s *script) file(a word, reads, writes bool) {
	if !a.known || a.text == "" || len(s.reads)+len(s.writes) > maxFiles {
		return
	}
	if reads {
		s.reads = append(s.reads, a.text)
	}
	if writes {
		s.writes = append(s.writes, a.text)
	}
}

const maxFiles = 200 // of one text

// readScript finds every command that a shell's text runs, also within others.
func readScript(text string) (s *script) {
	s = &script{text: strings.TrimSpace(text), whole: true}
	defer func() { // what this fails on must not get past a rule
		if recover() != nil {
			s.whole, s.many = false, true
		}
	}()
	s.read(text, 0)
	return s
}

func (s *script) read(text string, depth int) {
	if depth > maxTexts {
		s.whole, s.many = false, true
		return
	}
	if _, refused := shell.Parse(text); refused != nil {
		s.whole = false // no shell runs it, or no other parser reads it so
		for piece := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("\n;&|(){}`", r) }) {
			s.add(part{texts: []string{strings.TrimSpace(piece)}})
		}
	}
	for _, reading := range shell.Readings(text) {
		for st, err := range shell.Stmts(reading) {
			if err != nil {
				s.many = s.many || errors.Is(err, shell.ErrDeep)
				continue
			}
			syntax.Walk(st, func(n syntax.Node) bool {
				switch n := n.(type) {
				case *syntax.Stmt:
					if n.Cmd == nil {
						s.whole = false // redirections alone
					}
					s.input(n, depth)
				case *syntax.Redirect:
					s.redirect(n)
				case *syntax.CallExpr:
					s.call(n, depth)
				case *syntax.DeclClause:
					s.add(part{texts: []string{printed(n)}, exact: printed(n)})
				}
				return !s.many
			})
		}
	}
}

func (s *script) redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	}
	to := one(r.Word)
	if (r.Op == syntax.DplIn || r.Op == syntax.DplOut) && to.known && (to.text == "-" || commands.Digits(strings.TrimSuffix(to.text, "-"))) {
		return
	}
	in := r.Op == syntax.RdrIn || r.Op == syntax.DplIn
	for _, a := range words(r.Word) {
		s.file(a, in || r.Op == syntax.RdrInOut, !in)
	}
	if s.whole = s.whole && len(s.sent) < maxFiles; s.whole && (!in || commands.NetPath(to.text, !to.known)) {
		s.sent = append(s.sent, to)
	}
}

// input reads what a shell is given to run on its standard input.
func (s *script) input(st *syntax.Stmt, depth int) {
	c, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 || !commands.IsShell(path.Base(one(c.Args[0]).text)) {
		return
	}
	for _, w := range words(shell.Input(st)...) {
		s.read(w.text, depth+1)
	}
}

func (s *script) add(p part) {
	if s.many = s.many || len(s.parts) >= maxParts; !s.many {
		s.parts = append(s.parts, p)
	}
}

func printed(n syntax.Node) string {
	var b strings.Builder
	if syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n) != nil {
		return ""
	}
	return b.String()
}

func (s *script) call(c *syntax.CallExpr, depth int) {
	p := part{texts: []string{printed(c), ""}}
	if len(c.Args) > 0 {
		p.texts[1] = printed(&syntax.CallExpr{Args: c.Args})
	}
	p.exact = p.texts[1]
	for _, a := range c.Assigns {
		value := ""
		if a.Value != nil {
			value = one(a.Value).text
		}
		if a.Name == nil || a.Naked || a.Array != nil || a.Index != nil || !commands.HarmlessEnv(a.Name.Value, value) {
			p.exact = p.texts[0]
		}
	}
	if len(c.Args) == 0 {
		if p.exact != "" {
			s.add(p)
		}
		return
	}
	plain := make([]string, len(c.Args))
	for i, a := range c.Args {
		plain[i] = printed(a)
	}
	s.argv(p, p.exact == p.texts[1], words(c.Args...), plain, depth, 0)
}

// clear are commands that only run another: who allows that allows them.
var clear = commands.Names("timeout time nice nohup stdbuf")

// Commands that Claude Code allows by no beginning of them, and what makes find one.
var (
	runners = commands.Names("watch setsid ionice flock chrt taskset strace ltrace script unshare nsenter")
	acting  = commands.Names("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls")
)

// word is a word of a command without its quotes, with $_ for each expansion; it is known where it has none.
type word struct {
	text  string
	known bool
}

func words(args ...*syntax.Word) []word {
	var all []word
	for _, w := range shell.Words(args...) {
		all = append(all, word{strings.ReplaceAll(w, shell.Hole, "$_"), !strings.Contains(w, shell.Hole)})
	}
	return all
}

// one is a word that braces make no more words of, or none.
func one(w *syntax.Word) word {
	if all := words(w); len(all) == 1 {
		return all[0]
	}
	return word{text: "$_"}
}

// argv adds one command, by its words, and what it runs with them. bare: no variable is set for it that counts. plain are the words as they stand
// there, where each of them is one word.
func (s *script) argv(p part, bare bool, words []word, plain []string, depth, wraps int) {
	if len(words) == 0 || wraps > maxWraps {
		s.whole, s.many = false, s.many || wraps > maxWraps
		return
	}
	joined := join(words)
	name := path.Base(words[0].text)
	p.texts = append(p.texts, joined, strings.TrimSpace(name+" "+join(words[1:])))
	args := words[1:]
	run, nested := commands.Unwrap(name, args, func(w word) string { return w.text })
	switch {
	case name == "eval":
		nested = append(nested, join(args))
	case name == "trap" && len(args) > 0:
		nested = append(nested, args[0].text)
	case name == "alias":
		for _, a := range args {
			_, text, _ := strings.Cut(a.text, "=")
			nested = append(nested, text)
		}
	case commands.IsShell(name):
		texts := make([]string, len(args))
		for i, a := range args {
			texts[i] = a.text
		}
		if at, ok := commands.ShellText(texts); ok {
			nested = append(nested, texts[at])
		}
	}
	if bare && len(run) == 1 && (clear[name] || name == "xargs" && !strings.HasPrefix(args[0].text, "-")) {
		p.exact = ""
	}
	p.whole = runners[name] || name == "find" && slices.ContainsFunc(args, func(w word) bool { return acting[w.text] })
	s.add(p)
	s.files(name, args)
	s.moves = s.moves || moving[name]
	for _, c := range run {
		inner, rest := part{exact: join(c)}, []string(nil)
		if len(plain) == len(words) && len(run) == 1 {
			rest = plain[len(words)-len(c):]
			inner.exact = strings.Join(rest, " ")
		}
		s.argv(inner, true, c, rest, depth, wraps+1)
	}
	for _, t := range nested {
		s.read(t, depth+1)
	}
}

func join(words []word) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = w.text
	}
	return strings.Join(all, " ")
}

// readLines takes apart what PowerShell or cmd runs, as far as that can be done without reading it.
func readLines(text string) *script {
	s := &script{text: strings.TrimSpace(text), whole: !strings.ContainsAny(text, "(){}\"'`^$>")}
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("\n\r;&|", r) }) {
		if line = strings.TrimSpace(line); line != "" {
			s.add(part{texts: []string{line}, exact: line})
		}
	}
	return s
}

// commandRule is the content of a rule about commands.
type commandRule struct {
	rule   Rule
	exact  string     // unless it has wildcards
	prefix string     // with :* behind it, or nothing else but " *"
	globs  [][]string // its text between wildcards, each way in which it can be read
	fold   bool       // case makes no difference
}

// unescape takes away the backslashes before brackets.
var unescape = strings.NewReplacer(`\(`, "(", `\)`, ")").Replace

func newCommandRule(r Rule, fold bool) commandRule {
	c := commandRule{rule: r, fold: fold}
	text := strings.TrimSpace(unescape(r.Content))
	if fold {
		text = strings.ToLower(text)
	}
	masked := strings.NewReplacer(`\\`, "\x01", `\*`, "\x02").Replace(text)
	plain := strings.NewReplacer("\x01", `\`, "\x02", "*").Replace
	if prefix, ok := strings.CutSuffix(text, ":*"); ok {
		c.prefix = strings.TrimSpace(prefix)
		return c
	}
	if prefix, ok := strings.CutSuffix(masked, " *"); ok && !strings.Contains(prefix, "*") {
		c.prefix = strings.TrimSpace(plain(prefix))
		return c
	}
	if !strings.Contains(masked, "*") {
		c.exact = plain(masked)
		return c
	}
	for _, way := range []string{"/", "/*/"} {
		parts := strings.Split(strings.ReplaceAll(masked, "/**/", way), "*")
		for i := range parts {
			parts[i] = plain(parts[i])
		}
		c.globs = append(c.globs, parts)
		if !strings.Contains(masked, "/**/") {
			break
		}
	}
	return c
}

func (c *commandRule) matches(text string) bool {
	if c.fold {
		text = strings.ToLower(text)
	}
	switch {
	case c.exact != "":
		return text == c.exact
	case c.prefix != "":
		rest, ok := strings.CutPrefix(text, c.prefix)
		return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\n')
	}
	return slices.ContainsFunc(c.globs, func(parts []string) bool { return policy.Between(parts, text) })
}

// meets says whether one of the commands of a text is a rule's.
func (c *commandRule) meets(s *script) bool {
	return c.matches(s.text) || slices.ContainsFunc(s.parts, func(p part) bool { return slices.ContainsFunc(p.texts, c.matches) })
}

// covered says whether a text is a rule's, or each of its commands is one's and it writes where it may. It gives the last such rule.
func (t *table) covered(c *Call) (found Rule, ok bool) {
	rules, s := t.commands[c.kind], c.script()
	for i := range rules {
		if rules[i].exact != "" && rules[i].matches(s.text) {
			return rules[i].rule, true
		}
	}
	if !s.whole || s.many || len(s.parts) == 0 || slices.ContainsFunc(s.sent, func(to word) bool { return !t.writes(c, to) }) {
		return Rule{}, false
	}
next:
	for _, p := range s.parts {
		if p.exact == "" {
			continue
		}
		for i := range rules {
			if rules[i].matches(p.exact) && (!p.whole || rules[i].exact != "") {
				found, ok = rules[i].rule, true
				continue next
			}
		}
		return Rule{}, false
	}
	return found, ok
}

// writes says whether a redirection may write there, which no rule about a command is about: to a plain file below the working directory or /tmp, or to
// one that a rule lets be edited.
func (t *table) writes(c *Call, to word) bool {
	dirs := c.place.places(".")
	switch {
	case to.known && commands.Device(to.text):
		return true
	case !to.known || strings.ContainsAny(to.text, "*?["), !strings.HasPrefix(to.text, "/") && (c.script().moves || c.place.Dir == ""):
		return false
	case !slices.ContainsFunc(append([]string{to.text}, c.place.places(to.text)...), func(place string) bool {
		return !slices.ContainsFunc(append([]string{""}, dirs...), func(dir string) bool {
			in := commands.In(dir)
			_, ok := in.Writable(place)
			return ok
		})
	}):
		return true
	}
	_, ok := c.about(t.edits, []string{to.text}, Allow)
	return ok
}

func checkCommand(content string) *fault {
	prefix, ok := strings.CutSuffix(content, ":*")
	switch {
	case ok && strings.TrimSpace(prefix) == "":
		return &fault{"there is nothing before :*", "write the beginning of a command: Bash(npm run:*), or Bash alone"}
	case strings.Contains(prefix, ":*"):
		return &fault{":* is only understood at the end", "write :* at the end, or * for any text: Bash(git * main)"}
	case strings.TrimSpace(content) == "":
		return &fault{"it names no command", "write a command: Bash(npm run test:*)"}
	}
	return nil
}
