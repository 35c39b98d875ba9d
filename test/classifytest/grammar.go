package classifytest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Grammar makes commands: programs with options and operands in every spelling, sub-languages, quoting, expansions, redirections,
// lists, compounds and wrappers, most of it harmless, some of it not. What is not starts a stub or asks for a socket that leads
// nowhere. The same seed makes the same commands.
type Grammar struct {
	r *rand.Rand
	// evil in a hundred of the choices are hostile.
	evil int
	// before are statements that must come before the command that is being made.
	before []string
}

// NewGrammar makes a grammar of which evil in a hundred choices are hostile.
func NewGrammar(seed uint64, evil int) *Grammar {
	return &Grammar{r: rand.New(rand.NewPCG(seed, 5)), evil: evil}
}

// Command makes the next command.
func (g *Grammar) Command() string {
	g.before = nil
	text := g.list(3)
	return strings.Join(append(g.before, text), "\n")
}

func (g *Grammar) chance(percent int) bool { return g.r.IntN(100) < percent }
func (g *Grammar) bad() bool               { return g.chance(g.evil) }

func pickOne[T any](g *Grammar, of []T) T { return of[g.r.IntN(len(of))] }

func (g *Grammar) word(of string) string { return pickOne(g, strings.Fields(of)) }

// list makes one to three commands.
func (g *Grammar) list(depth int) string {
	text := g.pipeline(depth)
	for g.chance(25) {
		text += pickOne(g, []string{"; ", " && ", " || ", "\n", ";", "&&", " |& ", " & "}) + g.pipeline(depth)
	}
	return text
}

func (g *Grammar) pipeline(depth int) string {
	text := g.compound(depth)
	for g.chance(25) {
		text += pickOne(g, []string{" | ", "|", " |\n", " |\\\n"}) + g.compound(depth-1)
	}
	if g.chance(4) {
		text = "! " + text
	}
	return text
}

func (g *Grammar) compound(depth int) string {
	if depth <= 0 || g.chance(70) {
		return g.simple(depth)
	}
	d := depth - 1
	switch g.r.IntN(14) {
	case 0:
		return "(" + g.list(d) + ")" + g.redirect()
	case 1:
		return "{ " + g.list(d) + "; }" + g.redirect()
	case 2:
		return "if " + g.test() + "; then " + g.list(d) + "; else " + g.list(d) + "; fi"
	case 3:
		return "for x in " + g.operand("f g", d) + " " + g.operand("f -x *.txt", d) + "; do " + g.list(d) + "; done"
	case 4:
		return "while " + g.test() + "; do " + g.list(d) + "; break; done"
	case 5:
		return "case " + g.operand("f", d) + " in f|g) " + g.list(d) + ";; *) " + g.list(d) + ";; esac"
	case 6:
		if g.bad() { // no more than a stub, or it would call itself
			return g.word("ls echo [ cd cat") + "() { " + g.word("pwn ./p $1 exec") + "; }; " + g.list(d)
		}
		return "fn() { " + g.list(d) + "; }; " + g.word("fn ls echo cat") + " " + g.operand("f g", d)
	case 7:
		return "sh -c " + g.quote(g.list(d))
	case 8:
		return "bash -c " + g.quote(g.list(d)) + " x " + g.operand("f", d)
	case 9:
		return "eval " + g.quote(g.list(d))
	case 10:
		return pickOne(g, []string{"timeout 5", "nice -n 5", "nice -5", "env", "env -i A=1", "command", "nohup", "stdbuf -oL", "time", "time -p", "env -u A", "env -- LC_ALL=C",
			"timeout -k 1 -s KILL 5s", "setsid -w", "ionice -c3", "command -p", "builtin", "exec", "command --"}) + " " + g.simple(d)
	case 11:
		return "xargs " + g.word("-n1 -0 -r -I{} -d: -L1 -P2 --") + " " + g.simple(d) + " <list"
	case 12:
		return "cat <<" + g.word("E 'E' \"E\" \\E") + "\n" + g.hereText(d) + "\nE\n" + g.simple(d)
	}
	return "find . " + g.findTest() + " -exec " + g.simple(0) + " " + pickOne(g, []string{`{} \;`, "{} +", `\;`, "{} ';'", "./{} +"})
}

func (g *Grammar) test() string {
	if g.bad() {
		return pickOne(g, []string{`[[ -v 'a[$(pwn)]' ]]`, `test -v 'a[$(pwn)]'`, `[[ 'a[$(pwn)]' -eq 0 ]]`, `((a[$(pwn)]))`, `let 'a[$(pwn)]'`,
			`read n <f; [[ $n -gt 3 ]]`, `[[ -n $(pwn) ]]`, `x=$(cat g); ((x))`})
	}
	return pickOne(g, []string{"[ -f f ]", `[ "$x" = f ]`, "test -d d", "[[ -f f && -r g ]]", "[[ f == f* ]]", "true", "! false", `[[ $x =~ ^a ]]`,
		`[ "$(wc -l <f)" -gt 1 ]`, "grep -q a f", `[ 1 -eq "$y" ]`, "((1))", `[[ -z ${x-} ]]`})
}

func (g *Grammar) hereText(depth int) string {
	if g.bad() {
		return pickOne(g, []string{"$(pwn)", "`pwn`", "${x:-$(pwn)}", "$((a[$(pwn)]))", "a\\\n$(pwn)"})
	}
	return pickOne(g, []string{"text", "$x", "a 'b' \"c\"", "\\$(pwn)", "$(echo f)"})
}

// redirect makes none, or one.
func (g *Grammar) redirect() string {
	if g.chance(75) {
		return ""
	}
	if g.bad() {
		return pickOne(g, []string{" >/dev/tcp/127.0.0.1/9", " </dev/udp/127.0.0.1/9", ` >"/dev/tc"p/127.0.0.1/9`, " >/dev/tc{p..p}/127.0.0.1/9", " 3<>$x/tcp/1/1",
			" >.git/config", " >~/.bashrc", " >/proc/self/comm", " >$(pwn)", " <<<`pwn`", " >ls", " &>/dev/tcp/127.0.0.1/9", " >&/dev/tcp/127.0.0.1/9",
			" {v}>/dev/tcp/127.0.0.1/9", " <$'/dev/\\x74cp/127.0.0.1/9'", " >(pwn)", " < <(pwn)", " >|/dev/tcp/127.0.0.1/9", " >>/dev/tcp/localhost/9"})
	}
	return pickOne(g, []string{" >/dev/null", " 2>&1", " 2>/dev/null", " <f", " >out", " >>out", " <<<text", ` <<<"$x"`, " &>/dev/null", " >&2", " </dev/null",
		" < <(cat f)", ` >"out"`, " >|out", " 2>&-", " >/tmp/out", " >./d/out"})
}

// simple makes one command of words.
func (g *Grammar) simple(depth int) string {
	var words []string
	for g.chance(8) {
		words = append(words, g.assignment(depth))
	}
	f := pickOne(g, families)
	name := f.name
	if g.chance(10) {
		name = g.word("/usr/bin/ /bin/") + name
	}
	if g.bad() && g.chance(30) {
		name = pickOne(g, []string{"pwn", "./p", "./ls", "curl", "python3", "d/ls", "./cat", "sh -c pwn", "/usr/bin/../../bin/true", "/lib64/ld-linux-x86-64.so.2 /bin/true",
			"busybox true", "command pwn", "$x", "${x:-pwn}", "*p", "exec ./p", "p", "sudo ls", ". ./f", "source g", "trap pwn EXIT;", "alias ls=pwn;"})
	}
	words = append(words, g.spell(name, 6))
	words = append(words, f.words(g, depth)...)
	text := strings.Join(words, g.space())
	if g.chance(5) {
		return text + " # $(pwn) 'x\n"
	}
	return text + g.redirect()
}

func (g *Grammar) space() string {
	if g.chance(90) {
		return " "
	}
	return pickOne(g, []string{"  ", "\t", " \\\n", "\\\n ", " \t "})
}

func (g *Grammar) assignment(depth int) string {
	if g.bad() {
		return g.word("PATH=. PATH=./d:$PATH LD_PRELOAD=./x.so BASH_ENV=e.awk ENV=e.awk IFS=/ LESSOPEN=|pwn GCONV_PATH=. RIPGREP_CONFIG_PATH=g PS4=$(pwn)" +
			" RANDOM=a[$(pwn)] LC_ALL=$(pwn) x=`pwn` SHELLOPTS=xtrace PAGER=pwn HOME=. TMPDIR=d LOCPATH=. POSIXLY_CORRECT=1 a[$(pwn)]=1 x+=$(pwn)")
	}
	return g.word("LC_ALL=C x=f LANG=C TZ=UTC NO_COLOR=1 x= y=3 x=a.txt y='a' LC_ALL=POSIX")
}

// operand makes a word that stands for one of some literal ones.
func (g *Grammar) operand(of string, depth int) string {
	lit := strings.ReplaceAll(g.word(of), "\x00", " ") // a NUL stands for a space between two words
	if g.bad() {
		return pickOne(g, []string{"$(pwn)", "`pwn`", "<(pwn)", `"$(pwn)"`, "${x:-$(pwn)}", "${x:$(pwn)}", "$((a[$(pwn)]))", "${x@P}", "${!x}", "${a[$(pwn)]}", "$[1+$(pwn)]",
			"{f,$(pwn)}", "\"`pwn`\"", "${x/f/$(pwn)}", "${x#`pwn`}", `$"$(pwn)"`, "-exec", "--pre=p", "--compress-program=p", "-x", "-ex", "*", "$x", "$@", "-*", "?*", "$IFS"})
	}
	switch {
	case g.chance(70):
		return g.spell(lit, 15)
	case g.chance(30):
		name := g.word("v w z")
		g.before = append(g.before, name+"="+g.quote(lit))
		return fmt.Sprintf(pickOne(g, []string{`"$%s"`, `${%s}`, `$%s`, `"${%s}"`, `"${%s:-f}"`, `${%s%%%%x}`, `"${%s#y}"`, `"${%s/q/r}"`, `./$%s`}), name)
	case depth > 0 && g.chance(40):
		return "\"$(" + g.simple(depth-1) + ")\""
	}
	return pickOne(g, []string{`"$x"`, "*.txt", "./*", "d/*", "{f,g}", "$((1+2))", "~", `"${x:-f}"`, "$(echo f)", "`echo f`", "[fg]", "<(cat f)", "${nope:-f}", `"$@"`, "-", "./$x",
		`"${x%.txt}"`, `"${x##*/}"`, `${#x}`, "{1..3}", "$'f'", "./\"$x\"", "d/${x}h"})
}

// spell writes a literal word: plain, or by chance in another quoting.
func (g *Grammar) spell(lit string, percent int) string {
	if strings.ContainsAny(lit, " $*`") && !strings.ContainsAny(lit, "'") {
		return lit // several words, or an expansion, as it stands
	}
	if g.chance(percent) {
		return g.quote(lit)
	}
	return lit
}

// quote writes a literal so that a shell reads it as one word.
func (g *Grammar) quote(lit string) string {
	return Quote(g.r, lit)
}

// Quote writes a text as one shell word, in one of the ways that bash treats the same.
func Quote(r *rand.Rand, lit string) string {
	if len(lit) > 1 && r.IntN(6) == 0 {
		at := 1 + r.IntN(len(lit)-1)
		return Quote(r, lit[:at]) + Quote(r, lit[at:])
	}
	switch r.IntN(4) {
	case 0:
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(lit) + `"`
	case 1:
		if lit != "" && !strings.Contains(lit, "\n") {
			var b strings.Builder
			for i := range len(lit) {
				if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-", rune(lit[i])) && lit[i] < 0x80 || r.IntN(12) == 0 && lit[i] < 0x80 {
					b.WriteByte('\\')
				}
				b.WriteByte(lit[i])
			}
			return b.String()
		}
	}
	return "'" + strings.ReplaceAll(lit, "'", `'\''`) + "'"
}
