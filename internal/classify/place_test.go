package classify_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/classify"
)

// TestF16DirG5: relative paths are judged from the directory that a command runs in; where that is not known, nothing relative is written (F16).
func TestF16DirG5(t *testing.T) {
	for _, c := range []struct {
		dir, text string
		local     bool
	}{
		{"/w", "echo x > config", true}, {"/home/me/p", "echo x > y", true}, {"/tmp", "tee a b", true}, {"/usr/src/app", "echo x > y", true}, {"/var/www/site/", "mkdir -p css/new", true},
		{"/w/.git", "cat config", true}, {"/etc/cron.d", "ls > /tmp/x; grep -r x . 2>/dev/null", true}, {"", "echo x > /tmp/y", true}, {"", "ls", true}, {"/root", "head -1 bin/ls", true},
		{"/w", "echo x > /w/a/b", true}, {"/w", "cd a && echo x > y", true}, {"", "cd /w && echo x > y", true}, {"/etc", "cd /w/a && ls && cd b && echo x > y | cat", true}, {"", "cd /w && echo x > /w/a; echo > /w/b", true},
		{"/w", "cd /srv/p; echo x > y", true}, {"/w", "bash -c 'echo x > y'", true}, {"/w", "find . -name x -exec tee y {} +", false},
		{"/w/.git", "echo x > config", false}, {"/w/.git/hooks", "echo x > pre-commit", false}, {"/etc/cron.d", "echo x > y", false}, {"/root", "echo x > bin/ls", false}, {"/root", "echo x > y", false},
		{"/", "echo x > y", false}, {"/home/me", "echo x > y", false}, {"/usr/local/lib", "cp /tmp/x y", false}, {"/var/spool/cron", "tee me", false}, {"/usr/src", "echo x > y", false}, {"/w/bin", "echo x > ls", false},
		{"", "echo x > y", false}, {"w", "echo x > y", false}, {"~", "echo x > y", false}, {"", "tee y", false}, {"", "mkdir a", false}, {"", "sed -i s/a/b/ y", false}, {"/etc", "bash -c 'echo x > y'", false},
		{"", "cd a && echo x > y", false}, {"", "cd /w; echo x > y", false}, {"/etc", "cd /w || ls; echo x > y", false}, {"/etc", "cd /w && ls; echo x > y", false}, {"/etc", "cd /w || ls && echo x > y", false},
		{"/etc", "! cd /w && echo x > y", false}, {"/etc", "cd /w & echo x > y", false}, {"/etc", "cd /w | ls && echo x > y", false}, {"/w", "cd /etc; cd a; echo x > y", false}, {"/w", "cd .git/hooks && echo x > y", false},
		{"/etc", "cd . && echo x > y", false}, {"/w", "cd .. && echo x > y", false}, {"/w", "env -C /etc tee y", false}, {"/etc", "f() { echo x > y; }; f", false}, {"/w", "cd $d && echo x > y", false}, {"/etc", "(cd /w); echo x > y", false},
		{"/w", "find /etc/cron.d -execdir tee y \\;", false}, {"/w", "find a -exec tee y \\;", true},
		{"/etc", "ls || cd /w && echo x > y", false}, {"/etc", "ls || cd /w && ls && echo x > y", false}, {"/etc", "cd /w && ls || ls && echo x > y", false}, {"/etc", "cd /w && { cd /w/a; ls; } && echo x > y", true},
		{"/w", "cd / && cd etc && echo x > y", false}, {"/", "cd etc && echo x > y", false}, {"/home", "cd me && echo x > y", false}, {"/etc", "cd /w && { cd /etc; ls; } && echo x > y", false},
	} {
		r := classify.Shell(c.text, c.dir)
		if (r.Class == classify.Local) != c.local {
			t.Errorf("in %q: %s: %v, want local %v: %v", c.dir, c.text, r.Class, c.local, r.Reasons)
		}
		if words := strings.Fields(c.text); !strings.ContainsAny(c.text, "&;|<>'{!$(") && words[0] != "cd" {
			if got := classify.Argv(classify.Observed{Argv: words, Dir: c.dir}).Class; got != r.Class {
				t.Errorf("in %q: seen to run: %s: %v, want %v", c.dir, c.text, got, r.Class)
			}
		}
	}
}

// TestProjectFiles: writing files of the project that something else is told to run or read is local; who runs them is judged (F17).
func TestProjectFiles(t *testing.T) {
	for _, file := range []string{"Makefile", "conftest.py", "setup.py", "package.json", "build.sh", "CLAUDE.md", "AGENTS.md"} {
		if r := classify.Shell("echo x > "+file, "/w"); r.Class != classify.Local {
			t.Errorf("%s is %v: %v", file, r.Class, r.Reasons)
		}
	}
	for _, text := range []string{"make", "pytest", "npm test", "bash build.sh"} {
		if r := classify.Shell(text, "/w"); r.Class == classify.Local {
			t.Errorf("%s is local: %v", text, r.Reasons)
		}
	}
}

// manyLogs has git look in more directories than are looked at.
var manyLogs, manyDirs = func() (logs, dirs string) {
	for i := range 17 {
		logs += fmt.Sprintf("git -C %d log; ", i)
		if i < 16 {
			dirs += fmt.Sprintf(" /w/%d", i)
		}
	}
	return logs, dirs[1:]
}()

// TestF20Directories: git's reading commands are local where every repository that they may be about was looked at, by their own words as well (F20).
func TestF20Directories(t *testing.T) {
	for _, c := range []struct {
		dir, text, looked string
		local             bool
	}{
		{"/w", "git status", "/w", true}, {"/w", "git --no-pager diff | head", "/w", true}, {"/w", "cd a && git diff", "/w/a", true}, {"/w", "cd a; git diff", "/w /w/a", true}, {"/etc", "cd /w/a && ls && git log -3", "/w/a", true},
		{"/w", "git -C b log; git -C /c show", "/w/b /c", true}, {"", "cd /w && git log", "/w", true}, {"/", "git log", "/", true}, {"/w", "ls || cd a && git log", "/w /w/a", true}, {"/w", "if ls; then cd a; fi; git log", "/w /w/a", true},
		{"/w", "(cd a && git log); git log; git status; git -C a diff", "/w/a /w", true}, {"/w", manyLogs, manyDirs, false}, {"/w", "bash -c 'cd a && git log'", "/w/a", true}, {"/w", "env A=1 git log", "/w", false}, {"/w", "timeout 5 git log", "/w", true}, {"/w", "GIT_PAGER=cat git log", "/w", true},
		{"/w", "git log -n 5 --grep x -- a.go", "/w", true}, {"/w", "git diff > /tmp/x.patch", "/w", true}, {"/w", "git rev-parse HEAD^", "/w", true}, {"/w", "git rev-parse HEAD", "", true}, {"/w", "git remote -v", "/w", true}, {"/w", "git remote -v | cat", "", true},
		{"/evil", "git status", "/evil", false}, {"/w", "cd /evil; git status", "/w /evil", false}, {"/w", "cd /evil && git status", "/evil", false}, {"/w", "git -C /evil status", "/evil", false}, {"/w", "git -C / -C evil log", "/evil", false},
		{"", "git log", "", false}, {"/w", "cd $d && git log", "", false}, {"/w", "cd ..; git log", "", false}, {"/w", "f() { git log; }; f", "", false}, {"/w", "env -C a git log", "", false}, {"/w", "find . -execdir git log ';'", "", false},
		{"/w", "git -C $d log", "", false}, {"/w", "git -C ~ log", "", false}, {"/w", "GIT_DIR=x git status", "/w", false}, {"/w", "GIT_PAGER=./p git log", "/w", false}, {"/w", "HOME=x git log", "/w", false}, {"/w", "git -c a.b=c log", "", false}, {"/w", "git --git-dir=x log", "", false},
		{"/w", "git log --output=x", "", false}, {"/w", "git log -- --output=x", "", false}, {"/w", "git log --grep -- --output=x", "", false}, {"/w", "git log --outp=x", "", false}, {"/w", "git diff --ext-diff", "", false}, {"/w", "git shortlog -sn --output=x", "", false},
		{"/w", "git log '--format=%G?'", "", false}, {"/w", "git log --pretty='%(describe)'", "", false}, {"/w", `git log --format="$x"`, "", false}, {"/w", "git log --show-signature", "", false}, {"/w", "git diff --no-index a b", "", false}, {"/w", "git log $x", "", false},
		{"/w", "git branch x", "", false}, {"/w", "git branch -v x", "", false}, {"/w", "git branch --contains x", "", false}, {"/w", "git branch -D x", "", false}, {"/w", "git tag x", "", false}, {"/w", "git tag -l 'v*'", "/w", true}, {"/w", "git branch --list 'x*'", "/w", true},
		{"/w", "cp -r evil b && cd b/evil && git status", "/w/b/evil", false}, {"/w", "for i in 1 2; do git status; mv evil b; done", "/w", false}, {"/w", "mv b c; mv evil b; cd b && git log", "/w/b", false}, {"/w", "cp a b; git diff", "/w", true}, {"/w", "rmdir b; ln -s evil b; cd b && git log", "/w/b", false},
		{"/w", "echo x > b/HEAD; cd b && git log", "/w/b", false}, {"/w", "cp x/HEAD b; git -C b log", "/w/b", false}, {"/w", "gunzip b/HEAD.gz; git -C b log", "/w/b", false},
		{"/w", "git stash", "", false}, {"/w", "git stash pop", "", false}, {"/w", "git reflog expire --all", "", false}, {"/w", "git grep -O x", "", false}, {"/w", "git cat-file --filters HEAD:f", "", false}, {"/w", "git cat-file --textconv HEAD:f", "", false},
		{"/w", "git describe --dirty", "", false}, {"/w", "git status -v", "", false}, {"/w", "git add x", "", false}, {"/w", "git ls-files --recurse-submodules", "", false}, {"/w", "git log --remerge-diff", "", false},
	} {
		var looked []string
		r := classify.ShellWith(c.text, c.dir, func(dir string) string {
			looked = append(looked, dir)
			if dir == "/evil" {
				return "the setting core.pager in /evil/.git/config"
			}
			return ""
		})
		if (r.Class == classify.Local) != c.local || strings.Join(looked, " ") != c.looked {
			t.Errorf("in %q: %s: %v after looking at %q, want local %v after %q: %v", c.dir, c.text, r.Class, looked, c.local, c.looked, r.Reasons)
		}
		if r := classify.Shell(c.text, c.dir); r.Class == classify.Local && c.looked != "" {
			t.Errorf("in %q: %s is local, and nobody looked", c.dir, c.text)
		}
	}
}
