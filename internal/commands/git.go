package commands

import (
	"strings"
)

const gitConfigured = "configuration, attributes and filters of the repository can run programs here"

// A repository's configuration can name programs for nearly everything git does: a
// pager on a terminal, fsmonitor and filters where the working tree is looked at,
// textconv and external tools where changes are shown, a transport where an object is
// missing (partial clones). Local is what does none of it, and then only without a pager: one runs on a terminal alone.
var gitCommands = []*Command{
	{
		Names: "git", Class: Local, Stop: true, Bare: true, Exact: true,
		Short: "C:PvVh", Long: "no-pager version no-optional-locks literal-pathspecs no-replace-objects",
		Refuse: []Refusal{
			{Options: "-c --config-env=", Why: "sets configuration that can run programs"},
			{Options: "-p --paginate", Why: "runs the pager that is configured"},
			{Options: "--exec-path=", Why: "runs git's own programs from another directory", Class: Network},
			{Options: "--git-dir= --work-tree= --namespace= --bare", Why: "takes configuration from a repository that is not seen here"},
		},
		Sub: gitSubcommands, Check: checkGit,
		Why: "each subcommand is judged apart", Example: "git --no-pager remote -v",
	},
	{Names: "git-upload-pack git-receive-pack git-remote-https git-remote-http git-remote-ext git-shell git-daemon git-http-backend gitk tig lazygit", Class: Network, Rest: Data, Why: "serves or reaches a repository over the network, or runs what is configured"},
}

var gitSubcommands = []*Command{
	{Names: "version", Class: Local, Long: "build-options", Max: None, Why: "prints the version", Example: "git version"},
	{
		Names: "rev-parse", Class: Local, Exact: true, Check: checkRevision, Rest: Data,
		Long: "show-toplevel git-dir absolute-git-dir git-common-dir show-prefix show-cdup is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository " +
			"abbrev-ref verify quiet symbolic symbolic-full-name show-object-format",
		Short: "q", Why: "turns names of branches into hashes; names that would read an object (HEAD^, a:b) are not accepted", Example: "git --no-pager rev-parse --abbrev-ref HEAD",
	},
	{
		Names: "config", Class: Local, Exact: true, Check: checkGitConfig, Rest: Data, Max: 2, Short: "lz",
		Long: "get get-all get-regexp list local global system worktree show-origin show-scope name-only null bool int type= includes no-includes default=",
		Why:  "reads settings; only with --get, --get-all, --get-regexp or --list, so that nothing is set", Example: "git --no-pager config --get user.name",
	},
	{
		Names: "remote", Class: Local, Bare: true, Stop: true, Short: "v", Long: "verbose", Max: None, Exact: true,
		Sub: []*Command{
			{Names: "get-url", Class: Local, Long: "push all", Exact: true, Rest: Data, Max: 1, Why: "prints a setting", Example: "git --no-pager remote get-url origin"},
			{Names: "update show prune", Class: Network, Rest: Data, Facts: Download, Why: "asks the remote repository"},
		},
		Why: "prints the remotes that are configured", Example: "git --no-pager remote -v",
	},
	{Names: "branch", Class: Local, Exact: true, Long: "show-current", Max: None, Check: checkBranch, Why: "prints the current branch; lists may read objects", Example: "git --no-pager branch --show-current"},
	{Names: "check-ref-format", Class: Local, Exact: true, Long: "branch allow-onelevel no-allow-onelevel normalize", Rest: Data, Why: "looks at a name", Example: "git --no-pager check-ref-format refs/heads/x"},
	{
		Names: "push", Class: Network, Rest: Data, Lead: []Role{Host}, Facts: Upload, Short: "fnuqvd46o:", Long: "repo= receive-pack= exec= push-option=",
		Why: "sends a repository to another place", Example: "git push origin main",
	},
	{
		Names: "fetch pull", Class: Network, Lead: []Role{Host}, Rest: Data, Facts: Download, Short: "afknopPqrtuvj:46X:s:S::", Long: "upload-pack= depth= deepen= jobs= strategy=",
		Why: "fetches from another repository", Example: "git fetch origin",
	},
	{
		Names: "clone ls-remote", Class: Network, Lead: []Role{Host}, Rest: Write, Facts: Download, Short: "b:c:j:lno:qsu:v46",
		Long: "branch= config= depth= filter= jobs= origin= reference= separate-git-dir= template= upload-pack= server-option=",
		Why:  "fetches from another repository", Example: "git clone https://example.com/x.git",
	},
	{Names: "submodule archive send-email imap-send request-pull svn p4 cvsimport lfs bundle fetch-pack send-pack http-fetch http-push daemon instaweb upload-pack upload-archive receive-pack shell maintenance scalar credential credential-cache credential-store filter-branch", Class: Network, Rest: Data, Why: "reaches another repository or a server, or runs programs"},
	{Names: "bisect rebase difftool mergetool", Class: Network, Rest: Data, Facts: Runtime, Why: "runs commands that it is given or that are configured"},
	{Names: "status diff log show blame grep ls-files ls-tree cat-file stash add commit checkout switch restore reset merge cherry-pick revert tag describe shortlog reflog rev-list show-ref for-each-ref merge-base name-rev whatchanged format-patch apply am rm mv clean init worktree notes gc fsck prune repack update-index diff-tree diff-index diff-files range-diff symbolic-ref update-ref help", Class: Grey, AnyArgs: true, Rest: Data, Why: gitConfigured},
}

// checkGit wants --no-pager or -P for every subcommand that could use one. Tried with git 2.39 on a terminal: rev-parse and branch --show-current
// run none there, whatever pager.NAME says; remote does.
func checkGit(c *Call) {
	if len(c.Operands) == 0 || c.Piped || c.Operands[0].Fixed && OneOf(c.Operands[0].Text, "version rev-parse branch") {
		return
	}
	if _, ok := c.Option("--no-pager", "-P"); ok {
		return
	}
	if len(c.Operands) > 0 && gitLocal(c.Operands[0].Text) {
		c.Grey(c.Operands[0], "git-pager", "on a terminal git runs the pager that is configured; --no-pager or a pipe prevents it")
	}
}

func gitLocal(name string) bool {
	for _, sub := range gitSubcommands {
		if sub.Class == Local && OneOf(name, sub.Names) {
			return true
		}
	}
	return false
}

// checkRevision accepts plain names alone, which are looked up without reading an object.
func checkRevision(c *Call) {
	for _, w := range c.Operands {
		if !w.Fixed || strings.ContainsAny(w.Text, "^~:@{}") {
			c.Grey(w, "git-object", "git may fetch an object that is missing, as it is configured")
		}
	}
}

func checkGitConfig(c *Call) {
	if _, ok := c.Option("--get", "--get-all", "--get-regexp", "--list", "-l"); !ok {
		for _, w := range c.Words {
			c.Grey(w, "git-config", "this may change settings, which can run programs")
		}
		c.Become(Grey)
	}
}

// checkBranch wants --show-current.
func checkBranch(c *Call) {
	if _, ok := c.Option("--show-current"); !ok {
		c.Become(Grey)
	}
}
