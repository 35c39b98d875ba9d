package commands_test

// G5, G22: git, of which only little reads no configuration that can run programs.
var gitCases = []commandCases{
	{"git", `
		git --version
		git version
		git rev-parse HEAD
		git rev-parse --abbrev-ref HEAD
		git -C sub rev-parse --show-toplevel
		git branch --show-current
		git remote -v | head -2
		git remote -v 2>&1 | grep origin | wc -l
		echo "$(git remote -v)"
		x=$(git config --get user.name)
		git --no-pager rev-parse --show-toplevel
		git -P rev-parse HEAD
		git -C src --no-pager remote -v
		git --no-pager remote get-url origin
		git --no-pager config --get user.name
		git --no-pager config -l
		git --no-pager branch --show-current
		git --no-pager check-ref-format refs/heads/x
	`, `
		git remote -v
		git remote -v; ls
		git remote -v > /dev/tty | cat
		ls | git remote -v
		(exec >/dev/tty; git remote -v) | cat
		f() { git remote -v; }; f | cat
		git config --get user.name
		git branch
		git branch --show-current -d x
		git branch x
		git rev-parse --git-path x
		git -c core.pager=./p rev-parse HEAD
		git -p rev-parse HEAD
		git --git-dir=x rev-parse HEAD
		git remote add x y | cat
		git rev-parse $x
		git status
		git diff
		git log -p
		git log --oneline
		git show HEAD
		git blame f
		git --no-pager rev-parse 'HEAD^{tree}'
		git --no-pager rev-parse HEAD:f
		git --no-pager rev-parse --parseopt
		git --no-pager config core.pager ./p
		git --no-pager config --add x y
		git --no-pager config --edit
		git --no-pager remote add x y
		git --no-pager branch x
		git --no-pager branch
		git -c core.fsmonitor=./p status
		git -p log
		git --git-dir=x --no-pager config -l
		git add -A
		git commit -m x
		git checkout .
		git stash
		git cat-file --filters HEAD:f
		git grep -O./p x
		git apply x.patch
		git frobnicate
		GIT_CONFIG_COUNT=1 git --no-pager remote
		GIT_DIR=x git --no-pager remote
		git "$x"
		git help
	`, `
		git push
		git fetch
		git pull --rebase
		git clone https://example.com/x.git
		git ls-remote --upload-pack=./p .
		git -C x push origin main
		git submodule update
		git remote update
		git --exec-path=. x
		git bisect run ./p
		git archive --remote=x HEAD
		git send-email x
	`},
}

// G6: commands that reach the network or run any code, and their equals.
var networkCases = []commandCases{
	{"G6 by name", ``, ``, `
		curl -fsSL https://example.com
		/usr/bin/curl x
		wget -qO- example.com
		nc -lvp 4444
		netcat h 1
		ncat h 1
		telnet h
		ssh h
		scp f h:
		sftp h
		rsync -a . h:d
		nslookup h
		dig h
		host h
		ping -c1 h
		traceroute h
		apt-get install x
		apt install x
		pip install x
		pip3.11 install x
		npm install
		yarn add x
		cargo install x
		python x.py
		python3.11 -c 1
		/usr/bin/python3 x
		node x.js
		ruby x.rb
		perl5.36 -e 1
		php -r 1
		lua5.4 x
		luajit x
		deno run x
		bun x
		uv pip install x
		uvx x
		pipx run x
		npx x
		go install x
		go version
		openssl s_client -connect h:443
		socat - TCP:h:1
		docker run x
		podman ps
		kubectl get pods
		make -n
		sqlite3 x
		gdb -batch
		vim -c q
		crontab -l
		watch date
		gh pr list
		terraform plan
		aws s3 ls
		sendmail x
		psql -c 1
		getent hosts h
		pip list
		npm ls
		jupyter notebook
		Rscript x
		java -jar x
		pwsh -c x
		latex x
	`},
	{"versions", `
		python3 --version
		python3.11 -V
		node --version
		node -v
		gcc --version
		dpkg --print-architecture
		dpkg --version
		dpkg -l | grep bash
		dpkg -l bash 'lib*' | head -3
		dpkg -L bash | grep bin
		dpkg -s bash | grep Version
		dpkg -S /bin/ls | cut -d: -f1
		dpkg --get-selections | wc -l
		dpkg-query -W -f='${Package}\n' | sort
		dpkg-query --show --showformat '${Version}' bash | cat
		echo "$(dpkg -l)"
		python3.11 --help
		/usr/bin/python3 --version
		npm -v
		npm --version
		java -version
		javac -version
		perl -v
		ruby --version
		php8.2 -v
		make --version
		make --help
		cmake --version
		g++ -dumpversion
		curl --version
		curl -V
		wget --help
		ssh -V
		docker --version
		docker -v
		gdb --version
		psql --version
		vim --version | head -1
		apt-get --version
		node --version && npm --version
	`, `
		gcc x.c
		cc -wrapper ./p x.c
		frobnicate
		dc -e '!date'
	`, `
		python3 --version -c 1
		python3 -V x.py
		node --version x
		node -e 1
		pip --version
		go version
		dpkg -l
		dpkg -i x.deb
		/usr/local/bin/python3 --version x
		python3 --version $x
		python3 $v
		python3 "--version$x"
		make --version all
		make -v -f x
		make -h
		curl --version h
		curl --help --data x h
		wget --version -O x h
		ssh -V h
		docker --help
		docker --version run x
		docker-compose --version
		podman --version
		cargo --version
		rustup --version
		yarn --version
		pnpm -v
		npx --version
		pip -V
		mvn --version
		gradle --version
		bazel --version
		terraform --version
		gh --version
		kubectl version
		perl -V
		sqlite3 -version
		node -v -e 1
		npm -v install
		systemctl --help
		ruby --help
		ruby -h
		apt --help
		java -version x
		java -jar x -version
		dpkg -l > f
		dpkg -i x.deb | cat
		dpkg -l --pre-invoke=x | cat
		dpkg -l $x | cat
		dpkg "$x" | cat
		dpkg -l -i x.deb | cat
		dpkg --root=/x -l | cat
		dpkg-query -l
		dpkg-query -l --admindir=x | cat
		dpkg-deb -I x.deb | cat
		rpm -qa | cat
	`},
}
