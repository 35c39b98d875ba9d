package gitguard

import (
	"path"
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
	if f, ok := packs(sub, rest); ok {
		return f, true
	}
	switch sub {
	case "push", "send-pack", "http-push":
		*w.pushes = true
		return push(rest)
	case "subtree", "lfs", "svn", "p4":
		*w.pushes = *w.pushes || slices.ContainsFunc(rest, func(a word) bool { return commands.Listed("push dcommit submit", a.text) })
	case "remote":
		return deletes, slices.ContainsFunc(rest, func(a word) bool { return a.text == "--mirror" || a.text == "--mirror=push" })
	case "config":
		if i := len(rest) - 2; i >= 0 { // for as long as it is there
			if _, means, ok := alias(word{text: rest[i].text + "=" + rest[i+1].text, known: rest[i+1].known}); ok && depth <= maxNested {
				if f, ok := w.git(means, depth+1); ok {
					return f, true
				}
			}
		}
		return config(rest)
	case "submodule", "bisect", "rebase", "stash", "difftool":
		return w.runs(sub, rest, depth)
	case "fetch", "pull":
		return fetches(rest)
	case "clone", "init":
		return fresh(rest)
	case "filter-branch", "filter-repo":
		return rewrites, true
	case "branch":
		return moves(rest, "fDdMm", "--force", "--delete", "--move")
	case "for-each-repo":
		for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") {
			n := 1
			if rest[0].text == "--config" {
				n = 2
			}
			rest = rest[min(n, len(rest)):]
		}
		if depth <= maxNested {
			return w.git(rest, depth+1)
		}
	case "checkout", "worktree":
		return moves(rest, "B")
	case "switch":
		return moves(rest, "C", "--force-create")
	case "update-ref":
		return moves(rest, "*")
	}
	return Finding{}, false
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

// runs judges the commands that git is told to run for each commit or submodule.
func (w *walk) runs(sub string, args []word, depth int) (Finding, bool) {
	for i, a := range args {
		var text []word
		switch value, glued := strings.CutPrefix(a.whole, "--exec="); {
		case sub == "rebase" && glued:
			text = []word{{whole: value}}
		case sub == "rebase" && (a.text == "-x" || a.text == "--exec"), sub == "difftool" && (a.text == "-x" || a.text == "--extcmd"):
			text = args[i+1 : min(i+2, len(args))]
		case sub == "rebase" && strings.HasPrefix(a.text, "-x"):
			text = []word{{whole: a.whole[2:]}}
		case sub == "submodule" && a.text == "foreach", sub == "bisect" && a.text == "run":
			text = args[i+1:]
		}
		for len(text) > 0 && strings.HasPrefix(text[0].whole, "-") {
			text = text[1:]
		}
		if len(text) > 1 { // words, which git hands on as they are
			text = slices.Clone(text)
			for i, a := range text {
				if strings.ContainsAny(a.whole, " \t\n") && !strings.Contains(a.whole, "'") {
					text[i].whole = "'" + a.whole + "'"
				}
			}
		}
		if len(text) > 0 {
			return w.eval(text, depth)
		}
	}
	return Finding{}, false
}

// fetches judges git fetch and git pull by the branches that they overwrite here.
func fetches(args []word) (Finding, bool) {
	force := slices.ContainsFunc(args, func(a word) bool { return a.text == "-f" || long(a.text, "--force", 5) })
	for _, a := range args {
		source, to, both := strings.Cut(a.text, ":")
		if both && (force || strings.HasPrefix(source, "+")) && !strings.HasPrefix(to, "refs/remotes/") && shared(to) {
			return Finding{"it moves or deletes a protected branch", "Fetch into refs/remotes, and merge that."}, true
		}
	}
	return Finding{}, false
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
func config(args []word) (Finding, bool) {
	var names []word
	action := ""
	for i, a := range args {
		switch name, _, _ := strings.Cut(a.text, "="); {
		case !strings.HasPrefix(a.text, "-") || len(names) > 0:
			names = append(names, a)
			continue
		case strings.HasPrefix(name, "--get") || name == "-l" || long(name, "--list", 4):
			return Finding{}, false
		case long(name, "--unset-all", 4):
			action = "unset"
		case long(name, "--remove-section", 5), long(name, "--rename-section", 5):
			action = name[2:5]
		case name == "-e" || long(name, "--edit", 4):
			return configFinding, true
		case a.text == "-f" || a.text == "--file" || a.text == "--type" || a.text == "--default":
			if i+1 < len(args) {
				return config(append(append([]word{}, args[:i]...), args[i+2:]...))
			}
		}
	}
	if len(names) == 0 {
		return Finding{}, false
	}
	if names[0].known && action == "" {
		switch sub := names[0].text; sub {
		case "get", "list":
			return Finding{}, false
		case "edit":
			return configFinding, true
		case "set", "unset", "remove-section", "rename-section":
			action = sub[:min(len(sub), 5)]
			for names = names[1:]; len(names) > 0 && strings.HasPrefix(names[0].text, "-"); names = names[1:] {
				if name, _, glued := strings.Cut(names[0].text, "="); !glued && commands.Listed("-f --file --blob --comment --type --value", name) && len(names) > 1 {
					names = names[1:]
				}
			}
		}
	}
	switch action {
	case "unset":
		return unset(names)
	case "rem", "remov", "ren", "renam":
		return section(names, strings.HasPrefix(action, "ren"))
	}
	if len(names) < 2 {
		return Finding{}, false
	}
	if !names[0].known {
		return setting(names[0])
	}
	return setting(word{text: names[0].text + "=" + names[1].text, known: names[1].known})
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
func fresh(args []word) (Finding, bool) {
	for i, a := range args {
		switch {
		case (a.text == "-c" || a.text == "--config") && i+1 < len(args):
			if f, ok := setting(args[i+1]); ok {
				return f, true
			}
		case strings.HasPrefix(a.text, "--config="):
			if f, ok := setting(word{text: strings.TrimPrefix(a.text, "--config="), known: a.known}); ok {
				return f, true
			}
		case strings.HasPrefix(a.text, "--template") && a.text != "--template=":
			return Finding{"it takes hooks from a template", "Run it without --template."}, true
		}
	}
	return Finding{}, false
}

// packs finds options that name the program at the other end, also shortened.
func packs(sub string, args []word) (Finding, bool) {
	switch sub {
	case "fetch", "pull", "clone", "ls-remote", "push", "archive", "fetch-pack", "send-pack", "submodule", "remote":
	default:
		return Finding{}, false
	}
	for i, a := range args {
		name, _, _ := strings.Cut(a.text, "=")
		long := len(name) > 5 && (strings.HasPrefix("--upload-pack", name) || strings.HasPrefix("--receive-pack", name))
		if long || name == "--exec" || sub == "clone" && (a.text == "-u" || strings.HasPrefix(a.text, "-u") && len(a.text) > 2 && i == 0) {
			return Finding{"it names the program that git runs at the other end (" + name + ")", "Run git without that option."}, true
		}
		if _, value, _ := strings.Cut(a.text, "="); strings.HasPrefix(a.text, "ext::") || strings.HasPrefix(value, "ext::") {
			return Finding{"it uses the transport ext::, which runs a program", "Use the https or ssh address of the repository."}, true
		}
	}
	return Finding{}, false
}

var (
	forced = Finding{
		"it overwrites a protected branch of the remote, or one that the command does not name", "Push to a branch of its own without --force, and let the user merge it.",
	}
	deletes = Finding{"it deletes refs of the remote", "Leave them; the user can delete them."}
)

// push judges git push.
func push(args []word) (Finding, bool) {
	var named []word
	force, all := false, false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.text == "--":
		case strings.HasPrefix(a.text, "--"):
			name, _, _ := strings.Cut(a.text, "=")
			switch {
			case long(name, "--delete", 4), long(name, "--mirror", 4), long(name, "--prune", 5):
				return deletes, true
			case long(name, "--force", 5), strings.HasPrefix(name, "--force-"):
				force = true
			case long(name, "--all", 4), long(name, "--branches", 4):
				all = true
			case name == a.text && (name == "--repo" || name == "--push-option"):
				i++
			}
		case strings.HasPrefix(a.text, "-") && len(a.text) > 1:
			if strings.Contains(a.text, "d") {
				return deletes, true
			}
			force = force || strings.Contains(a.text, "f")
			if strings.HasSuffix(a.text, "o") {
				i++
			}
		default:
			named = append(named, a)
		}
	}
	refs := named[min(1, len(named)):]
	for _, r := range refs {
		if strings.HasPrefix(r.text, ":") && len(r.text) > 1 {
			return deletes, true
		}
		plus := strings.HasPrefix(r.text, "+")
		if (force || plus) && (!r.known || shared(target(r.text))) {
			return forced, true
		}
	}
	if force && (len(refs) == 0 || all) {
		return forced, true
	}
	return Finding{}, false
}

// long says whether an option is a name or a shortened form of it.
func long(option, name string, least int) bool {
	return len(option) >= least && strings.HasPrefix(name, option)
}

// target is where SOURCE:TARGET goes.
func target(ref string) string {
	ref = strings.TrimPrefix(ref, "+")
	if i := strings.LastIndexByte(ref, ':'); i >= 0 {
		ref = ref[i+1:]
	}
	return ref
}

// shared says whether others build on a branch; HEAD may be one.
func shared(ref string) bool {
	ref = strings.TrimPrefix(strings.TrimPrefix(ref, "refs/"), "heads/")
	switch ref {
	case "main", "master", "trunk", "develop", "production", "prod", "stable", "HEAD", "@", "*":
		return true
	}
	ok, _ := path.Match("release[s/-]*", ref)
	return ok || strings.HasPrefix(ref, "release/") || strings.HasPrefix(ref, "hotfix/")
}

// moves finds a protected branch that is moved or deleted here: with one of the letters or long options, and its name.
func moves(args []word, letters string, longs ...string) (Finding, bool) {
	does, names := letters == "*", false
	for _, a := range args {
		switch {
		case strings.HasPrefix(a.text, "--"):
			name, value, _ := strings.Cut(a.text, "=")
			for _, l := range longs {
				if long(name, l, 5) {
					does, names = true, names || shared(value)
				}
			}
		case strings.HasPrefix(a.text, "-"):
			does = does || strings.ContainsAny(a.text[1:], letters)
		default:
			names = names || a.text != "HEAD" && shared(a.text)
		}
	}
	if does && names {
		return Finding{"it moves or deletes a protected branch", "Make a branch of its own (git switch -c NAME) and commit there."}, true
	}
	return Finding{}, false
}
