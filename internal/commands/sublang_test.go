package commands

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// verdict is "ok", "runs" or "unsure", and the files.
type verdict struct {
	Is            string
	Reads, Writes []string
}

func judge(language Language, text string) verdict {
	s := language(text)
	v := verdict{"unsure", s.Reads, s.Writes}
	switch {
	case s.OK:
		v.Is = "ok"
	case s.Network:
		v.Is = "runs"
	}
	if v.Is != "ok" {
		v.Reads, v.Writes = nil, nil
	}
	return v
}

type langCase struct {
	text string
	want verdict
}

func ok(text string) langCase     { return langCase{text, verdict{Is: "ok"}} }
func runs(text string) langCase   { return langCase{text, verdict{Is: "runs"}} }
func unsure(text string) langCase { return langCase{text, verdict{Is: "unsure"}} }
func writes(text string, files ...string) langCase {
	return langCase{text, verdict{Is: "ok", Writes: files}}
}
func reads(text string, files ...string) langCase {
	return langCase{text, verdict{Is: "ok", Reads: files}}
}

func check(t *testing.T, language Language, cases []langCase) {
	t.Helper()
	for _, c := range cases {
		if diff := cmp.Diff(c.want, judge(language, c.text)); diff != "" {
			t.Errorf("%q: %s\n(-want +got)\n%s", c.text, language(c.text).Why, diff)
		}
	}
}

// G5: sed's e, s///e, w, W, r, R, text of a, i, c, and what seds read differently.
func TestSedG5(t *testing.T) {
	check(t, Sed, []langCase{
		ok("10,20p"), ok("$p"), ok("/^func /,/^}/p"), ok("0~3d"), ok("1~2!d"), ok("/x/I,+4{p;d}"), ok("0,/re/s//y/"),
		ok(`\|usr/lib|d`), ok("s/old/new/gI"), ok("s/a/b/2;s/c/d/p"), ok("s,a/b,c/d,"), ok("s|a|\\||"), ok("y/abc/xyz/;p"),
		ok("s/[^/]*$//"), ok("s/[[:space:]]*$//"), ok("s/[/;e]/x/"), ok(`s/[\/]/x/`), ok("s/a\\\nb/c/"), ok("s/a/b\\\ne/"),
		ok(":top\nN\n$!b top\ns/\\n/ /g"), ok(":a;N;$!ba;s/\\n/,/g"), ok("/x/{s/a/b/;s/c/d/}"), ok("{p}"), ok("$!{h;d};G"),
		ok("1i execute this"), ok("1a\\\ne rm x\n2p"), ok("a\\\nfirst\\\ne second"), ok("$ a the end"), ok("2c\\new line"), ok("i\\  indented"),
		ok("# e is a comment\np"), ok("p # e"), ok("s/a/b/ # e"), ok("#n\np"), ok("l 60;q 3"), ok("="), ok("x;G;1!h"), ok("/e/!s/e/e/g"), ok(""),
		ok("n;n;s/./x/"), ok("p;\n\n;p"), ok("t end;s/x/y/;:end"),
		reads("r header.txt", "header.txt"), reads("/x/R lines\np", "lines"),
		writes("w out", "out"), writes("/x/W first\np", "first"), writes("s/a/b/gw out.txt\np", "out.txt"), writes("w /dev/stdout", "/dev/stdout"),

		runs("e"), runs("1e date"), runs("$e"), runs("/x/e id"), runs("1!e id"), runs("2,3{e id\n}"), runs("p;e id"), runs("p\ne id"),
		runs("s/.*/id/e"), runs("s/a/b/ge"), runs("s/a/b/2pe"), runs("s,a,b,Ie"), runs("s#a#b#e"), runs("s/a/b/ e"), runs("y/a/b/;e"), runs(":a;e id"),
		runs("a text\ne id"), runs("1i\\\ntext\ne id"), runs("# c\ne id"), runs("r f\ne id"), runs("w f\ne id"), runs("s/[]/]/x/;e"), runs("s/[^]]/x/;e id"),
		runs("1,5 e id"), runs("\\,x,e id"), runs("{p};e id"), runs("0~4e id"), runs("s/a/b\\\nc/e"), runs("b;e id"),

		unsure("s/a/b/x"), unsure("s/a/b"), unsure("s/a"), unsure("k"), unsure("a"), unsure("a\\"), unsure("a\nx"), unsure("1a\\ \nx"), unsure("{p"), unsure("p}"),
		unsure("pe id"), unsure("v 4.2"), unsure("w"), unsure("w out;e"), unsure("r x}"), unsure("a x\\\\\ne id"), unsure(":a;a x\\\ne id"),
		unsure("s/[\\]/x/;s/]/y/"), unsure("sxaxbx"), unsure("s a b "), unsure("s[a[b["), unsure("s\xc3\xa9a\xc3\xa9b\xc3\xa9"), unsure("1,p"), unsure("p\re id"),
		unsure("1i\\\\\ne id"), unsure("1i\\\\x\ne id"), unsure("a\\\n\\\ne id"), unsure("a\\x\\\ne id"), unsure("#\r2w out"), unsure("a x\fy"),
		unsure("s/[/]/w out"), unsure("p\ve"), unsure(":a;s/x/y\\\n/;b"), unsure("s/a/b/\r"),
	})
}

// G5: awk's programs, files under computed names, and gawk's network files.
func TestAwkG5(t *testing.T) {
	check(t, Awk, []langCase{
		ok("{print $1}"), ok("NR==1"), ok("$3 > 100 && $1 ~ /^a/"), ok("END{print NR}"), ok("/a|b/,/c/{n++} END {print n+0}"),
		ok(`BEGIN{FS=":"; OFS="|"} {$1=$1; print}`), ok(`{printf "%-10s|%s\n", $1, $2}`), ok(`{print (a > b) ? "x" : "y"}`),
		ok("{s+=$1/2; t=s/NR} END{print s/NR, t}"), ok("!seen[$0]++"), ok("NF{$1=\"\"; print substr($0,2)}"), ok("{print $NF/2; print $(NF-1)}"),
		ok("function f(a, b) { return a/b }\n{print f($1, 2)}"), ok("{ if ($1 > max) max = $1 } END { print max }"), ok("length($0) > 80"), ok("{a[$1]=a[$1] \" \" $2}"),
		ok("{while ((getline line) > 0) n++}"), ok("{gsub(/[^a-z]/, \"\"); print toupper($0)}"), ok("{print \"system(1) | sh > x\"}"), ok("# system(\"id\")\n{print}"),
		ok("{for (k in a) { delete a[k]; continue }}"), ok("{ do { i++ } while (i < 5) }"), ok("{print a,\n b}"), ok("{x = y ||\n z}"), ok("{print \\\n $1}"), ok("{print -1, 1e3, .5}"),
		ok("BEGIN{PROCINFO[\"sorted_in\"]=\"@ind_str_asc\"}"), ok("{print a[b > c]}"), ok("/\\//{print}"), ok("{exit}"), ok("NR%2{print;next}1"), ok(""),
		ok("{print ENVIRON[\"HOME\"]}"), ok("{n=split($0,p,\"/\"); print p[n]}"), ok("/start/{f=1} f{print} /end/{f=0}"), ok("{ print $1 /2 }"),
		reads(`BEGIN{while ((getline l < "names") > 0) n[l]}`, "names"), reads(`{getline < "f"; print}`, "f"),
		writes(`{print > "out"}`, "out"), writes(`{print $1, $2 >> "log"; next}`, "log"), writes(`{printf("%s", $1) > "/dev/stderr"}`, "/dev/stderr"),

		runs(`BEGIN{system("id")}`), runs(`{system ( "id" )}`), runs(`{print | "sh"}`), runs(`{printf "x" | c}`), runs(`{"id" | getline x}`), runs(`{c | getline}`),
		runs(`{print |& "sh"}`), runs(`BEGIN{s = "/inet/tcp/0/192.0.2.1/80"; print 1 |& s}`), runs(`{getline < "/inet/tcp/0/192.0.2.1/80"}`), runs(`{print > "/inet4/udp/0/192.0.2.1/53"}`),
		runs("{x=a[1]/2; system(\"id\") /3}"), runs("/\\[/;{system(\"id\")}"), runs("{print a||b | \"sh\"}"), runs("{a\\\n=system(\"id\")}"),

		unsure("{print a =\nb > \"x\" \"y\"}"), unsure("{print ++\nb > \"x\"}"), unsure("{print $\n1 > c}"), unsure("{if\n(x) y}"), ok("{x++\ny--}"), ok("{print x ? 1 :\n2}"),
		unsure(`{print > $1}`), unsure(`{print > "a" $1}`), unsure(`{print > ("a" b)}`), unsure(`{print "x" >> f}`), unsure(`{getline < $1}`), unsure(`{getline x < f}`), unsure(`{getline x < "a" b}`),
		unsure(`{getline a[getline b < "x"] < y}`), unsure(`BEGIN{f="system"; @f("id")}`), unsure(`@load "fork"`), unsure(`@include "x"`), unsure("{awk::system(1)}"), unsure("{f(1)}"),
		unsure("BEGIN{ARGV[1]=\"/inet/tcp/0/h/1\";ARGC=2}"), unsure("{SYMTAB[\"x\"]=1}"), unsure("{FUNCTAB[1]}"), unsure("{PROCINFO[\"x\"]}"), unsure("{print \"a"), unsure("{print 'x'}"),
		unsure("{x++ /2/ 1}"), unsure("{if (x) /re/}"), unsure("{length /2/ 1}"), unsure("{print a"), unsure("}"), unsure("{(]}"), unsure("{print `id`}"), unsure("/[/]x/"), unsure("{1system(2)}"), unsure("{0x11}"),
		unsure("{print > \"a\\057b\"}"), unsure("{print > \"\"}"), unsure("{a & b}"), unsure("{print 1\r}"), unsure("{(a\n)}"), unsure("/a\n/"), unsure("{print > \"a\" > \"b\"}"), unsure("{print > f(1)}"),
		unsure("function system2(x) {return x} {sys(2)}"), unsure("{bindtextdomain(\"x\")}"), unsure("{\xc3\xa9}"),
	})
}

// Text that only one reading accepts, or that is cut off anywhere, is never a
// reason to be sure of what the whole is not sure of.
func TestPrefixes(t *testing.T) {
	for _, text := range []string{`{getline l < "/inet/tcp/0/h/1"}`, `BEGIN{"id" | getline; system("id")}`, "s/a/b/w out\ne id", "1i\\\nfoo\\\nbar\ne id"} {
		for i := range text {
			Sed(text[:i])
			Awk(text[:i])
		}
	}
}

// What is too long is refused.
func TestLimits(t *testing.T) {
	check(t, Sed, []langCase{unsure(strings.Repeat("r f\n", maxNames+2))})
	check(t, Awk, []langCase{unsure("function f(x) {} {" + strings.Repeat("f(1);", maxNames+2) + "}"), unsure("{" + strings.Repeat(`print > "f";`, maxNames+3) + "}")})
}

// Both are linear in the text.
func TestLongTexts(t *testing.T) {
	n := 200_000
	for _, text := range []string{strings.Repeat("[", n), "s/" + strings.Repeat("[", n), strings.Repeat("s/[/]/x/;", n), strings.Repeat("/", n), strings.Repeat("{", n), "/" + strings.Repeat("[[:", n), strings.Repeat("f(", n)} {
		Sed(text)
		Awk(text)
	}
}
