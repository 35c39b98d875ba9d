package classifytest

import "strings"

// family is a program with the words that Grammar gives it, separated by spaces.
type family struct {
	name              string
	options, operands string
	// hostile are options and operands that run code, write, or change what runs.
	hostile string
	// script makes the first operand.
	script func(*Grammar) string
}

var families = []family{
	{"cat", "-A -n -- -b --number -vE", files, "", nil},
	{"head", "-n5 -n 2 -c3 -3 -q --lines=2 --", files, "", nil},
	{"tail", "-n5 -n 2 -c3 -q --lines 2 +2", files, "", nil},
	{"wc", "-l -lw -c --lines --files0-from=list", files, "", nil},
	{"echo", "-n -e -E -- hi", words, "", nil},
	{"printf", "%s\\n %d\\n -- %b", words, "-v -va[$(pwn)] -vPATH -vRANDOM", nil},
	{"sort", "-u -n -r -k1,2 -t: -uo --reverse --key=2 -c -m -z -S1k --", files, "-oout -o --output=out --compress-program=./p --co=p --compress-prog -Td --files0-from=list -uoF --ou", nil},
	{"uniq", "-c -d -f1 -i --count --", "f -", "out f\x00out - +1", nil},
	{"cut", "-d: -f1 -c1-3 -f 1 --fields=2 -s", files, "", nil},
	{"tr", "-d -s -c", "a-z A-Z [:upper:] x \\n", "", nil},
	{"grep", "-n -r -i -E -F -e -v --include=*.txt -A2 -c -l --color=never -P --", "a one -x f . g", "", nil},
	{"ls", "-l -la -1 --color=auto -R -t --", files, "", nil},
	{"find", "-L -P -O2", ". d ./d f", "-f *", nil},
	{"sed", "-n -E -r -z -s -u --quiet --posix", "", "-i -n -ni -i.bak --in-place --in -f -fs.sed --file=s.sed -e1e\\ pwn --fil", sedScript},
	{"awk", "-F: -F -vx=1 -v", "", "-f -fe.awk -f\x00e.awk", awkScript},
	{"gawk", "-F: -vx=1 --posix -S", "", "-e -fe.awk -i -lx -oout -dout -pout --pretty-p=out -Ee.awk -D", awkScript},
	{"mawk", "-F: -vx=1", "", "-fe.awk -We -Wexec=e.awk", awkScript},
	{"jq", "-r -c -n -e -s --arg\x00a\x001 -S --tab", "", "-L. -ff --rawfile\x00a\x00f", jqScript},
	{"xargs", "-n1 -0 -r -I{} -d: -t --", "echo cat grep\x00a wc\x00-l head ls", "pwn sh\x00-c\x00pwn --process-slot-var=PATH sort sed rg -iX -a\x00list find env", nil},
	{"rg", "-n -i -l --no-config -g*.txt -e -F -A2 --hidden -tpy --", "a one . f", "--pre=p --pre -z --search-zip --hostname-bin=p -zn -nz --pre-glob=*", nil},
	{"fd", "-H -e -t\x00f -a -0 --", "f . txt", "-x -x\x00p -X\x00p -xp --exec=p -l --list-details -Hx --exec-batch -Hl", nil},
	{"less", "-N -R -F -X -S -E", files, "-kf -k +!pwn ++pwn +v --lesskey-file=f -oout --log-file=out --cmd=!pwn -Oout -Nk", nil},
	{"file", "-b -i -L --mime-type --brief --", files, "-z -Z -C --uncompress --unc -bz -m -zb -bCm -p -S --comp", nil},
	{"tree", "-L\x001 -a -d -I\x00x -P\x00*.txt --noreport", ". d", "-R -oout -o -Co -aR -H --fromfile", nil},
	{"xxd", "-p -l\x008 -c8 -u", "f -", "-r out f\x00out - -rp", nil},
	{"iconv", "-f\x00utf8 -tutf8 -c --to-code=latin1", files, "-oout -co --out=out -o --output", nil},
	{"date", "-u +%F -d\x00yesterday -Iseconds --utc -ff -R", "+%s", "-s --se=2020 01020304 -us2020-01-01 -us --set=@0 -s@0", nil},
	{"diff", "-u -r -q --brief -N -w", "f\x00g a.txt\x00b.txt d\x00.", "-l --to-file=f", nil},
	{"readelf", "-h -l -S --headers -W", "/bin/true f", "-w @list -P -wi --debug-dump --debug-dump=info -K", nil},
	{"strings", "-n8 -a -t\x00x -", "f /bin/true", "@list @f", nil},
	{"bc", "-l -q", "f", "-i", nil},
	{"expr", "", "1\x00+\x001 length\x00abc a\x00:\x00b 3\x00\\*\x004", "", nil},
	{"base64", "-d -w0 --decode", "f", "", nil},
	{"mktemp", "-u -d -t", "x.XXXX", "-p. --suffix=.sh --tmpdir=/etc", nil},
	{"test", "-f -d -n -z", "f x d", "-v a[$(pwn)] -R", nil},
	{"cd", "-- -P", "d . .. /tmp", "- ~", nil},
	{"pwd", "-P", "", "", nil},
	{"export", "", "x=1 y LC_ALL=C", "PATH=. LD_PRELOAD=./x a[$(pwn)]=1 BASH_ENV=f -f -n", nil},
	{"read", "-r", "x y", "PATH RANDOM a[$(pwn)] -a", nil},
	{"declare", "-a -r -x", "x=1 y=(1\x002)", "-i -n -A -i\x00x='a[$(pwn)]' a[$(pwn)]=1 -p", nil},
	{"set", "-e -u -o\x00pipefail -- -f +e", "x f", "-x -k -a -H -o\x00history -x\x00-k", nil},
	{"unset", "-v", "x y", "a[$(pwn)] PATH -f\x00ls", nil},
	{"mapfile", "-t", "x", "-Cpwn -c1\x00-Cpwn PATH", nil},
	{"compgen", "-c -v", "l", "-W\x00$(pwn) -Cpwn -Fpwn", nil},
	{"type", "-a -t -P", "ls cat pwn", "", nil},
	{"which", "-a", "ls cat pwn", "", nil},
	{"hash", "-r", "ls", "-p\x00./p\x00ls", nil},
	{"shopt", "-s\x00nullglob -u\x00nullglob", "", "-s\x00expand_aliases -s\x00lastpipe", nil},
	{"seq", "-s, -w", "3 1\x003", "", nil},
	{"stat", "-c%s -L --format=%n", files, "", nil},
	{"du", "-sh -a --max-depth=1", ". d", "", nil},
	{"df", "-h -T", ".", "", nil},
	{"realpath", "-s -e --relative-to=.", files, "", nil},
	{"column", "-t -s:", "f", "", nil},
	{"mkdir", "-p -v -m755", "n d/n", "/etc/x ~/.ssh", nil},
	{"cp", "-r -p -a -v", "f\x00n a.txt\x00d", "-t\x00d --target-directory=d f\x00ls -S~ p\x00cat", nil},
	{"mv", "-v -n", "f\x00n", "p\x00cat -t", nil},
	{"rm", "-f -r -v", "f d/h", "/etc/passwd", nil},
	{"ln", "-s", "f\x00n", "/bin/true\x00grep", nil},
	{"touch", "-c", "n", "-r", nil},
	{"tee", "-a", "n out /dev/null", "ls .bashrc", nil},
	{"git", "--version -C\x00. --no-pager", "status log diff show\x00HEAD rev-parse\x00HEAD branch ls-files", "-c\x00core.pager=p -c\x00alias.x=!pwn\x00x push grep\x00-Opwn\x00a", nil},
	{"tar", "-tf -tvf", "f", "-I\x00pwn --to-command=pwn --checkpoint-action=exec=pwn -xf --use-compress-program=pwn host:f", nil},
	{"id", "-u -n -g", "", "", nil},
	{"uname", "-a -r", "", "", nil},
	{"nl", "-ba", "f", "", nil},
	{"rev", "", "f", "", nil},
	{"tac", "-s:", "f", "", nil},
	{"od", "-c -An -tx1", "f", "", nil},
	{"hexdump", "-C -n8", "f", "", nil},
	{"basename", "-a -s.txt", "a.txt d/h", "", nil},
	{"dirname", "", "d/h /a/b", "", nil},
	{"md5sum", "-c --tag", "f", "", nil},
	{"comm", "-12 -3", "f\x00g", "", nil},
	{"paste", "-d, -s", "f\x00g", "", nil},
	{"locale", "-a", "", "", nil},
}

const (
	files = "f g a.txt d/h - b.txt"
	words = "hi %s a\\140 $HOME -x"
)

// words makes the options and operands of one command, in any order.
func (f family) words(g *Grammar, depth int) []string {
	var out []string
	add := func(of string) {
		if of != "" {
			out = append(out, g.operand(of, depth))
		}
	}
	for g.chance(45) {
		add(f.options)
	}
	if f.name == "find" {
		return append(out, g.operand(f.operands, 0), g.findTest())
	}
	if f.script != nil {
		out = append(out, g.quote(f.script(g)))
		for range g.r.IntN(3) {
			add(files)
		}
	} else {
		for n := g.r.IntN(3); n > 0 || g.chance(20); n-- {
			add(f.operands)
		}
	}
	if f.hostile != "" && g.chance(g.evil*2) {
		add(f.hostile)
		if g.chance(30) {
			add(f.hostile)
		}
	}
	if len(out) > 1 && g.chance(30) {
		i, j := g.r.IntN(len(out)), g.r.IntN(len(out))
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// findTest makes the expression of find.
func (g *Grammar) findTest() string {
	var out []string
	for range 1 + g.r.IntN(3) {
		if g.bad() {
			out = append(out, pickOne(g, []string{`-exec ./p \;`, "-execdir p {} +", `-ok pwn \;`, "-delete", "-fprint out", "-fls out", `\( -exec p \; \)`, "-fprintf out x",
				"-files0-from list", `-exec sh -c 'pwn' \;`, `-exec {} \;`, `-exec sort {} +`, `-ok{,} p \;`, `-exec cat {} + -exec p {} +`, "-D exec", "-newerXY f"}))
			continue
		}
		out = append(out, pickOne(g, []string{"-name '*.txt'", "-type f", "-maxdepth 1", "! -name f", `\( -name f -o -name g \)`, "-size -10k", "-print", "-print0", "-newer f",
			`-printf '%p\n'`, "-mtime -1", "-not -path './d/*'", "-iname F", "-regex '.*f'", "-empty", "-prune -o -print", `-exec grep -l a {} +`, `-exec cat {} \;`, "-ls", "-quit"}))
	}
	return strings.Join(out, " ")
}

func sedScript(g *Grammar) string {
	var b strings.Builder
	for n := 1 + g.r.IntN(3); n > 0; n-- {
		b.WriteString(pickOne(g, []string{"", "1", "$", "2,3", "/a/", "1~2", "/a/,/b/", "\\,x,", "0,/a/", "2!", "/[/]e/", "/a/I", "1,+2"}))
		if g.bad() {
			b.WriteString(pickOne(g, []string{"e pwn", "e", "s/a/pwn/e", "s|a|b|ge", "w out", "s/a/b/w out", "{e pwn\n}", "R f\ne pwn", "y/a/b/;e pwn", "s/[/]/x/e", "}e pwn", "s,a,b,;1e ./p",
				":a;e pwn", "b;e pwn", "r f\ne pwn", "s/a/b/2e", "a\\\nx\ne pwn", "i\\\ne pwn\\\nx\ne pwn", "s/\\//e/e", "W /dev/stdout", "w /dev/tcp/127.0.0.1/9", "F;e pwn", "l 5;e p", "# x\ne pwn", "v 4.2;e p"}))
		} else {
			b.WriteString(pickOne(g, []string{"p", "d", "q", "=", "s/a/b/", "s/a/b/g", "s|/e|/w|2p", "y/ab/ba/", "N;P;D", "{p;d}", "a e pwn", "i\\\n e pwn", "c e pwn", "s/e$/e/", "n", "h;G", ":a;$!{N;ba}",
				"s/\\(a\\)/\\1e/", "q5", "l", "r f", "ba;:a", "s/\\n/;e pwn/", "s/a/b;e pwn/", "s/a/\\\n/", "z", "Q", "x", "T", "t", "s,a,\\,e,", "s/[[:alpha:]/]e/x/", "# e pwn"}))
		}
		b.WriteString(pickOne(g, []string{";", "\n", " ; ", ";\n"}))
	}
	if g.chance(60) {
		return strings.TrimRight(b.String(), "; \n")
	}
	return b.String()
}

func awkScript(g *Grammar) string {
	var b strings.Builder
	for n := 1 + g.r.IntN(2); n > 0; n-- {
		b.WriteString(pickOne(g, []string{"", "NR==1 ", "/a|b/ ", "BEGIN", "END ", "$1 > 3 ", "NF && /e\\/x/ ", "$1 ~ /^[/]/ ", "(a in b) ", "length($0) > 2 ", "!s[$0]++ "}))
		b.WriteString("{")
		for k := g.r.IntN(3); k >= 0; k-- {
			if g.bad() {
				b.WriteString(pickOne(g, []string{`system("pwn")`, `print 1 | "pwn"`, `"pwn" | getline x`, `print > "out"`, `printf "x" |& "pwn"`, `f="system"; @f("pwn")`, `print $1 >> $2`,
					`"/inet/tcp/0/127.0.0.1/9" |& getline`, `x="pwn"; x | getline`, `getline y < "/inet/udp/0/127.0.0.1/9"`, `print 1 /2 | "pwn"`, `print a/b > "out"/1`, "system  (\"pwn\")",
					`print "a" ("b") | "pwn"`, `close("pwn"); print "" | "pwn"`, "print 1 |\n\"pwn\"", `print > "/dev/tcp/127.0.0.1/9"`, `printf("%s") > "/dev/stderr"`, `sys\` + "\n" + `tem("pwn")`}))
			} else {
				b.WriteString(pickOne(g, []string{"print", "print $1", `print "a|b"`, `x["a"]++`, `print ($1 > 2) ? "x" : "y"`, `printf "%s|%d\n", $1, $2`, `gsub(/a|b/, "system")`, "if (NR > 1) next",
					`for (k in a) print k`, `n = split($0, p, "|")`, `print length($1) "system(x)"`, `# system("pwn")` + "\n", `while (i++ < 3) print i`, `print substr($0, 2)`, `sub("/", "|")`, `print /a/ ? 1 : 2`,
					`x = $1 || $2`, `print $1 / 2`, `getline`, `getline z`, `print (1 > 2)`, `delete a[1]`, `print toupper($0)`, `exit`, `print -1 " " -1`, `print > "/dev/stderr"`, `print "\"|\"pwn"`}))
			}
			b.WriteString(pickOne(g, []string{";", "\n", " ; "}))
		}
		b.WriteString("}")
		b.WriteString(pickOne(g, []string{"\n", " ", ";", ""}))
	}
	return b.String()
}

func jqScript(g *Grammar) string {
	if g.bad() {
		return pickOne(g, []string{`import "x" as x; 1`, `include "x"; .`, "input_filename", `$__prog_args`, `@sh "\(.a)"`, `env|.PATH`, `modulemeta`, `get_search_list`, `input`, `debug`, `halt_error`})
	}
	return pickOne(g, []string{".", ".a", ".a[]", `.b|test("x")`, ".a|length", `{x:.a,y:"$(pwn)"}`, "keys", `.[]?`, `select(.a>1)`, `"\(.a)"`, `$ENV.HOME`, `[.a[]|tostring]|join("|")`, "to_entries", `.a as $x | $x`})
}
