package gitguard

import (
	"strings"
	"testing"
)

// TestDeniedG22: each way with its neighbours.
func TestDeniedG22(t *testing.T) {
	for _, text := range []string{
		// F18
		"git bisect run sh -c 'git push -f'", "git submodule foreach bash -c 'git push -f origin main'", "git for-each-repo --config=x push -f", "git for-each-repo --config x push -f origin main", "git worktree add -B main x", "echo x > \"$(git rev-parse --git-dir)/config\"", "echo x > $(git rev-parse --git-path hooks)/pre-commit",
		"cp x \"$GIT_DIR/hooks/y\"", "python3 -c \"open('.git/config','a').write('x')\"", "ruby -e 'File.write(\".git/config\",\"x\")'", "f=.git/config.bak; echo x > ${f%.bak}", "echo x > ~/.config/git/config",
		"git --config-env alias.x=A x", "git --config-env core.sshCommand=A fetch", "git config remote.origin.mirror true", "git config remote.origin.push '+refs/*:refs/*'", "git -c remote.origin.push=+main push", "git -c remote.origin.mirror=1 push", "git remote add --mirror=push x y",
		"git difftool -x 'git push -f'", "git rebase -x'git push -f' main", "sudo bash <<E\ngit push -f\nE", "echo 'git push -f origin main' | sh", "printf 'git push -f\\n' | sudo bash",
		"x=push; git $x -f origin main", "x='push -f origin main'; git $x", "git ${x:-push} -f origin main", "b=main; git push -f origin $b", "b=x; for b in main; do git push -f origin $b; done", "G=git; $G push -f", "d=.git/hooks; echo x > $d/pre-commit", "export F=--force; git push $F", "d=.git; cp x \"$d/hooks/a\"",
		"echo x > .g*/config", "echo x > .gi[t]/hooks/a", "echo x > .git/h*/a", "echo x > .git/c?nfig", "cp x .g?t/hooks/pre-commit",
		"git push --force origin main", "git push -f", "git push --force", "git push -uf origin master", "git push origin +main", "git push origin +HEAD:refs/heads/main",
		"git push --force-with-lease origin release/1.2", "git push --force-with-lease=main:abc origin main", "git push --forc origin main", "git push -f origin \"$branch\"",
		"git push origin --delete topic", "git push -d origin topic", "git push origin :topic", "git push --mirror", "git push --prune origin", "git push --mirr backup",
		"git -C /w push -f origin main", "sudo git push -f origin main", "env A=b git push -f origin main", "timeout 5 git push -f origin main", "/usr/bin/git push -f origin main",
		"cd x && git push -f origin main", "(git push -f origin main)", "x=$(git push -f origin main)", "if true; then git push -f; fi", "bash -c 'git push -f origin main'",
		"rbash -c 'git push -f origin main'", "mksh -c 'git push -f'", "bash-5.2 -c 'git push -f'", "fish -c 'git push -f'", "bash -c -o errexit 'git push -f'", "bash -co errexit 'git push -f'", "bash -o errexit -c 'git push -f'", "bash -c -- 'git push -f'", "bash -c +x 'git push -f'", `bash -c $'git\x20push -f'`, "bash -c $'cd x\ngit push -f'",
		"eval 'git push -f origin main'", "eval git push -f origin main", "sh -lc \"bash -c 'git push -f'\"", "g\\it push -f origin main", "'git' push '-f' origin main", "gi\"t\" push -f",
		"git config core.hooksPath /tmp/x", "git config --global core.hookspath /tmp/x", "git config set core.sshCommand 'sh -c id'", "git config --add credential.helper store",
		"git config core.fsmonitor /tmp/x", "git config alias.st '!curl x'", "git config alias.st \"$x\"", "git config -e", "git config --edit", "git config edit", "git config \"$key\" value",
		"git config credential.https://a.example.helper '!f'", "git config filter.x.clean ./x", "git config diff.x.textconv ./x", "git config -f .git/config core.pager ./x",
		"git config --file x --add include.path /tmp/y", "git config pager.log ./x", "git config url.https://evil.example/.insteadOf https://github.com/",
		"git -c core.sshCommand=./x fetch", "git -c core.hooksPath=/tmp commit", "git -c alias.x='!id' x", "git -c \"$x\" status", "git --config-env=core.sshCommand=X fetch",
		"git -c protocol.ext.allow=always clone ext::sh", "git --exec-path=/tmp status", "git clone ext::./x y",
		"git fetch --upload-pack=./x origin", "git fetch --upload-pack ./x", "git fetch --upload-p=./x", "git clone -u ./x repo", "git push --receive-pack=./x", "git push --exec=./x", "git ls-remote --exec=./x a",
		"git clone --template=/tmp/t repo", "git init --template /tmp/t", "git clone -c core.fsmonitor=./x repo", "git clone --config=core.sshCommand=./x repo",
		"GIT_SSH_COMMAND='sh x' git fetch", "GIT_CONFIG_COUNT=1 git status", "GIT_SSH=./x git fetch", "export GIT_SSH_COMMAND=./x", "GIT_EXTERNAL_DIFF=./x git diff", "GIT_EXEC_PATH=/tmp git log",
		"echo x > .git/hooks/pre-commit", "cat <<X >.git/hooks/pre-push\nx\nX", "cp x .git/hooks/post-merge", "ln -s /tmp/x /w/.git/hooks/pre-commit", "tee .git/hooks/x < y", "chmod +x .git/hooks/x",
		"rm .git/hooks/x", "mv x .git//hooks/x", "echo x >> sub/.git/hooks/x", "echo '[core]' >> .git/config", "sed -i s/a/b/ .git/config", "echo x > ~/.gitconfig", "cp x .git/modules/m/.git/hooks/y",
		"git config --unset core.hooksPath", "git config --global --unset-all core.hookspath", "git config unset core.hooksPath", "git config unset --global core.hooksPath", "git config unset -f .git/x core.hooksPath", "git config -f x --unset core.hooksPath", "git config core.hooksPath --unset",
		"git config --unset $key", "git config --remove-section core", "git config remove-section core", "git config --rename-section core x", "git config --rename-section x alias", "git config rename-section foo filter.x", "git config --rename-s x \"$y\"",
		"{git,push,-f,origin,main}", "{git,push} -f origin main", "git {push,-f,origin,main}", "git push {-f,origin,main}", "{git,\"push\",-f,origin,main}", "{git,push,-f,origin,$b}", "git push origin {main,+main}", "{git,} push -f", "{,git} push {-f,}", "{sudo,git,push,--force}", "bash -c '{git,push,-f}'",
		"{git,config} core.hooksPath x", "echo x > .git/{hooks/pre-commit,}", "{env,GIT_SSH=./x,git,fetch}",
		"cat <<E | sh\ngit push -f\nE", "a=(git push -f); ${a[@]}", "sudo echo 'git push -f' | bash", "echo x >& .git/hooks/a", "bash $x <<< 'git push -f'", "python3 -c \"import os; os.system('git push -f')\"", "x=${y:$(git push -f)}",
		// F18, and what is like it
		"git -c alias.p='push --force' p origin main", "git -c 'alias.p=push -f origin main' p", "git config alias.p 'push -f'", "git config --global alias.p 'push origin +main'", "git -c alias.a=b -c alias.b='push -f' a", "git-push -f origin main",
		"/usr/lib/git-core/git-push -f", "bash <<E\ngit push -f origin main\nE", "sh <<< 'git push -f origin main'", "trap 'git push -f origin main' EXIT", "git --super-prefix x push -f origin main", "git --attr-source x push -f",
		"git switch --force-create=main x", "git switch --force-c main x", "git branch --del main", "git fetch origin +x:main", "git fetch -f origin x:refs/heads/main", "git pull origin +x:main", "git archive --remote=ext::x HEAD",
		"git submodule foreach 'git push -f origin main'", "git submodule foreach --recursive git push -f origin main", "git rebase -x 'git push -f origin main' x", "git rebase --exec='git push -f' x", "git bisect run git push -f origin main",
		"echo x >> ~/.config/git/config", "echo x > \"$XDG_CONFIG_HOME/git/config\"", "echo '*.c filter=x' >> .git/info/attributes", "echo x > .git/worktrees/a/config.worktree", "git config remote.o.url 'ext::sh -c x'", "git config trailer.x.command ./x",
		"git config gpg.ssh.defaultKeyCommand ./x", "git config tar.x.command ./x", "git config mergetool.x.path ./x",
		"git filter-branch --all", "git filter-repo --path x", "git branch -f main HEAD~3", "git branch -D main", "git branch -M topic main", "git checkout -B main x", "git switch -C master", "git update-ref refs/heads/main abc",
	} {
		if _, ok := Check(text, "/w"); !ok {
			t.Errorf("%s: passes", text)
		}
	}
}

// TestPasses: ordinary work, and what only looks like it.
func TestPasses(t *testing.T) {
	for _, text := range []string{
		// F18
		"echo x > git/config", "cp a src/git/attributes", "git worktree add -b x ../y", "git worktree remove ../x", "git bisect run sh -c 'make test'", "git for-each-repo --config=x fetch", "cat \"$(git rev-parse --git-dir)/config\"", "cp \"$(git rev-parse --git-dir)/COMMIT_EDITMSG\" x", "python3 -c \"open('.git/config').read()\"",
		"git config remote.origin.push HEAD", "git config remote.origin.mirror false", "git remote add --mirror=fetch x y", "echo 'git push -f origin main' | cat", "x=status; git $x", "git ${x:-status}", "m='push -f'; git commit -m \"$m\"", "rm -rf *.o", "rm -rf .git/*", "ls .g*/config", "git --config-env=user.name=X commit", "git --config-env user.name=X commit",
		"git -c alias.l=log l", "git config alias.p push", "git config alias.co checkout", "git-lfs pull", "git submodule foreach 'git pull'", "git rebase -x 'make test' main", "git bisect run make test", "git fetch origin x:topic", "git fetch -f origin",
		"git fetch origin '+refs/heads/*:refs/remotes/origin/*'", "bash <<E\ngit status\nE", "trap 'rm -f /tmp/x' EXIT", "cat <<E\ngit push -f origin main\nE", "echo x > docs/git/configure.md", "git config remote.o.url https://a.example/x", "git stash",
		"git status", "git push origin topic", "git push -u origin feature/x", "git push", "git push --force origin topic", "git push -f origin topic:topic", "git push --tags", "git push -o ci.skip origin topic",
		"git push origin main", "git push --follow-tags", "git push --dry-run origin x", "git fetch --prune", "git fetch --unshallow", "git pull --rebase", "git clone https://a.example/x y", "git clone --depth 1 x",
		"git config user.name 'A B'", "git config --get core.hooksPath", "git config core.hooksPath", "git config --list", "git config get core.sshCommand", "git config --unset core.pager", "git config --unset-all remote.origin.fetch", "git config unset user.name", "git config --remove-section remote.x", "git config --rename-section branch.a branch.b", "git config rename-section remote.a remote.b", "echo {git,push,-f}", "git {status,-s}", "git log --format={a,b}", "git config --unset",
		"git config alias.st status", "git config core.autocrlf false", "git config --global init.defaultBranch main", "git -c user.name=x commit -m y", "git -c color.ui=never log", "git -c core.pager=cat log",
		"git --no-pager log", "git commit -m 'git push --force origin main'", "echo 'git push -f'", "echo \"git config core.hooksPath x\"", "grep -r core.hooksPath .", "git log --grep='push --force'",
		"ls .git/hooks", "cat .git/hooks/pre-commit", "cat .git/config", "cp .git/hooks/pre-commit /tmp/x", "find .git/hooks -type f", "diff .git/config x", "echo .git/hooks/x", "cat < .git/hooks/x",
		"git branch -D topic", "git branch -f topic HEAD", "git checkout main", "git checkout -b main2", "git switch -c topic", "git rebase main", "git reset --hard HEAD", "git branch --show-current", "git update-ref refs/heads/topic x",
		"GIT_EDITOR=true git rebase --continue", "GIT_PAGER=cat git log", "GIT_AUTHOR_NAME=x git commit", "GIT_SSH_COMMAND=ssh ./x", "make git", "echo gitx > digit/hooks", "vim .gitignore", "echo x > .github/hooks/x", "echo x > .gitignore",
		"git merge release/1", "git submodule update --init", "git remote -v", "git archive HEAD", "unparsable ( git push -f", "", "git", "git $cmd", "$git push -f",
	} {
		if f, ok := Check(text, "/w"); ok {
			t.Errorf("%s: %s", text, f.What)
		}
	}
}

// TestPartlyKnownG22: a text that is told a shell is read though parts of it are unknown.
func TestPartlyKnownG22(t *testing.T) {
	for _, text := range []string{
		`bash -c "git push --force origin $b"`, `bash -c "cd $dir && git push --force origin main"`, `sh -c "cd $(pwd); git push -f"`, `eval "git push --force origin $b"`, `eval git push --force "$b"`,
		`su -c "git -C $dir push --force"`, `env -S "git push --force $b"`, `bash -c "git config $key value"`, `echo x > "$d/.git/hooks/x"`, `cp x $d/.git/config`, `bash -c "echo x > $d/.git/hooks/x"`, `bash -c $x 'git push --force'`,
	} {
		if _, ok := Check(text, "/w"); !ok {
			t.Errorf("%s: passes", text)
		}
	}
	for _, text := range []string{
		`bash -c "git log $b"`, `bash -c "git commit -m '$m git push --force'"`, `bash -c "git $x"`, `eval "$(git shell $x)"`, `bash -c "$x git push --force"`,
	} {
		if f, ok := Check(text, "/w"); ok {
			t.Errorf("%s: %s", text, f.What)
		}
	}
}

// TestUnreadPartsG22: what no parser takes hides nothing that a shell runs.
func TestUnreadPartsG22(t *testing.T) {
	const push = "git push --force origin main"
	deep := strings.Repeat("$(", 500) + "id" + strings.Repeat(")", 500)
	for name, text := range map[string]string{
		"comment":         push + " #\x01",
		"return":          push + " # \r",
		"line ends":       push + "\r\ntrue\r\n",
		"no comment":      "true \x01#; " + push,
		"in a shell":      "bash -c '" + push + " #\x02'",
		"error behind it": push + "\n(",
		"error at last":   "bash -c '" + push + "\n(((' ",
		"many parts":      strings.Repeat("ls;ls\n", 40_000) + push,
		"many behind":     push + strings.Repeat("\nls;ls", 40_000),
		"deep beside":     "echo " + deep + "\n" + push,
		"deep within":     push + " " + deep,
	} {
		if _, ok := Check(text, "/w"); !ok {
			t.Errorf("%s: passes", name)
		}
	}
	for name, text := range map[string]string{
		"colours":  "printf '\x1b[1m'; git log",
		"ends":     "git status\r\ngit diff\r\n",
		"message":  "git commit -m 'no\x01 git push -f'",
		"error":    "git status\n(",
		"many":     strings.Repeat("git add a;git add b\n", 20_000),
		"deep":     "echo " + strings.Repeat("(", 2000) + "id",
		"document": "cat <<'X'\n" + strings.Repeat("a b c d e\n", 10_000) + push + "\nX\n",
	} {
		if f, ok := Check(text, "/w"); ok {
			t.Errorf("%s: %s", name, f.What)
		}
	}
}

// TestWrappedG22: whatever runs git with the rest of its words, or with a text of its own.
func TestWrappedG22(t *testing.T) {
	for _, text := range []string{
		"strace git push --force", "watch git push --force", "chroot / git push --force", "systemd-run git push --force", "unshare git push --force",
		`find . -exec git push --force {} +`, "taskset 1 git push --force", "flock /tmp/x git push --force",
		`find . -name x -exec true \; -exec git push --force \;`, "watch -n 5 'git push --force'", "flock /tmp/x -c 'git push --force'", "su -c 'git push --force' dev", "su - dev -c 'git push --force'",
		"env -S 'git push' --force", "sudo --user root git push --force", "sudo -nu root A=b git push --force", "xargs -iI git push --force", "parallel ::: 'git push --force'",
		"strace -fo /tmp/x git push --force", "sudo " + strings.Repeat("nice ", 100) + "git push --force",
		"env GIT_SSH_COMMAND=./x git fetch", "env -i GIT_SSH=$x git fetch", "sudo -u dev GIT_CONFIG_COUNT=1 git status", "nice env GIT_EXEC_PATH=/tmp nice git log", "env -S 'GIT_SSH=./x git fetch'",
		"chrt -b git push --force", "chrt -b 0 git push --force",
	} {
		if _, ok := Check(text, "/w"); !ok {
			t.Errorf("%s: passes", text)
		}
	}
	for _, text := range []string{
		"env GIT_PAGER=cat git log", "env GIT_SSH_COMMAND=./x make", "env A=GIT_SSH=x git log", "strace -e git push --force", "sudo apt-get install git", `find . -name git -exec ls {} \;`, "watch -n 5 git status", "flock /tmp/git make", "su -c 'git status'", "timeout 5 echo git push --force",
	} {
		if f, ok := Check(text, "/w"); ok {
			t.Errorf("%s: %s", text, f.What)
		}
	}
}

// TestF18OptionsG22: options as git reads them: in clusters, with glued values, with values that look like options, and shortened.
func TestF18OptionsG22(t *testing.T) {
	for _, text := range []string{
		"git push origin +:", "git push -f origin :", "git push -f origin 'refs/heads/mai*:refs/heads/mai*'", "git push --m backup", "git clone -q -u/tmp/x file:///srv/r", "git clone -qu /tmp/x file:///srv/r", "git fetch --upl=/tmp/x origin", "git ls-remote --up=/tmp/x origin",
		"git push --exe=/tmp/x origin", "git clone -ccore.sshCommand=/tmp/x a@b:c", "git clone --conf core.sshCommand=/tmp/x a@b:c", "git init --templ=/tmp/t", "git branch -C topic main", "git fetch -qf . topic:main", "git difftool --extcmd='git push -f origin main'", "git config --comment -l core.hooksPath /tmp/x",
		"git push origin +:topic", "git push -f origin 'refs/*:refs/*'", "git push origin '+*ain:*ain'", "git push -f origin 'refs/heads/rel*:refs/heads/rel*'", "git push origin '+refs/heads/release/1*:refs/heads/release/1*'", "git push --f origin main", "git push --rec /tmp/x origin", "git push -qd origin topic", "git push origin \":$b\"",
		"git push -o x -f origin main", "git push --push-option --all -f origin main", "git push -vof -f origin main", "git clone -nqu/tmp/x a@b:c", "git clone --upload /tmp/x a@b:c", "git clone -b main -u /tmp/x a@b:c", "git clone -qccore.fsmonitor=/tmp/x r", "git clone -qc core.fsmonitor=/tmp/x r", "git clone -c user.name=x -c core.fsmonitor=./x r",
		"git clone --templ /tmp/t r", "git init -q --temp /tmp/t", "git archive --exe=/tmp/x --remote=a@b:c HEAD", "git pull --upl /tmp/x", "git fetch --for . topic:main", "git fetch -4qf . topic:main", "git fetch --refmap=+topic:main . topic", "git fetch -p . 'refs/heads/none*:refs/heads/*'", "git fetch --stdin . < x",
		"git difftool -yx 'git push -f origin main'", "git rebase --exe 'git push -f' main", "git rebase -ix 'git push -f' main", "git rebase -x true -x 'git push -f' main", "git branch -qD main", "git branch --del main", "git branch -qf main HEAD~3", "git branch --cop --forc topic main", "git branch -u origin/x -f main",
		"git checkout -Bmain x", "git checkout -qB main x", "git switch -Cmain", "git switch --force-cr=main", "git switch -qC main", "git worktree add -fB main ../x", "git update-ref -d refs/heads/main", "git update-ref -m -d refs/heads/main x", "git update-ref --stdin < x", "git symbolic-ref refs/heads/main refs/heads/x", "git symbolic-ref -d refs/heads/main",
		"git config --default -l core.hooksPath x", "git config --type path core.hooksPath x", "git config -f x -e", "git config --fil x --edi", "git config --unset-a core.hooksPath", "git config -fx core.hooksPath y", "git config set --comment --all core.hooksPath x", "git config --replace-all alias.p 'push -f origin main' '.*'", "git config set --al core.hooksPath x",
		"git remote add --mirr=push x y", "git for-each-repo --conf x push -f origin main", "git for-each-repo --keep-going --config x push -f", "git send-pack --stdin --force x",
		"git grep -O'git push -f origin main' x", "git grep -nO'git push -f' x", "git grep --open='git push -f' x", "git send-email --sendmail-cmd 'git push -f' x", "git -c remote.o.fetch=+topic:main fetch o", "git config --add remote.o.fetch '+refs/heads/*:refs/heads/*'", "git push -f origin releases/1", "git submodule add ext::./x y", "git submodule update --upl=/tmp/x",
	} {
		if _, ok := Check(text, "/w"); !ok {
			t.Errorf("%s: passes", text)
		}
	}
	for _, text := range []string{
		"git push origin :", "git push origin 'refs/heads/*:refs/heads/*'", "git push -f origin 'refs/heads/me/*:refs/heads/me/*'", "git push -f origin 'refs/tags/*:refs/tags/*'", "git push -o force origin main", "git push -od origin main", "git push --push-option -f origin main", "git push -qu origin topic", "git push --forc origin topic", "git push --porc origin main",
		"git push -f origin rel", "git push -f origin maintenance", "git clone -b main --depth 1 x", "git clone -o upstream x", "git clone -qc user.name=x r", "git clone --template= r", "git clone --config user.name=x r", "git clone -j 4 --recurse-submodules x", "git fetch -u origin", "git fetch -j 4 origin", "git fetch -p origin '+refs/heads/*:refs/remotes/origin/*'", "git fetch -qf origin", "git fetch --depth 1 origin main",
		"git fetch --update-head-ok origin main:main", "git ls-remote -q origin", "git ls-remote --sort -v:refname origin", "git init -b main", "git init --sep /tmp/x", "git archive --format=tar HEAD", "git branch -C main topic", "git branch -c main topic", "git branch -u origin/main", "git branch --set-upstream-to=origin/main main", "git branch --contains main", "git branch -D topic", "git branch --merged main",
		"git checkout -b main", "git checkout -B topic main", "git switch -C topic main", "git switch -fc topic", "git switch main", "git worktree add ../x main", "git symbolic-ref HEAD refs/heads/main", "git symbolic-ref refs/heads/main", "git update-ref refs/heads/topic refs/heads/main",
		"git config --get-urlmatch http https://a.example", "git config -l --show-origin", "git config -z --list", "git config --file x --get core.hooksPath", "git config --comment -l user.name x", "git config get --all core.hooksPath", "git config --local user.name x", "git difftool -y main", "git difftool --tool vimdiff main", "git rebase -x 'make test' -x 'make lint' main", "git rebase -s ours main", "git rebase --onto main x", "git remote add -f x y", "git remote add -t main x y",
		"git commit -m ext::x", "git log --grep=ext::x", "git grep ext::", "git checkout ext::x", "git grep -n ext x", "git grep -O x", "git grep -e 'git push -f'", "git config remote.o.fetch '+refs/heads/*:refs/remotes/o/*'", "git config remote.o.fetch \"+refs/heads/$b:refs/remotes/o/$b\"", "git send-email --smtp-server smtp.a.example x", "git submodule update --init --depth 1", "git submodule -q foreach git fetch",
	} {
		if f, ok := Check(text, "/w"); ok {
			t.Errorf("%s: %s", text, f.What)
		}
	}
}

// FuzzCheck (G22): what is found says what to do instead, and another command before it hides nothing.
func FuzzCheck(f *testing.F) {
	f.Add("git push -f origin main; bash -c 'git config \"$x\" y' > .git/hooks/x")
	f.Add("sudo -u x env -u A B=c git -c a.b=c push --repo +x")
	f.Add("git config -f")
	f.Add("find . -exec git push -f \\; -exec env -S 'git x' \\; | flock f -c 'git push -f'")
	f.Fuzz(func(t *testing.T, text string) {
		found, ok := Check(text, "/w")
		if ok != (found.What != "") || ok && (found.Instead == "" || !strings.Contains(strings.ToLower(text), "it")) {
			t.Errorf("%q: %+v, %v", text, found, ok)
		}
		if _, still := Check("true\n"+text, "/w"); ok && !still && len(text) < 32<<10 {
			t.Errorf("%q is let pass after another command", text)
		}
	})
}

// TestF18PushesG22: what sends a repository away is found wherever it stands.
func TestF18PushesG22(t *testing.T) {
	for text, want := range map[string]bool{
		"git push": true, "git push origin x": true, "cd x && git -C y push": true, "bash -c 'git push origin x'": true, "{git,push,origin,x}": true, "x=$(git push 2>&1)": true, "sudo -u me git push": true, "git subtree push -P a o b": true,
		"git send-pack o x": true, "git push --dry-run": true, "git -c alias.p=push p origin x": true, "git config alias.p push": true, "git-push origin x": true, "bash <<< 'git push origin x'": true, "git add . && git commit -m x && git push": true, "eval \"git push $r\"": true, "git push --force": true,
		"git pull": false, "git log --grep push": false, "git commit -m 'git push'": false, "echo git push": false, "git stash push": false, "git subtree pull": false, "git config push.default simple": false, "git fetch": false, "npm push": false,
	} {
		if got := Pushes(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestF16DirG22: git's own files are known by where a relative path leads, also past cd (F16).
func TestF16DirG22(t *testing.T) {
	for _, c := range [][2]string{
		{"/w/.git", "echo x > config"}, {"/w/.git/hooks", "echo x > pre-commit"}, {"/w/.git/hooks", "tee pre-push < x"}, {"/w/.git/hooks", "cp /tmp/x ."}, {"/w/.git", "echo x >> ./hooks/../config"},
		{"/w/.git/modules/m", "echo x > config"}, {"/w/.git/hooks", "chmod +x pre-commit"}, {"/w/.git/hooks", "sed -i s/a/b/ pre-commit"}, {"/srv/r.git", "mv /tmp/x hooks"}, {"/w/.git/info", "echo x > ../hooks/post-merge"},
		{"/w", "cd .git && echo x > config"}, {"/w", "cd .git/hooks; cat > pre-commit <<X\nx\nX"}, {"", "cd .git/hooks; echo x > pre-commit"}, {"/w", "cd $d/.git; echo x > config"}, {"/w", "bash -c 'cd .git && echo x > config'"},
		{"/w", "(cd .git; (cd hooks; ls); echo x > config)"}, {"/w/.git", "bash -c 'echo x > config'"}, {"/w/.git", "dd if=x of=config"}, {"/w", "pushd .git; rm hooks/pre-commit"}, {"/w/.git", "cd .. && cd .git && echo x > config"},
		{"/w/.git", "sudo tee config < x"}, {"/w", "cd .git; ls; eval 'cd hooks'; touch pre-commit"}, {"/w/.git", "echo x | tee -a config"},
	} {
		if _, ok := Check(c[1], c[0]); !ok {
			t.Errorf("in %s: %s: passes", c[0], c[1])
		}
	}
	for _, c := range [][2]string{
		{"/w", "echo x > config"}, {"/w", "echo x > hooks/pre-commit"}, {"/w/.git", "cat config"}, {"/w/.git", "ls hooks > /tmp/x"}, {"/w/.git/hooks", "sleep 5; wc -l *"}, {"/w/.git/hooks", "cp pre-commit /tmp/x"},
		{"/w", "(cd .git; cat config); echo x > config"}, {"/w", "x=$(cd .git && cat HEAD); echo $x > config"}, {"/w", "cd .git; cat HEAD; cd ..; echo x > config"}, {"/w/.git", "cd /w/src && echo x > config"},
		{"/w/.git", "echo x > description"}, {"/w/.git", "echo x >> info/exclude"}, {"/w/.github", "echo x > config"}, {"", "echo x > config"}, {"/w/.git/hooks", "sed -n 1,5p pre-commit"}, {"/w/.git", "git log --oneline"},
		{"/w/.git", "echo x > \"$out/config.txt\""}, {"/w/digit", "echo x > config"},
	} {
		if f, ok := Check(c[1], c[0]); ok {
			t.Errorf("in %s: %s: %s", c[0], c[1], f.What)
		}
	}
}
