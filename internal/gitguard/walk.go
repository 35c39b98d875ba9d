package gitguard

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

// Finding is what a command may not do.
type Finding struct {
	What    string // completes "it …", for people and models
	Instead string // one sentence: what works
}

const (
	maxNested = 4  // texts in texts: bash -c "bash -c …"
	maxWraps  = 64 // commands in commands: sudo nice …
)

// Check looks at a whole shell text, which runs in a directory; an empty one is not known. What no shell can parse has no finding: the gate judges
// that.
func Check(text, dir string) (Finding, bool) { return checkTwice(text, dir, new(bool)) }

// checkTwice takes variables for unknown, and then for what the text gives them: another path through it may do either.
func checkTwice(text, dir string, pushes *bool) (Finding, bool) {
	f, ok := (&walk{dir: dir, pushes: pushes}).check(text, 0)
	if !ok && strings.Contains(text, "$") {
		f, ok = (&walk{dir: dir, pushes: pushes, vars: map[string]string{}}).check(text, 0)
	}
	return f, ok
}

// Pushes says whether a text sends a repository to a remote one, which a person has to approve in a tainted container.
func Pushes(text string) bool {
	pushes := false
	_, denied := checkTwice(text, "", &pushes)
	return pushes || denied
}

// walk goes through a text in the order in which it runs.
type walk struct {
	dir    string            // where it is, as far as that is known; $_ for what is not
	pushes *bool             // whether it pushes
	vars   map[string]string // what the text gives variables; nil: they are not followed
}

func (w *walk) check(text string, depth int) (found Finding, ok bool) {
	// A word of git, or of its files, must stand there somehow: most commands are done here.
	if depth > maxNested || !strings.Contains(w.dir, ".git") && !strings.Contains(strings.ToLower(strings.NewReplacer(`\`, "", `'`, "", `"`, "", "{", "", ",", "").Replace(text)), "git") && !(strings.Contains(text, ".") && strings.ContainsAny(text, "*?[")) {
		return Finding{}, false
	}
	dir := w.dir
	for _, reading := range shell.Readings(text) {
		w.dir = dir
		for s, err := range shell.Stmts(reading) {
			switch {
			case errors.Is(err, shell.ErrDeep):
				found, ok = deepFinding, true
			case err == nil:
				found, ok = w.stmt(s, depth)
			}
			if ok {
				return found, true
			}
		}
	}
	return Finding{}, false
}

var deepFinding = Finding{"it names git, and is nested too deep to be read", "Write it with fewer brackets and substitutions."}

func (w *walk) stmt(s *syntax.Stmt, depth int) (found Finding, ok bool) {
	var left []string // the directories in which subshells began, and "" for other nodes
	var open []bool
	syntax.Walk(s, func(n syntax.Node) bool {
		if n == nil {
			if last := len(open) - 1; last >= 0 {
				if open[last] {
					w.dir, left = left[len(left)-1], left[:len(left)-1]
				}
				open = open[:last]
			}
			return false
		}
		if ok {
			return false
		}
		own := false
		switch n := n.(type) {
		case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
			own, left = true, append(left, w.dir)
		case *syntax.Stmt:
			found, ok = w.input(n, depth)
		case *syntax.BinaryCmd:
			if shell.Pipe(n.Op) && w.opensShell(n.Y) {
				found, ok = w.inner(w.printed(n.X), depth)
			}
		case *syntax.Redirect:
			found, ok = w.redirect(n)
		case *syntax.DeclClause:
			for _, a := range n.Args {
				if w.set(a); !ok {
					found, ok = w.assignment(a)
				}
			}
		case *syntax.CallExpr:
			found, ok = w.call(n, depth)
		}
		if !ok {
			open = append(open, own)
		}
		return !ok
	})
	return found, ok
}

// word is a word of a command; an unknown one has expansions.
type word struct {
	text  string // what stands before the first expansion
	known bool
	whole string // all of it, with $_ for each expansion
}

func (w *walk) words(args ...*syntax.Word) []word {
	var all []word
	for _, a := range args {
		if value, ok := w.value(a); ok {
			for _, f := range strings.Fields(value) {
				all = append(all, word{f, true, f})
			}
			continue
		}
		for _, whole := range shell.Words(w.known(a)) {
			text, _, open := strings.Cut(whole, shell.Hole)
			all = append(all, word{text, !open, strings.ReplaceAll(whole, shell.Hole, "$_")})
		}
	}
	return all
}

// value is that of a word which is nothing but a variable, where it is known.
func (w *walk) value(a *syntax.Word) (string, bool) {
	if w.vars == nil || len(a.Parts) != 1 {
		return "", false
	}
	return w.param(a.Parts[0])
}

// known is a word with the values of variables that are known in their places.
func (w *walk) known(a *syntax.Word) *syntax.Word {
	if w.vars == nil {
		return a
	}
	return &syntax.Word{Parts: w.parts(a.Parts)}
}

func (w *walk) parts(parts []syntax.WordPart) []syntax.WordPart {
	all := slices.Clone(parts)
	for i, part := range parts {
		if q, ok := part.(*syntax.DblQuoted); ok {
			all[i] = &syntax.DblQuoted{Parts: w.parts(q.Parts)}
		} else if text, ok := w.param(part); ok {
			all[i] = &syntax.SglQuoted{Value: text}
		}
	}
	return all
}

// param is the value of a variable.
func (w *walk) param(part syntax.WordPart) (text string, known bool) {
	p, ok := part.(*syntax.ParamExp)
	if !ok || p.Param == nil || p.Excl || p.Length || p.Index != nil || p.Slice != nil || p.Repl != nil {
		return "", false
	}
	text, known = w.vars[p.Param.Value]
	if p.Exp != nil {
		if p.Exp.Op != syntax.DefaultUnset && p.Exp.Op != syntax.DefaultUnsetOrNull || p.Exp.Word == nil {
			return "", false
		}
		if !known {
			text, known = p.Exp.Word.Lit(), p.Exp.Word.Lit() != ""
		}
	}
	return text, known
}

// Bounds on variables that are followed: how many, and the bytes of one.
const (
	maxVars  = 64
	maxValue = 1 << 10
)

// set notes the value of a variable.
func (w *walk) set(a *syntax.Assign) {
	if w.vars == nil || a.Name == nil || a.Value == nil || a.Append {
		return
	}
	text := shell.Text(w.known(a.Value), func(syntax.WordPart, bool) string { return shell.Hole })
	delete(w.vars, a.Name.Value)
	if !strings.Contains(text, shell.Hole) && len(text) <= maxValue && len(w.vars) < maxVars {
		w.vars[a.Name.Value] = text
	}
}

func (w *walk) call(c *syntax.CallExpr, depth int) (Finding, bool) {
	all := w.words(c.Args...)
	if len(all) == 0 || mayBeGit(all) {
		for _, a := range c.Assigns {
			if f, ok := w.assignment(a); ok {
				return f, true
			}
		}
	}
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			w.set(a)
		}
	}
	return w.argv(all, depth, 0)
}

// mayBeGit says whether git is among the words: variables before other programs are theirs.
func mayBeGit(w []word) bool {
	for _, w := range w {
		if !w.known || strings.Contains(path.Base(w.text), "git") {
			return true
		}
	}
	return false
}

// argv judges one command's words, and what it runs with them.
func (w *walk) argv(all []word, depth, wraps int) (Finding, bool) {
	if len(all) == 0 || !all[0].known {
		return Finding{}, false
	}
	name, args := path.Base(all[0].text), all[1:]
	switch {
	case wraps > maxWraps:
		return deepFinding, true
	case name == "git":
		return w.git(args, depth)
	case strings.HasPrefix(name, "git-"):
		return w.git(append([]word{{text: name[len("git-"):], known: true}}, args...), depth)
	case name == "eval":
		return w.eval(args, depth)
	case name == "trap" && len(args) > 0:
		return w.inner(args[0].whole, depth)
	case commands.IsShell(name):
		return w.shellText(args, depth)
	case name == "cd" || name == "pushd" || name == "popd":
		w.enter(args)
		return Finding{}, false
	}
	run, nested := commands.Unwrap(name, args, func(w word) string { return w.whole })
	for _, c := range run {
		if f, ok := set(args[:len(args)-len(c)], c); ok {
			return f, true
		}
		if f, ok := w.argv(c, depth, wraps+1); ok {
			return f, true
		}
	}
	for _, t := range nested {
		if f, ok := w.inner(t, depth); ok {
			return f, true
		}
	}
	if len(run)+len(nested) > 0 {
		return Finding{}, false
	}
	return w.files(name, args)
}

// enter follows cd.
func (w *walk) enter(args []word) {
	for len(args) > 0 && strings.HasPrefix(args[0].whole, "-") && args[0].whole != "-" {
		args = args[1:]
	}
	if len(args) != 1 || args[0].whole == "-" {
		w.dir = ""
		return
	}
	w.dir = w.at(args[0].whole)
}

// at is a path from here; what begins with something unknown may lead anywhere.
func (w *walk) at(p string) string {
	if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || strings.HasPrefix(p, "$_") {
		return path.Clean(p)
	}
	return path.Join(w.dir, p)
}

// inner looks at the text of another shell.
func (w *walk) inner(text string, depth int) (Finding, bool) {
	return (&walk{dir: w.dir, pushes: w.pushes, vars: w.vars}).check(text, depth+1)
}

func (w *walk) eval(args []word, depth int) (Finding, bool) {
	var all []string
	for _, a := range args {
		all = append(all, a.whole)
	}
	return w.check(strings.Join(all, " "), depth+1)
}

// shellText judges the text of sh -c TEXT, and the words that are not known up to there: they may be the text.
func (w *walk) shellText(args []word, depth int) (Finding, bool) {
	var known []string
	var from []int
	for i, a := range args {
		if a.known {
			known, from = append(known, a.text), append(from, i)
		}
	}
	last := len(args) - 1
	at, ok := commands.ShellText(known)
	if ok {
		last = from[at]
	}
	for i, a := range args[:last+1] {
		if !a.known || ok && i == last {
			if f, ok := w.inner(a.whole, depth); ok {
				return f, true
			}
		}
	}
	return Finding{}, false
}

// opensShell tells whether a statement is a shell that may read its commands from its input, or runs one.
func (w *walk) opensShell(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok {
		return false
	}
	for all := w.words(c.Args...); len(all) > 0; {
		name := path.Base(all[0].whole)
		if commands.IsShell(name) {
			return true
		}
		run, _ := commands.Unwrap(name, all[1:], func(w word) string { return w.whole })
		if len(run) != 1 {
			break
		}
		all = run[0]
	}
	return false
}

// printed is what echo or printf prints.
func (w *walk) printed(s *syntax.Stmt) string {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) < 2 {
		return ""
	}
	var text []string
	for _, a := range w.words(c.Args...) {
		text = append(text, strings.ReplaceAll(a.whole, `\n`, "\n"))
	}
	if len(text) == 0 || text[0] != "echo" && text[0] != "printf" {
		return ""
	}
	return strings.Join(text[1:], " ")
}

// input judges what a shell is given to run on its standard input.
func (w *walk) input(s *syntax.Stmt, depth int) (found Finding, ok bool) {
	if !w.opensShell(s) {
		return found, false
	}
	for _, text := range w.words(shell.Input(s)...) {
		if found, ok = w.inner(text.whole, depth); ok {
			break
		}
	}
	return found, ok
}

// redirect finds output into git's own files.
func (w *walk) redirect(r *syntax.Redirect) (Finding, bool) {
	switch r.Op {
	case syntax.RdrIn, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return Finding{}, false
	}
	if r.Word == nil {
		return Finding{}, false
	}
	return protected(w.at(w.words(r.Word)[0].whole))
}

// named is a path in which patterns that find git's own files are their names. A star alone is none.
func named(p string) string {
	if !strings.ContainsAny(p, "*?[") {
		return p
	}
	parts := strings.Split(p, "/")
	for i, part := range parts {
		for _, name := range []string{".git", "hooks", "config"} {
			if ok, err := path.Match(part, name); ok && err == nil && strings.Trim(part, "*?.") != "" && (name == ".git" || i > 0 && strings.HasSuffix(parts[i-1], ".git")) {
				parts[i] = name
			}
		}
	}
	return strings.Join(parts, "/")
}

// protected finds files of a repository that make git run programs.
func protected(p string) (Finding, bool) {
	p = named(p)
	for part := "/" + path.Clean(p) + "/"; ; {
		i := strings.Index(part, ".git/")
		if i < 0 {
			break
		}
		part = part[i+len(".git/"):]
		switch first, _, _ := strings.Cut(part, "/"); {
		case first == "hooks":
			return hooksFinding, true
		case first == "config" || first == "config.worktree", (first == "modules" || first == "worktrees") && strings.HasPrefix(path.Base(p), "config"), strings.TrimSuffix(part, "/") == "info/attributes":
			return configFinding, true
		case first == "modules" && strings.Contains(part, "/hooks/"):
			return hooksFinding, true
		}
	}
	switch base := path.Base(p); {
	case base == ".gitconfig", strings.HasSuffix("/"+p, "/git/config") || strings.HasSuffix("/"+p, "/git/attributes"), p == "/etc/gitconfig":
		return configFinding, true
	}
	return Finding{}, false
}

// files finds other programs that write git's own files.
func (w *walk) files(name string, args []word) (Finding, bool) {
	if readers[name] {
		return Finding{}, false
	}
	writes := writers[name] || name == "sed" && slices.ContainsFunc(args, func(a word) bool {
		return strings.HasPrefix(a.text, "--in-place") || strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.Contains(a.text, "i")
	})
	for i, a := range args {
		switch name {
		case "cp", "install", "rsync", "ln":
			if i < len(args)-1 && !strings.HasPrefix(a.text, "-t") && !strings.HasPrefix(a.text, "--target") {
				continue // it is only read
			}
		}
		p := strings.TrimPrefix(a.whole, "of=")
		if writes && !strings.HasPrefix(p, "-") {
			p = w.at(p)
		}
		if f, ok := protected(p); ok {
			return f, true
		}
	}
	return Finding{}, false
}

// writers change the files that they are given, so that also names in a repository's own directory are what it says.
var writers = commands.Names("cp mv ln install rsync tee touch rm unlink truncate chmod chown dd")

var readers = commands.Names("ls cat head tail grep egrep fgrep rg find fd stat file wc less more diff cmp sha256sum md5sum test [ echo printf cd pushd tree du realpath readlink " +
	"dirname basename strings nl tac")

var (
	hooksFinding = Finding{
		"it changes the hooks of a repository, which git runs as programs", "Leave .git/hooks as it is; a check that is wanted can be run as a command.",
	}
	configFinding = Finding{
		"it writes git's configuration file, which can name programs to run", "Set what is needed with git config, one key at a time.",
	}
)

// assignment finds variables that give git programs to run.
func (w *walk) assignment(a *syntax.Assign) (Finding, bool) {
	if a.Name == nil {
		return Finding{}, false
	}
	var value word
	if a.Value != nil {
		value = w.words(a.Value)[0]
	}
	return variable(a.Name.Value, value)
}

// set finds such variables among the words before a command, as env and sudo take them.
func set(before, command []word) (Finding, bool) {
	for _, w := range before {
		name, value, ok := strings.Cut(w.text, "=")
		if !ok {
			continue
		}
		if f, ok := variable(name, word{text: value, known: w.known}); ok {
			return f, mayBeGit(command)
		}
	}
	return Finding{}, false
}

// variable judges one with its value.
func variable(name string, value word) (Finding, bool) {
	if !strings.HasPrefix(name, "GIT_CONFIG") && !variables[name] {
		return Finding{}, false
	}
	if value.known && harmless[value.text] && name != "GIT_CONFIG_COUNT" && name != "GIT_CONFIG_PARAMETERS" {
		return Finding{}, false
	}
	return Finding{"it sets " + name + ", with which git runs other programs or takes other settings", "Run git without that variable."}, true
}

var variables = commands.Names("GIT_SSH GIT_SSH_COMMAND GIT_PROXY_COMMAND GIT_EXTERNAL_DIFF GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_ASKPASS GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER")

var harmless = map[string]bool{"": true, "true": true, ":": true, "cat": true, "/dev/null": true, "1": true, "0": true}
