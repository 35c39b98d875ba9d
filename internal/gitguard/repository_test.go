package gitguard

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/classify"
	"weir/internal/commands"
	"weir/internal/linux"
)

// world is a root directory with a repository in /w, and a program /pwn that leaves a file behind.
type world struct {
	t    *testing.T
	root string
	env  []string
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{t, t.TempDir(), nil}
	w.env = []string{"HOME=" + w.root + "/home", "PATH=/usr/bin:/bin", "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=e"}
	w.write("pwn", "#!/bin/sh\ntouch "+w.root+"/ran\ncat\n")
	if err := os.Chmod(w.root+"/pwn", 0o755); err != nil {
		t.Fatal(err)
	}
	w.write("w/a", "a\n")
	w.git("w", "init", "-q")
	w.git("w", "add", "a")
	w.git("w", "commit", "-qm", "one")
	w.write("w/a", "b\n")
	w.git("w", "commit", "-qam", "two")
	w.write("w/a", "c\n")
	w.write("w/new", "")
	return w
}

func (w world) write(name, text string) {
	w.t.Helper()
	name = filepath.Join(w.root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) git(dir string, args ...string) {
	w.t.Helper()
	cmd := exec.Command("/usr/bin/git", args...)
	cmd.Dir, cmd.Env = filepath.Join(w.root, dir), w.env
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// why is what Harmless says of a directory, with HOME as whoever sees the root writes it.
func (w world) why(dir string, env ...string) string {
	w.t.Helper()
	root, err := os.Open(w.root)
	if err != nil {
		w.t.Fatal(err)
	}
	defer root.Close()
	return Harmless(root, dir, append([]string{"HOME=/home", "PATH=/usr/local/bin:/usr/bin:/bin", "TERM=xterm"}, env...))
}

// TestF20Refused: what can make git run a program or fetch, wherever it is written, is found (F20).
func TestF20Refused(t *testing.T) {
	config := func(text string) func(world) {
		return func(w world) { w.write("w/.git/config", "[core]\n\tbare = false\n"+text) }
	}
	file := func(name, text string) func(world) { return func(w world) { w.write(name, text) } }
	cases := map[string]func(world){
		"hook":               file("w/.git/hooks/post-index-change", "#!/bin/sh\n/pwn"),
		"hook link":          func(w world) { w.link("w/.git/hooks/post-index-change", "/pwn") },
		"worktree settings":  file("w/.git/config.worktree", "[core]\n\tfsmonitor = /pwn\n"),
		"global":             file("home/.gitconfig", "[core]\n\tpager = /pwn\n"),
		"global by XDG":      file("home/.config/git/config", "[core]\n\tpager = /pwn\n"),
		"system":             file("etc/gitconfig", "[core]\n\tpager = /pwn\n"),
		"system of a prefix": file("usr/local/etc/gitconfig", "[core]\n\tpager = /pwn\n"),
		"link":               func(w world) { w.write("evil", "[core]\n\tpager = /pwn\n"); w.link("home/.gitconfig", "/evil") },
		"too large":          config(strings.Repeat("# x\n", 100_000)),
		"a directory":        file("home/.gitconfig/x", ""),
		"module": func(w world) {
			w.write("w/m/x", "")
			w.git("w/m", "init", "-q")
			w.git("w/m", "add", "x")
			w.git("w/m", "commit", "-qm", "x")
			w.git("w", "add", "m")
		},
		"damaged, below another": func(w world) {
			w.write("w/.git/config", "[core]\n\tfsmonitor = /pwn\n")
			w.write("w/sub/.git/HEAD", "nothing")
			w.write("w/sub/.git/config", "")
		},
		"bare":        func(w world) { w.write("w/sub/HEAD", "ref: refs/heads/x\n") },
		"split":       func(w world) { w.git("w", "update-index", "--split-index") },
		"large index": func(w world) { w.truncate("w/.git/index", maxIndex+1) },
		"elsewhere": func(w world) {
			w.move("w/.git", "evil")
			w.write("w/.git", "gitdir: ../evil\n")
			w.write("evil/config", "[a]\n\tb = c\n")
		},
		"elsewhere, common": func(w world) { w.write("w/.git/commondir", "../../c"); w.write("c/config", "[alias]\n\tx = !/pwn\n") },
		"a pipe":            func(w world) { w.fifo("home/.gitconfig") },
		"no repository":     func(w world) { w.move("w/.git", "gone") },
	}
	for name, text := range map[string]string{
		"pager": "[core]\n\tpager = /pwn\n", "in one line": "[core] pager = /pwn\n", "without =": "[core]\npager\n", "upper case": "[CORE]\n\tPager=/pwn\n", "continued": "[user]\n\tname = x \\\n[core]\n", "goes on": "[user]\n\tname = \\\n",
		"old subsections": "[diff.x]\n\tcommand = /pwn\n", "include": "[include]\n\tpath = /x\n", "includeIf": "[includeIf \"gitdir:/\"]\n\tpath = /x\n", "fsmonitor": "[core]\n\tfsmonitor = /pwn\n", "the daemon": "[core]\n\tfsmonitor = true\n",
		"hooks": "[core]\n\thooksPath = /x\n", "ssh": "[core]\n\tsshCommand = /pwn\n", "external": "[diff]\n\texternal = /pwn\n", "textconv": "[diff \"x\"]\n\ttextconv = /pwn\n",
		"filter": "[filter \"x\"]\n\tclean = /pwn\n", "process": "[filter \"x\"]\n\tprocess = /pwn\n", "gpg": "[gpg]\n\tprogram = /pwn\n", "signatures": "[log]\n\tshowSignature = true\n", "format": "[format]\n\tpretty = %G?\n", "pretty": "[pretty]\n\tx = %G?\n",
		"alias": "[alias]\n\tst = !/pwn\n", "promisor": "[remote \"o\"]\n\tpromisor = true\n", "partial": "[extensions]\n\tpartialClone = o\n", "modules in diff": "[diff]\n\tsubmodule = diff\n",
		"pager of one": "[pager]\n\tlog = /pwn\n", "a hook of new versions": "[hook \"x\"]\n\tcommand = /pwn\n", "trace": "[trace2]\n\teventTarget = /x\n", "merge driver": "[merge \"x\"]\n\tdriver = /pwn\n", "interactive": "[interactive]\n\tdiffFilter = /pwn\n",
		"quotes": "[user \"a\\\"]\n\tpager = /pwn\n", "a NUL": "[user]\n\tname = \x00\n", "no section": "pager = x\n", "a mark": "\ufeff[core]\n", "behind a section": "[user \"x\"] [core] \"]\n", "split": "[core]\n\tsplitIndex = true\n",
	} {
		cases["setting: "+name] = config(text)
	}
	base := newWorld(t)
	base.write("w/sub/x", "")
	base.write("home/x", "")
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			w := world{t, t.TempDir(), base.env}
			if err := os.CopyFS(w.root, os.DirFS(base.root)); err != nil {
				t.Fatal(err)
			}
			if why := w.why("/w/sub"); why != "" {
				t.Fatalf("as it was made: %s", why)
			}
			change(w)
			if why := w.why("/w/sub"); why == "" {
				t.Error("nothing is found")
			} else {
				t.Log(why)
			}
		})
	}
	w := newWorld(t)
	w.link("l", "w")
	for _, dir := range []string{"", "w", "/", "/nowhere", "/l", "/w/.git", "/w/.git/hooks"} {
		if why := w.why(dir); why == "" {
			t.Errorf("%q: nothing is found", dir)
		}
	}
	for _, env := range []string{"GIT_DIR=/x", "GIT_CONFIG_GLOBAL=/x", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_PARAMETERS='core.pager=/pwn'", "GIT_EXTERNAL_DIFF=/pwn", "GIT_PAGER=/pwn", "PAGER=/pwn", "LESSOPEN=|/pwn %s", "LESS=+!/pwn",
		"LESSKEYIN=/x", "GIT_TRACE=/x", "GIT_TRACE2_EVENT=af_unix:/x", "GIT_WORK_TREE=/x", "GIT_EXEC_PATH=/x", "GIT_SSH_COMMAND=/pwn", "CDPATH=/x", "HOME=x", "GIT_INDEX_FILE=/x", "GIT_COMMON_DIR=/x", "GIT_ATTR_SOURCE=x"} {
		if why := w.why("/w", env); why == "" {
			t.Errorf("%s: nothing is found", env)
		}
	}
	for _, env := range []string{"PAGER=cat", "GIT_PAGER=less", "LESS=-FRX", "GIT_EDITOR=true", "GIT_AUTHOR_NAME=x", "LESSOPEN=| /usr/bin/lesspipe %s"} {
		if why := w.why("/w", env); why != "" {
			t.Errorf("%s: %s", env, why)
		}
	}
}

func (w world) link(name, to string) {
	w.t.Helper()
	if err := os.Symlink(to, filepath.Join(w.root, name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) move(from, to string) {
	w.t.Helper()
	if err := os.Rename(filepath.Join(w.root, from), filepath.Join(w.root, to)); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) truncate(name string, size int64) {
	w.t.Helper()
	if err := os.Truncate(filepath.Join(w.root, name), size); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) fifo(name string) {
	w.t.Helper()
	if out, err := exec.Command("mkfifo", filepath.Join(w.root, name)).CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
}

// reads are commands that are local where the repository is harmless.
var reads = []string{
	"git status", "git diff", "git diff HEAD~1 HEAD", "git log -p --oneline", "git show HEAD", "git diff --cached", "git blame a", "git grep -n c", "git ls-files -m -o", "git branch -a", "git tag -l", "git stash list", "git reflog",
	"git describe --always", "git shortlog -sn HEAD", "git cat-file -p HEAD:a", "git ls-tree -r HEAD", "git rev-parse --short HEAD~1", "git remote -v", "git config --get user.name", "git for-each-ref", "git log --format='%h %s'", "git stash show -p",
}

// TestF20Accepted: with any setting that is accepted naming a program, whatever the command, git runs none (F20).
func TestF20Accepted(t *testing.T) {
	w := newWorld(t)
	w.write("w/.gitattributes", "* diff=x filter=x merge=x\n")
	accepted := func(dir string) string { return w.why(dir) }
	for _, text := range reads {
		if r := classify.ShellWith(text, "/w", accepted); r.Class != classify.Local {
			t.Errorf("%s: %v: %v", text, r.Class, r.Reasons)
		}
		if r := classify.Shell(text, "/w"); r.Class == classify.Local && !strings.Contains(text, "rev-parse") {
			t.Errorf("%s is local, and nobody looked at the repository", text)
		}
	}
	config := filepath.Join(w.root, "w/.git/config")
	before, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	script := strings.Join(reads, "\n") + "\ntrue\n"
	run := func(what string) {
		t.Helper()
		if why := w.why("/w"); why != "" {
			t.Errorf("%s: %s", what, why)
		}
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.Dir, cmd.Env = filepath.Join(w.root, "w"), w.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", what, err, out)
		}
		if _, err := os.Lstat(w.root + "/ran"); err == nil {
			t.Errorf("%s: git ran a program: %s", what, out)
			os.Remove(w.root + "/ran")
		}
	}
	run("as it is")
	script = "git status\ngit diff\ngit log -p --oneline\ngit show HEAD\ngit stash list\ntrue\n"
	for _, section := range slices.Sorted(maps.Keys(commands.Table("git-quiet"))) {
		head := "[" + section + "]"
		if name, ok := strings.CutSuffix(section, ".*"); ok {
			head = "[" + name + ` "x"]`
		}
		for key := range strings.FieldsSeq(commands.Table("git-quiet")[section]) {
			if section == "core" && slices.Contains([]string{"worktree", "repositoryformatversion", "bare"}, key) || section == "extensions" {
				continue // git then finds no repository
			}
			w.write("w/.git/config", string(before)+head+"\n\t"+key+" = "+w.root+"/pwn\n")
			run(section + "." + key)
		}
	}
	w.write("w/.git/config", string(before))
	w.git("w", "worktree", "add", "-q", w.root+"/tree")
	w.write("tree/.git", "gitdir: ../w/.git/worktrees/tree\n")
	if why := w.why("/tree"); why != "" {
		t.Errorf("a second working tree: %s", why)
	}
	w.write("w/.git/config", string(before)+"[diff]\n\texternal = x\n")
	if why := w.why("/tree"); why == "" {
		t.Error("a second working tree: nothing is found")
	}
}

// TestF20Process: the root and the environment are those of the process (F20).
func TestF20Process(t *testing.T) {
	if os.Getenv("WAIT") != "" {
		time.Sleep(time.Minute)
		return
	}
	w := newWorld(t)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	w.write("self", string(self))
	if err := os.Chmod(w.root+"/self", 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/self", "-test.run=^TestF20Process$")
	cmd.Env = []string{"WAIT=1", "HOME=/home", "PATH=/usr/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: w.root}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	stat, err := linux.ReadStat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	look := Repositories("", stat.PID, stat.Start)
	if why := look("/w"); why != "" {
		t.Errorf("harmless: %s", why)
	}
	if why := Repositories("", stat.PID, stat.Start+1e9)("/w"); why == "" {
		t.Error("another process: nothing is found")
	}
	w.write("w/.git/config", "[core]\n\tpager = x\n")
	if why := look("/w"); !strings.Contains(why, "core.pager") {
		t.Errorf("with a pager: %q", why)
	}
}
