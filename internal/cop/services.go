package cop

import (
	"slices"
	"strings"

	"weir/internal/commands"
)

// has tells whether one of the words is one of the verbs.
func has(args []word, verbs string) bool {
	return slices.ContainsFunc(args, func(w word) bool { return w.text != "" && strings.Contains(" "+verbs+" ", " "+w.text+" ") })
}

// first gives the n words that are no options, from the first on.
func first(args []word, n int) []word {
	var out []word
	for _, w := range args {
		if len(out) < n && !strings.HasPrefix(w.text, "-") {
			out = append(out, w)
		}
	}
	return out
}

// asks are verbs that ask a service and give it nothing.
const asks = "get list ls describe show help version info status logs log view search inspect images ps top stats history diff config configure env events port tag " +
	"completion explain api-resources cluster-info checks clone pull fetch"

// localDocker are verbs of container tools that need no network of the caller, or are builds.
const localDocker = "ps images logs inspect build run exec start stop rm rmi compose info version stats top kill restart create tag history diff events port network volume system container image"

func (r *reader) cloud(tool string, args []word) {
	r.computed(args, false)
	verbs := first(args, 3)
	switch tool {
	case "docker", "podman", "nerdctl", "buildah", "skopeo", "crane", "oras":
		if !has(verbs[:min(2, len(verbs))], "push copy cp login pull search save export") || has(first(args, 1), localDocker) && !has(verbs, "push pull") {
			return
		}
		if has(verbs, "cp save export") && tool != "skopeo" && tool != "crane" {
			return
		}
		r.out.Add(Contact, tool)
		if has(verbs, "push copy cp login") {
			r.out.Add(Send, tool+" sends an image")
		}
	default:
		if len(verbs) == 0 || has(args, "--version --help -h") {
			return
		}
		r.out.Add(Contact, tool)
		asked := false
		for _, v := range verbs {
			head, _, _ := strings.Cut(v.text, "-")
			asked = asked || strings.Contains(" "+asks+" ", " "+head+" ")
		}
		if !asked {
			r.out.Add(Send, tool+" "+verbs[0].text)
		}
	}
}

func (r *reader) versions(tool string, args []word) {
	i := 0
	for i < len(args) && strings.HasPrefix(args[i].text, "-") {
		if t := args[i].text; t == "-C" || t == "-c" || t == "--git-dir" || t == "--work-tree" || t == "--namespace" || t == "--attr-source" || t == "--config-env" {
			i++
		}
		i++
	}
	if i >= len(args) {
		return
	}
	sub, rest := args[i].text, args[i+1:]
	_, ops := split(commands.Lookup(tool).Subcommand(sub), rest)
	switch sub {
	case "push", "send-email", "svn-dcommit", "commit-tree-remote":
		if len(ops) > 0 && localRepository(ops[0]) {
			return
		}
		r.out.Add(Contact|Send, tool+" "+sub)
	case "remote-http", "remote-https":
		r.out.Add(Contact|Send, tool+" "+sub)
	case "clone", "ls-remote", "checkout", "export", "co":
		if tool == "git" && sub != "clone" && sub != "ls-remote" {
			return
		}
		if len(ops) == 0 || localRepository(ops[0]) {
			return
		}
		r.host(ops[0])
	case "fetch", "pull", "archive":
		if remote, ok := option(rest, "--remote"); sub == "archive" {
			if ok {
				r.host(remote)
			}
			return
		}
		if len(ops) > 0 && localRepository(ops[0]) {
			return
		}
		r.out.Add(Contact, tool+" "+sub)
		if len(ops) > 0 && strings.Contains(ops[0].text, ":") {
			r.host(ops[0])
		}
	case "remote", "submodule", "lfs":
		if has(rest, "update push pull fetch prune") {
			r.out.Add(Contact, tool+" "+sub)
		}
		if sub == "lfs" && has(rest, "push") {
			r.out.Add(Send, "git lfs push")
		}
	case "commit", "ci":
		if tool == "svn" {
			r.out.Add(Contact|Send, "svn commit")
		}
	}
	r.computed(rest, sub == "push" || sub == "clone" || sub == "ls-remote")
}

// localRepository tells whether a repository is surely a directory.
func localRepository(w word) bool {
	t := w.text
	if host, ok := Host(t); ok && strings.Contains(t, "://") && Local(host) {
		return true
	}
	return w.known() && (strings.HasPrefix(t, "/") || strings.HasPrefix(t, "./") || strings.HasPrefix(t, "../") || strings.HasPrefix(t, "~/") || t == "." || strings.HasPrefix(t, "file://"))
}

const (
	installs  = "install i add ci get upgrade update up sync download fetch create require wheel dist-upgrade full-upgrade dlx reinstall lock self-update"
	publishes = "publish upload push login adduser star owner yank submit"
)

func (r *reader) packages(tool string, args []word) {
	verbs := first(args, 2)
	if tool == "uv" && len(verbs) > 0 && verbs[0].text == "pip" || tool == "go" && len(verbs) > 0 && verbs[0].text == "mod" {
		verbs = verbs[1:]
	} else {
		verbs = verbs[:min(1, len(verbs))]
	}
	if tool == "pacman" && len(args) > 0 && strings.HasPrefix(args[0].text, "-S") {
		r.out.Add(Install|Contact, tool+" "+args[0].text)
		return
	}
	r.runtime = r.runtime || has(verbs, "run")
	switch {
	case len(verbs) == 0:
		if tool == "yarn" && len(args) == 0 {
			r.out.Add(Install|Contact, tool)
		}
	case has(verbs, publishes):
		r.out.Add(Contact|Send, tool+" "+verbs[0].text)
	case has(verbs, installs):
		if has(args, "--no-index --offline --dry-run --help -h") || tool == "npm" && has(args, "--prefer-offline") && has(args, "--offline") {
			return
		}
		r.out.Add(Install|Contact, tool+" "+verbs[0].text)
		for _, w := range args {
			if strings.Contains(w.text, "://") {
				r.host(w)
			}
		}
		r.computed(args, true)
	}
}
