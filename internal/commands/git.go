package commands

import "strings"

const gitConfigured = "settings, attributes and filters of the repository can run programs here"

// A repository's configuration can name programs for nearly everything git does: a
// pager on a terminal, fsmonitor and filters where the working tree is looked at,
// textconv and external tools where changes are shown, a transport where an object is
// missing (partial clones). Local is what does none of it; and, where the host looked at the repository and found no setting
// that names a program (Call.Git, F20), what only reads. From a text alone no set of options is enough: log fetches what is missing
// by core.sshCommand, and format.pretty has gpg run.
//
// Values of options are accepted where they are glued, and operands that begin with a dash are not: so it does not matter which
// options take the next word for their value, in this version of git or another.
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
		Sub: gitSubcommands, Check: checkGit, Env: "GIT_EDITOR GIT_ASKPASS EDITOR VISUAL",
		Why: "each subcommand is judged apart", Example: "git --no-pager remote -v",
	},
	{Names: "git-upload-pack git-receive-pack git-remote-https git-remote-http git-remote-ext git-shell git-daemon git-http-backend gitk tig lazygit", Class: Network, Rest: Data, Why: "serves or reaches a repository over the network, or runs what is configured"},
}

var gitSubcommands = []*Command{
	{Names: "version", Class: Local, Long: "build-options", Max: None, Why: "prints the version", Example: "git version"},
	{
		Names: "rev-parse", Class: Local, Exact: true, Check: checkRevision, Rest: Data,
		Long: "show-toplevel git-dir absolute-git-dir git-common-dir show-prefix show-cdup is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository " +
			"abbrev-ref verify quiet symbolic symbolic-full-name show-object-format short=?",
		Short: "q", Why: "turns names of branches into hashes; names that read an object (HEAD^, a:b), and --short, as git log", Example: "git --no-pager rev-parse --abbrev-ref HEAD",
	},
	{
		Names: "log show diff whatchanged rev-list diff-tree", Class: Local, Exact: true, Number: true, Check: checkReading, Rest: Data,
		Short: gitLogShort, Long: gitLogLong, Values: gitFormats, Language: gitFormat, Why: gitReads, Example: "git log --oneline -5",
	},
	{
		Names: "status", Class: Local, Exact: true, Check: checkReading, Rest: Data, Short: "sbzu::M::",
		Long: "short branch porcelain=? long untracked-files=? ignored=? column=? no-column ahead-behind no-ahead-behind renames no-renames find-renames=? show-stash ignore-submodules=? null",
		Why:  gitReads, Example: "git status --short",
	},
	{
		Names: "blame annotate", Class: Local, Exact: true, Check: checkReading, Rest: Data, Short: "bltfnsewpcM::C::L::",
		Long: "root show-stats porcelain line-porcelain incremental show-name show-number show-email date=? first-parent since=? encoding=? abbrev=? ignore-rev=? color-lines color-by-age progress no-progress reverse",
		Why:  gitReads, Example: "git blame -L 1,20 main.go",
	},
	{
		Names: "ls-files", Class: Local, Exact: true, Check: checkReading, Rest: Data, Short: "cdmosiuktvzx::X::",
		Long: "cached deleted modified others stage ignored unmerged killed exclude=? exclude-from=? exclude-per-directory=? exclude-standard error-unmatch with-tree=? full-name abbrev=? deduplicate directory no-empty-directory eol sparse",
		Why:  gitReads, Example: "git ls-files -o --exclude-standard",
	},
	{
		Names: "grep", Class: Local, Exact: true, Check: checkReading, Rest: Data, Short: "aIinwvhHlLzcoEGFPWpqr0e::f::A::B::C::m::",
		Long: "cached no-index untracked exclude-standard no-exclude-standard text ignore-case word-regexp invert-match max-depth=? recursive extended-regexp basic-regexp perl-regexp fixed-strings line-number column " +
			"full-name files-with-matches name-only files-without-match null only-matching count color=? no-color break heading show-function context=? after-context=? before-context=? function-context max-count=? " +
			"threads=? and or not all-match quiet",
		Why: gitReads, Example: "git grep -n main",
	},
	{
		Names: "branch", Class: Local, Exact: true, Check: checkBranch, Rest: Data, Short: "arvqi",
		Long: "show-current list all remotes verbose quiet merged=? no-merged=? contains=? no-contains=? points-at=? sort=? color=? no-color column=? no-column ignore-case abbrev=? no-abbrev",
		Why:  "prints the current branch; lists branches as git log; not with a name, unless --list is there", Example: "git --no-pager branch --show-current",
	},
	{
		Names: "tag", Class: Local, Exact: true, Check: checkBranch, Rest: Data, Short: "ln::i",
		Long: "list sort=? contains=? no-contains=? merged=? no-merged=? points-at=? column=? no-column color=? ignore-case",
		Why:  gitReads + "; not with a name, unless --list or -l is there", Example: "git tag -l v1.*",
	},
	{
		Names: "stash", Class: Local, Stop: true, Exact: true,
		Sub: []*Command{{Names: "list show", Class: Local, Exact: true, Number: true, Check: checkReading, Rest: Data, Short: gitLogShort, Long: gitLogLong, Values: gitFormats, Language: gitFormat, Why: gitReads, Example: "git stash list"}},
		Why: "lists and shows what was put aside", Example: "git stash list",
	},
	{Names: "reflog", Class: Local, Exact: true, Number: true, Check: checkReading, Max: None, Short: gitLogShort, Long: gitLogLong, Values: gitFormats, Language: gitFormat, Why: gitReads, Example: "git reflog -5"},
	{Names: "shortlog", Class: Local, Exact: true, Check: checkReading, Rest: Data, Short: "sne", Long: "summary numbered email no-merges all since=? until=? author=?", Why: gitReads, Example: "git shortlog -sn HEAD"},
	{Names: "describe", Class: Local, Exact: true, Check: checkReading, Rest: Data, Long: "all tags contains abbrev=? candidates=? exact-match debug long match=? exclude=? always first-parent", Why: gitReads, Example: "git describe --tags"},
	{
		Names: "cat-file ls-tree show-ref for-each-ref merge-base name-rev check-ignore", Class: Local, Exact: true, Check: checkReading, Rest: Data, Short: "adeprsvtnqz",
		Long: "name-only name-status full-name full-tree abbrev=? all octopus is-ancestor independent fork-point verify heads tags hash=? dereference count=? sort=? points-at=? merged=? contains=? refs=? always no-undefined verbose quiet non-matching",
		Why:  gitReads, Example: "git cat-file -p HEAD:main.go",
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
	{Names: "add commit checkout switch restore reset merge cherry-pick revert format-patch apply am rm mv clean init worktree notes gc fsck prune repack update-index diff-index diff-files range-diff symbolic-ref update-ref help", Class: Grey, AnyArgs: true, Rest: Data, Why: gitConfigured},
}

const (
	gitReads = "reads the repository; local where the host has found that no setting of it, of the user or of the system can run a program or fetch"

	gitLogShort = "puszaRbwWrtmcgiEFPDU::S::G::I::B::M::C::X::l::L::n::"
	gitLogLong  = "patch no-patch unified=? raw patch-with-raw patch-with-stat minimal patience histogram anchored=? diff-algorithm=? stat=? stat-width=? stat-name-width=? stat-count=? stat-graph-width=? compact-summary " +
		"numstat shortstat dirstat=? cumulative dirstat-by-file=? summary name-only name-status color=? no-color color-moved=? no-color-moved color-moved-ws=? word-diff=? word-diff-regex=? color-words=? no-renames " +
		"rename-empty no-rename-empty check ws-error-highlight=? full-index binary abbrev=? break-rewrites=? find-renames=? find-copies=? find-copies-harder irreversible-delete diff-filter=? find-object=? pickaxe-all " +
		"pickaxe-regex relative=? no-relative text ignore-cr-at-eol ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines=? inter-hunk-context=? function-context exit-code " +
		"quiet no-ext-diff no-textconv no-show-signature ignore-submodules=? src-prefix=? dst-prefix=? no-prefix line-prefix=? merge-base cached staged indent-heuristic no-indent-heuristic " +
		"follow decorate=? no-decorate decorate-refs=? decorate-refs-exclude=? source use-mailmap mailmap log-size max-count=? skip=? since=? after=? until=? before=? author=? committer=? grep=? all-match invert-grep " +
		"regexp-ignore-case basic-regexp extended-regexp fixed-strings perl-regexp merges no-merges min-parents=? max-parents=? first-parent not all branches=? tags=? remotes=? glob=? exclude=? reflog walk-reflogs merge " +
		"boundary simplify-by-decoration full-history dense sparse simplify-merges ancestry-path=? date-order author-date-order topo-order reverse no-walk=? do-walk pretty=? format=? abbrev-commit no-abbrev-commit " +
		"oneline encoding=? notes no-notes relative-date date=? parents children left-right left-only right-only cherry-pick cherry-mark cherry graph no-graph show-linear-break count objects"
)

var gitFormats = []Value{{Options: "--format --pretty", Role: Code}}

// gitFormat accepts formats that run nothing: %G asks gpg, %(describe) runs git, %(trailers) may do as it is configured.
func gitFormat(text string) Script {
	if i := max(strings.Index(text, "%G"), strings.Index(text, "%(")); i >= 0 {
		return Script{At: i, Why: "this placeholder can run programs"}
	}
	return Script{OK: true}
}

// checkGit finds where a pager may run, as it is configured. Tried with git 2.39 on a terminal: rev-parse and branch --show-current
// run none there, whatever pager.NAME says; remote does.
func checkGit(c *Call) {
	if len(c.Operands) == 0 || c.Piped || c.Operands[0].Fixed && Listed("version rev-parse branch", c.Operands[0].Text) {
		return
	}
	if _, ok := c.Option("--no-pager", "-P"); !ok {
		c.Git = "on a terminal git runs the pager that is configured; --no-pager or a pipe prevents it"
	}
}

// checkReading is for what only reads, as the repository's settings say.
func checkReading(c *Call) {
	c.Git = gitConfigured
	for _, w := range c.Operands {
		if w.Text != "-" && w.MayBeOption() { // behind --
			c.Grey(w, "option-unknown", "git may take this for an option")
		}
	}
}

// checkRevision tells apart plain names, which are looked up without reading an object.
func checkRevision(c *Call) {
	for _, w := range c.Operands {
		if !w.Fixed || strings.ContainsAny(w.Text, "^~:@{}") {
			checkReading(c)
			c.Git = "git may fetch an object that is missing, as it is configured"
		}
	}
	if _, ok := c.Option("--short"); ok {
		checkReading(c)
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

// checkBranch accepts what lists, and branch --show-current.
func checkBranch(c *Call) {
	_, current := c.Option("--show-current")
	if !current {
		checkReading(c)
	}
	if _, list := c.Option("--list", "-l"); len(c.Operands) > 0 && !list {
		c.Grey(c.Operands[0], "operand-count", "makes or changes a branch or a tag")
	}
}
