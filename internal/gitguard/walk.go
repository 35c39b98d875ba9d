package gitguard

import (
	"path"
	"slices"
	"strings"

	"weir/internal/commands"
	"weir/internal/shell"
	"weir/internal/toolguard"
)

// Finding is what a command may not do.
type Finding struct {
	What    string // completes "it …", for people and models
	Instead string // one sentence: what works
}

// maxNested bounds the aliases of aliases, and the texts that git itself runs.
const maxNested = 4

// Check looks at a whole shell text, which runs in a directory; an empty one is not known. What no shell can parse has no finding: the gate judges
// that.
func Check(text, dir string) (Finding, bool) { return checkTwice(text, dir, new(bool)) }

// checkTwice takes variables for unknown, and then for what the text gives them: another path through it may do either.
func checkTwice(text, dir string, pushes *bool) (Finding, bool) {
	w := &walk{reader: toolguard.Reader{Dir: dir, Unknown: unknown, Assigns: true, Blind: true}, pushes: pushes}
	f, ok := w.check(text, 0)
	if !ok && strings.Contains(text, "$") {
		w.reader.Dir, w.reader.Blind = dir, false
		f, ok = w.check(text, 0)
	}
	return f, ok
}

// Pushes says whether a text sends a repository to a remote one, which a person has to approve in a tainted container.
func Pushes(text string) bool {
	pushes := false
	_, denied := checkTwice(text, "", &pushes)
	return pushes || denied
}

// walk judges the commands of a text.
type walk struct {
	reader toolguard.Reader // its Dir is where the present command runs
	pushes *bool            // whether one pushes
}

func (w *walk) check(text string, depth int) (found Finding, ok bool) {
	// A word of git, or of its files, must stand there somehow: most commands are done here.
	dir := w.reader.Dir
	if depth > maxNested || !strings.Contains(dir, ".git") && !strings.Contains(strings.ToLower(strings.NewReplacer(`\`, "", `'`, "", `"`, "", "{", "", ",", "").Replace(text)), "git") && !(strings.Contains(text, ".") && strings.ContainsAny(text, "*?[")) {
		return Finding{}, false
	}
	for _, reading := range shell.Readings(text) {
		w.reader.Dir = dir
		deep := w.reader.Commands(toolguard.POSIX, reading, func(c *toolguard.Command) bool {
			w.reader.Dir = c.Dir
			found, ok = w.command(c, depth)
			return !ok
		})
		if ok {
			return found, true
		}
		if deep {
			return deepFinding, true
		}
	}
	return Finding{}, false
}

var deepFinding = Finding{"it names git, and is nested too deep to be read", "Write it with fewer brackets and substitutions."}

// unknown stands in a shell's text for what is not known: the last word of the command before, which nothing follows.
const unknown = "$_"

// word is a word of a command; an unknown one has expansions.
type word struct {
	text  string // what stands before the first expansion
	known bool
	whole string // all of it, with unknown for each expansion
}

func wordOf(whole string) word {
	text, _, open := strings.Cut(whole, shell.Hole)
	return word{text, !open, strings.ReplaceAll(whole, shell.Hole, unknown)}
}

// mayBeGit says whether git is among the words: variables before other programs are theirs.
func mayBeGit(w []word) bool {
	return slices.ContainsFunc(w, func(w word) bool { return !w.known || strings.Contains(path.Base(w.text), "git") })
}

// command judges one, but not what it runs.
func (w *walk) command(c *toolguard.Command, depth int) (Finding, bool) {
	for _, v := range c.Writes {
		if f, ok := protected(w.at(wordOf(v.Text).whole)); ok {
			return f, true
		}
	}
	all := []word{wordOf(c.Program)}
	for _, text := range c.Words() {
		all = append(all, wordOf(text))
	}
	name, args := path.Base(c.Program), all[1:]
	before := args // what stands before another command, as env and sudo take variables
	if c.Runs == nil {
		before = nil
	} else if i := slices.IndexFunc(args, func(a word) bool { return a.whole == wordOf(c.Runs.Program).whole }); i >= 0 {
		before = args[:i]
	}
	for _, v := range c.Sets {
		before = append(before[:len(before):len(before)], wordOf(v.Text))
	}
	for _, a := range before {
		if f, ok := variable(a); ok && (c.Program == "" || mayBeGit(all)) {
			return f, true
		}
	}
	switch {
	case !all[0].known || c.Program == "":
		return Finding{}, false
	case name == "git":
		return w.git(args, depth)
	case strings.HasPrefix(name, "git-"):
		return w.git(append([]word{{text: name[len("git-"):], known: true}}, args...), depth)
	case c.Runs != nil, commands.IsShell(name), commands.Listed("eval trap cd pushd popd", name):
		return Finding{}, false
	}
	if _, nested := commands.Unwrap(name, args, func(w word) string { return w.whole }); len(nested) > 0 {
		return Finding{}, false
	}
	return w.files(name, args)
}

// at is a path from here; what begins with something unknown may lead anywhere.
func (w *walk) at(p string) string {
	if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || strings.HasPrefix(p, unknown) {
		return path.Clean(p)
	}
	return path.Join(wordOf(w.reader.Dir).whole, p)
}

// eval judges a text that git has a shell run.
func (w *walk) eval(args []word, depth int) (Finding, bool) {
	var all []string
	for _, a := range args {
		all = append(all, a.whole)
	}
	return w.check(strings.Join(all, " "), depth+1)
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
	case base == ".gitconfig", (base == "config" || base == "attributes") && (strings.HasSuffix(path.Dir(p), "/.config/git") || strings.HasPrefix(p, unknown) && strings.HasSuffix(path.Dir(p), "/git")), p == "/etc/gitconfig":
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

// variable judges NAME=VALUE.
func variable(set word) (Finding, bool) {
	name, value, ok := strings.Cut(set.text, "=")
	if !ok || !strings.HasPrefix(name, "GIT_CONFIG") && !variables[name] || set.known && harmless[value] && name != "GIT_CONFIG_COUNT" && name != "GIT_CONFIG_PARAMETERS" {
		return Finding{}, false
	}
	return Finding{"it sets " + name + ", with which git runs other programs or takes other settings", "Run git without that variable."}, true
}

var variables = commands.Names("GIT_SSH GIT_SSH_COMMAND GIT_PROXY_COMMAND GIT_EXTERNAL_DIFF GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_ASKPASS GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER")

var harmless = map[string]bool{"": true, "true": true, ":": true, "cat": true, "/dev/null": true, "1": true, "0": true}
