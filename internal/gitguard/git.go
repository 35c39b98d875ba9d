package gitguard

import (
	"slices"
	"strings"

	"weir/internal/commands"
)

// git judges the words after "git".
func (w *walk) git(args []word, depth int) (Finding, bool) {
	aliases := map[string][]word{}
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		a := args[0]
		args = args[1:]
		var value word
		switch {
		case a.text == "-c" || a.text == "--config-env":
			if len(args) == 0 {
				return Finding{}, false
			}
			value, args = args[0], args[1:]
			value.known = value.known && a.text == "-c"
		case strings.HasPrefix(a.text, "--config-env="):
			value = word{text: strings.TrimPrefix(a.text, "--config-env="), known: false}
		case strings.HasPrefix(a.text, "--exec-path="):
			return Finding{"it lets git take its own programs from another directory", "Run git without --exec-path."}, true
		case commands.Listed("-C --git-dir --work-tree --namespace --super-prefix --attr-source --shallow-file", a.text):
			args = args[min(1, len(args)):]
			continue
		default:
			continue
		}
		if f, ok := setting(value); ok {
			return f, true
		}
		if name, means, ok := alias(value); ok {
			aliases[name] = means
		}
	}
	if len(args) == 0 || !args[0].known {
		return Finding{}, false
	}
	sub, rest := args[0].text, args[1:]
	for n := 0; n < maxNested && len(aliases[sub]) > 0; n++ {
		args = append(slices.Clone(aliases[sub]), rest...)
		if strings.HasPrefix(args[0].text, "-") && depth <= maxNested {
			return w.git(args, depth+1)
		}
		sub, rest = args[0].text, args[1:]
	}
	row, stops := sub, false // of the table of options, and whether they end at the first operand
	switch sub {
	case "send-pack", "http-push":
		row = "push"
	case "pull", "fetch-pack":
		row = "fetch"
	case "submodule":
		row = "clone"
	case "config", "for-each-repo":
		stops = true
	}
	if commands.Listed("push fetch clone ls-remote archive remote subtree lfs", row) && slices.ContainsFunc(rest, func(a word) bool {
		_, value, _ := strings.Cut(a.text, "=")
		return strings.HasPrefix(a.text, "ext::") || strings.HasPrefix(value, "ext::")
	}) {
		return Finding{"it uses the transport ext::, which runs a program", "Use the https or ssh address of the repository."}, true
	}
	given, operands := read(row, rest, stops)
	if o := given.find("upload-pack receive-pack exec"); o != nil && sub != "rebase" {
		return packs(o)
	}
	switch sub {
	case "push", "send-pack", "http-push":
		*w.pushes = true
		return push(given, operands)
	case "subtree", "lfs", "svn", "p4":
		*w.pushes = *w.pushes || slices.ContainsFunc(rest, func(a word) bool { return commands.Listed("push dcommit submit", a.text) })
	case "remote":
		o := given.find("mirror")
		return deletes, o != nil && (o.value.text == "" || o.value.text == "push")
	case "config":
		return w.config(given, operands, depth)
	case "submodule", "bisect":
		return w.runs(rest, depth)
	case "rebase", "difftool", "grep", "send-email":
		for _, o := range given {
			if o.is("x exec extcmd O open-files-in-pager sendmail-cmd smtp-server to-cmd cc-cmd header-cmd") {
				if f, ok := w.eval([]word{o.value}, depth); ok {
					return f, true
				}
			}
		}
	case "fetch", "pull":
		return fetches(given, operands)
	case "clone":
		if o := given.find("u"); o != nil {
			return packs(o)
		}
		return fresh(given)
	case "init":
		return fresh(given)
	case "filter-branch", "filter-repo":
		return rewrites, true
	case "branch":
		if given.find("f force d D delete m M move") == nil { // a copy, which overwrites its last operand
			operands = operands[max(len(operands)-1, 0):]
		}
		return moves, given.find("f force d D delete m M move C") != nil && slices.ContainsFunc(operands, func(a word) bool { return a.text != "HEAD" && shared(a.text) })
	case "for-each-repo":
		if depth <= maxNested {
			return w.git(operands, depth+1)
		}
	case "checkout", "worktree", "switch":
		o := given.find("B C force-create")
		return moves, o != nil && shared(o.value.text)
	case "update-ref":
		return moves, given.find("stdin") != nil || len(operands) > 0 && operands[0].text != "HEAD" && shared(operands[0].text)
	case "symbolic-ref":
		return moves, len(operands) > 0 && operands[0].text != "HEAD" && shared(operands[0].text) && (len(operands) > 1 || given.find("d delete") != nil)
	}
	return Finding{}, false
}

// option is what may be given by a word, and its value.
type option struct {
	names []string
	value word
	as    string // as it is written, before =
}

func (o option) is(names string) bool {
	return slices.ContainsFunc(o.names, func(name string) bool { return commands.Listed(names, name) })
}

type options []option

// find is the first that may be one of these.
func (all options) find(names string) *option {
	if i := slices.IndexFunc(all, func(o option) bool { return o.is(names) }); i >= 0 {
		return &all[i]
	}
	return nil
}

// read tells the options of a command of git from its operands.
func read(row string, args []word, stops bool) (given options, operands []word) {
	short, long, _ := strings.Cut(commands.Table("git-options")[row], " ")
	known := commands.Command{Short: short, Long: long}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.known && a.text == "--":
			return given, append(operands, args[i+1:]...)
		case len(a.text) > 1 && a.text[0] == '-':
			names, value, next := known.Given(a.text)
			as, _, _ := strings.Cut(a.text, "=")
			o := option{names, word{value, a.known, a.whole[len(a.text)-len(value):]}, as}
			if next && a.known && i+1 < len(args) {
				i++
				o.value = args[i]
			}
			given = append(given, o)
		case stops:
			return given, args[i:]
		default:
			operands = append(operands, a)
		}
	}
	return given, operands
}

// alias is what a setting makes a command of git mean.
func alias(setting word) (name string, means []word, ok bool) {
	key, value, _ := strings.Cut(setting.text, "=")
	if len(key) <= len("alias.") || !strings.EqualFold(key[:len("alias.")], "alias.") {
		return "", nil, false
	}
	for _, text := range strings.Fields(value) {
		means = append(means, word{text, true, text})
	}
	return key[len("alias."):], means, true
}

// runs judges the command that git is told to run for each commit or submodule.
func (w *walk) runs(args []word, depth int) (Finding, bool) {
	i := slices.IndexFunc(args, func(a word) bool { return a.text == "foreach" || a.text == "run" })
	text := slices.Clone(args[i+1:])
	for len(text) > 0 && strings.HasPrefix(text[0].whole, "-") {
		text = text[1:]
	}
	if i < 0 || len(text) == 0 {
		return Finding{}, false
	}
	for i, a := range text { // words, which git hands on as they are
		if len(text) > 1 && strings.ContainsAny(a.whole, " \t\n") && !strings.Contains(a.whole, "'") {
			text[i].whole = "'" + a.whole + "'"
		}
	}
	return w.eval(text, depth)
}

// fetches judges git fetch and git pull by the branches that they overwrite here.
func fetches(given options, refs []word) (Finding, bool) {
	force, prunes := given.find("f force") != nil, given.find("p prune") != nil
	for _, o := range given {
		if o.is("refmap") {
			refs = append(refs, o.value)
		}
	}
	found := Finding{"it moves or deletes a protected branch", "Fetch into refs/remotes, and merge that."}
	for _, a := range refs {
		_, to, both := strings.Cut(a.text, ":")
		if both && (force || strings.HasPrefix(a.text, "+") || prunes && strings.Contains(to, "*")) && shared(to) {
			return found, true
		}
	}
	return found, given.find("stdin") != nil
}

var rewrites = Finding{"it rewrites the history of a repository", "Make a new commit on a branch of its own instead."}

// setting judges KEY=VALUE or KEY VALUE, joined by =.
func setting(w word) (Finding, bool) {
	key, value, has := strings.Cut(w.text, "=")
	if !w.known && !has {
		return Finding{"it sets a git setting whose name cannot be read", "Write the key out."}, true
	}
	if !programKey(strings.ToLower(key), value, w.known) {
		return Finding{}, false
	}
	return Finding{"it sets " + key + ", which lets git run other programs or hand out credentials", "Run git without that setting."}, true
}

// programKey says whether a setting makes git run something.
func programKey(key, value string, known bool) bool {
	if strings.HasPrefix(key, "alias.") {
		return !known || strings.HasPrefix(strings.TrimSpace(value), "!")
	}
	switch {
	case strings.HasPrefix(value, "ext::"):
		return true
	case known && harmless[value] && key != "core.hookspath" && !strings.HasSuffix(key, ".mirror"):
		return false
	}
	switch key {
	case "core.hookspath", "core.fsmonitor", "core.sshcommand", "core.gitproxy", "core.askpass", "core.editor", "core.pager", "core.alternaterefscommand",
		"sequence.editor", "diff.external", "gpg.program", "uploadpack.packobjectshook", "init.templatedir", "include.path", "protocol.allow",
		"protocol.ext.allow", "credential.helper", "interactive.difffilter", "core.attributesfile":
		return true
	}
	section, name := key, ""
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		section, name = key[:i], key[i+1:]
	}
	section, _, _ = strings.Cut(section, ".")
	switch section + "." + name {
	case "remote.mirror":
		return !known || value != "false"
	case "remote.fetch":
		_, to, _ := strings.Cut(value, ":")
		return strings.HasPrefix(value, "+") && shared(to)
	case "remote.push":
		return !known || strings.HasPrefix(value, "+") || strings.HasPrefix(value, ":")
	case "credential.helper", "includeif.path", "filter.clean", "filter.smudge", "filter.process", "diff.command", "diff.textconv", "merge.driver", "mergetool.cmd", "difftool.cmd", "guitool.cmd",
		"mergetool.path", "difftool.path", "man.path", "browser.path", "trailer.cmd", "trailer.command", "tar.command", "gpg.defaultkeycommand", "imap.tunnel", "instaweb.httpd", "sendemail.sendmailcmd",
		"sendemail.tocmd", "sendemail.cccmd", "sendemail.headercmd",
		"remote.uploadpack", "remote.receivepack", "remote.vcs", "gpg.program", "browser.cmd", "man.cmd", "pager." + name, "url.insteadof", "url.pushinsteadof", "submodule.update", "hook.command":
		return section != "submodule" || !known || strings.HasPrefix(value, "!")
	}
	return false
}

// config judges git config: only what changes something.
func (w *walk) config(given options, names []word, depth int) (Finding, bool) {
	action := ""
	if len(names) > 0 && names[0].known && commands.Listed("get list edit set unset remove-section rename-section", names[0].text) {
		action = names[0].text
		_, names = read("config", names[1:], true)
	}
	for _, o := range given {
		switch {
		case o.is("unset unset-all"):
			action = "unset"
		case o.is("remove-section rename-section"):
			action = o.names[0]
		case o.is("e edit"):
			action = "edit"
		case len(o.names) == 1 && (o.is("l list") || strings.HasPrefix(o.names[0], "get")):
			action = "get"
		}
	}
	switch action {
	case "get", "list":
		return Finding{}, false
	case "edit":
		return configFinding, true
	case "unset":
		return unset(names)
	case "remove-section", "rename-section":
		return section(names, action == "rename-section")
	}
	if len(names) < 2 {
		return Finding{}, false
	}
	set := names[0]
	if set.known {
		set = word{text: names[0].text + "=" + names[1].text, known: names[1].known}
	}
	if _, means, ok := alias(set); ok && depth <= maxNested { // for as long as it is there
		if f, ok := w.git(means, depth+1); ok {
			return f, true
		}
	}
	return setting(set)
}

// unset judges a setting that is taken away. Only one stands for what somebody else wanted to be run.
func unset(names []word) (Finding, bool) {
	if len(names) > 0 && (!names[0].known || strings.EqualFold(names[0].text, "core.hookspath")) {
		return Finding{"it takes away " + names[0].whole + ", where hooks may be", "Leave core.hooksPath as it is."}, true
	}
	return Finding{}, false
}

// section judges a section that is removed, or gets another name.
func section(names []word, renames bool) (Finding, bool) {
	if len(names) == 0 {
		return Finding{}, false
	}
	of := func(w word) string {
		name, _, _ := strings.Cut(strings.ToLower(w.text), ".")
		return name
	}
	found := Finding{"it renames or removes a section of git's settings, which can name programs to run", "Set what is needed with git config, one key at a time."}
	if !names[0].known || of(names[0]) == "core" {
		return found, true
	}
	return found, renames && len(names) > 1 && (!names[1].known || of(names[0]) != of(names[1]))
}

// fresh judges git clone and git init.
func fresh(given options) (Finding, bool) {
	for _, o := range given {
		if o.is("template") && o.value.whole != "" {
			return Finding{"it takes hooks from a template", "Run it without --template."}, true
		}
		if o.is("c config") {
			if f, ok := setting(o.value); ok {
				return f, true
			}
		}
	}
	return Finding{}, false
}

// packs refuses options that name the program at the other end.
func packs(o *option) (Finding, bool) {
	return Finding{"it names the program that git runs at the other end (" + o.as + ")", "Run git without that option."}, true
}

var (
	forced = Finding{
		"it overwrites a protected branch of the remote, or one that the command does not name", "Push to a branch of its own without --force, and let the user merge it.",
	}
	deletes = Finding{"it deletes refs of the remote", "Leave them; the user can delete them."}
)

// push judges git push.
func push(given options, named []word) (Finding, bool) {
	if given.find("d delete mirror prune") != nil {
		return deletes, true
	}
	force := given.find("f force force-with-lease force-if-includes") != nil
	refs := named[min(1, len(named)):]
	for _, r := range refs {
		ref, plus := strings.CutPrefix(r.text, "+")
		if strings.HasPrefix(ref, ":") && (len(ref) > 1 || !r.known) {
			return deletes, true
		}
		to := ref[strings.LastIndexByte(ref, ':')+1:]
		if (force || plus) && (!r.known || to == "" || shared(to)) {
			return forced, true
		}
	}
	return forced, force && (len(refs) == 0 || given.find("all branches stdin") != nil)
}

var moves = Finding{"it moves or deletes a protected branch", "Make a branch of its own (git switch -c NAME) and commit there."}

// shared says whether others build on a branch, or on one that a pattern finds; HEAD may be one.
func shared(ref string) bool {
	if !strings.HasPrefix(ref, "refs/") && !strings.Contains(ref, "*") {
		ref = "refs/heads/" + strings.TrimPrefix(ref, "heads/")
	}
	return slices.ContainsFunc(strings.Fields("main master trunk develop production prod stable HEAD @ release/* release-* releases* hotfix/*"), func(name string) bool {
		return overlap(ref, "refs/heads/"+name)
	})
}

// overlap says whether a name is met by two patterns of git's, each with one star or none.
func overlap(a, b string) bool {
	begin, end, open := strings.Cut(a, "*")
	first, last, also := strings.Cut(b, "*")
	switch {
	case open && also:
		return (strings.HasPrefix(begin, first) || strings.HasPrefix(first, begin)) && (strings.HasSuffix(end, last) || strings.HasSuffix(last, end))
	case also:
		return overlap(b, a)
	case open:
		return len(b) >= len(a)-1 && strings.HasPrefix(b, begin) && strings.HasSuffix(b, end)
	}
	return a == b
}
