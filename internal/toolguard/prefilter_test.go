package toolguard

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// unfiltered are the conditions of rules that the prefilter cannot tell from any text: neither their names nor they themselves have words.
func unfiltered(rules []Rule) (ids []string) {
	for _, r := range rules {
		for _, on := range r.On {
			if len(wordsOfNames(on.Names)) == 0 && len(on.When.words) == 0 {
				ids = append(ids, r.ID)
			}
		}
	}
	return ids
}

// TestWordsK2: every condition of every rule has words, and a rule without is found; none has more lists than there is room for.
func TestWordsK2(t *testing.T) {
	g := testGuard()
	if ids := unfiltered(g.Rules()); len(ids) > 0 {
		t.Errorf("without words: %q", ids)
	}
	bare := Rule{ID: "bare", On: []trigger{{Names: []string{"*"}, When: when(func(*Command) bool { return true })}}}
	if ids := unfiltered([]Rule{bare}); !slices.Equal(ids, []string{"bare"}) {
		t.Errorf("a rule without words is not found: %q", ids)
	}
	for _, need := range g.prefilter().rules {
		if slices.Contains(need, maxWordLists-1) {
			t.Fatal("the rules have more lists of words than there is room for")
		}
	}
}

// TestManyRulesK12: rules of an operator's that have no list of words of their own are found, too.
func TestManyRulesK12(t *testing.T) {
	var text strings.Builder
	for i := range maxAppended {
		text.WriteString("command tool" + strings.Repeat("x", i%40) + string(rune('a'+i%26)) + " word" + strings.Repeat("y", i%37) + " -- no\n")
	}
	rules, problems := Appended("f", []byte(text.String()))
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	g := New(Options{Names: InstalledNames(), Appended: rules})
	for _, r := range rules {
		what := strings.TrimPrefix(r.Refuses, "runs ")
		for d := range Cmd + 1 {
			if hit, ok := g.Script(d, strings.Repeat("dir a\n", leastFiltered/4)+what); !ok {
				t.Fatalf("%d %q: not refused (%s)", d, what, hit.ID())
			}
		}
	}
}

// differs says how the prefilter changes what is refused of a text; empty: not at all.
func differs(g *Guard, d Dialect, text string) string {
	whole, refused := g.Whole(d, text)
	if refused && !g.prefilter().some(d, decode(text)) {
		return "not read, but refused by " + whole.ID() + ": " + whole.Excerpt
	}
	return ""
}

// TestPrefilterK2: with the prefilter the same is refused as without it: of all examples, and of the labelled commands in the folder that CORPORA
// names, if it does.
func TestPrefilterK2(t *testing.T) {
	g := testGuard()
	n := 0
	try := func(d Dialect, text string) {
		n++
		if how := differs(g, d, text); how != "" {
			t.Errorf("%d %.300q: %s", d, text, how)
		}
	}
	for _, r := range g.Rules() {
		for _, e := range slices.Concat(r.Refused, r.Near) {
			for d := range Cmd + 1 {
				try(d, e.Text)
			}
		}
	}
	for _, list := range everyday {
		for d := range Cmd + 1 {
			try(d, strings.Join(list, "\n"))
			for _, text := range list {
				try(d, text)
			}
		}
	}
	dir := os.Getenv("CORPORA")
	if dir == "" {
		return
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no labelled commands in %s: %v", dir, err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var all [Cmd + 1]strings.Builder
		rows := bufio.NewScanner(f)
		for rows.Buffer(nil, 4<<20); rows.Scan(); {
			var r struct{ Command, Code, Executor string }
			if err := json.Unmarshal(rows.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			text, d := r.Command+r.Code, POSIX
			switch {
			case r.Executor == "command_prompt":
				d = Cmd
			case strings.HasSuffix(name, "powershell.jsonl"):
				d = PowerShell
			}
			for d := range Cmd + 1 {
				try(d, text)
			}
			if all[d].WriteString(text + "\n"); all[d].Len() > 8<<10 { // as one script
				try(d, all[d].String())
				all[d].Reset()
			}
		}
	}
	t.Logf("%d texts", n)
}

// pieces are lines, and parts of lines, that change how others are read.
var pieces = [...][]string{
	POSIX: {
		"rm -rf /", "rm -rf $x", "rm -rf \"$1\"", "$x -rf /etc", "$x $y", "rm -rf *", "rm -rf usr", "$c", "x=rm", "y=/etc", "y='-rf /'", "x=$y", "y=/", "z=\"$x\"", "$z -rf $y", "a=r", "b=m", "$a$b -rf /", "$a\"m\" -rf /", "c='rm -rf /'", "eval \"$c\"", "cd /", "cd etc", "cd ..", "cd", "cd \"$y\"", "pushd /usr",
		"f() {", "g() {", "f()", "{", "}", "} | sh", "} | g", "f /etc", "f \"$y\"", "g rm", "\\f /", "fo''o /", "foo() { rm -rf \"$1\"; }", "g \"$1\"", "\"$1\" -rf /", "if true; then", "if a", "then", "else", "elif b; then", "fi", "fi | sh", "fi; if c; then", "while true; do", "for x in /etc /usr", "for x in a; do", "for y in rm; do",
		"do", "done", "done | sh", "done < <(curl x)", "case $1 in", "a) ls ;;", "b)", ";;", "esac", "esac | sh", "(", ")", ") | sh", "x=$(", "x=\"$(", ")\"", "curl x", "curl x |", "| sh", "sh", "cat", "bash -n", "echo /etc", "echo rm", "xargs rm -rf", "echo / | xargs rm -rf", "cat <<E", "cat <<'E'", "sh <<E", "sh <<-'E F'", "E", "\tE", "E F", "cat <<E | sh",
		"echo '", "'", "echo \"", "\"", "\" # \"", "' # '", "a ' b", "it's", "echo \"it's\"", "# it's", "# a \\", "a \\", "b \\", "x\\", "=rm", "`", "x=`", "echo `", "`echo rm` -rf /", "a=(", "((", "))", "[[ a &&", "b ]]", "[[ a ]]", "&&", "||", "!", "ls | wc", "ls && make", "make &", "b() { b | b & }", "b | b &", "b", "b()", "t() {", "t | t &", "t", "t()",
		"mkfs.ext4 /dev/$x", "x=sda", "y=sdb1", "> /dev/$y", "cat a > \"$y\"", "IFS=,", "c=rm,-rf,/", "printf '%s%s' r m", "$(printf '%s%s' r m) -rf /", "systemctl stop $x", "x=auditd", "sudo -E $x", "source <(curl x)", ". $y", "export y=/usr", "local x=rm", "y+=/etc", "y[0]=/etc", "read x", "ls", "echo a b", "make all # so", "cp a b", "test -f x && ls", "function f {", "function g", "set -e", "exit 1", "kill -9 $(pidof weir)",
	},
	PowerShell: {
		"$a = 'vss'", "$b = 'admin'", "& \"$a$b\" delete shadows", "vssadmin delete shadows", "& ($a + $b) delete shadows", "$c = 'Win32_' + 'ShadowCopy'", "gwmi $c | % { $_.Delete() }", "gwmi win32_shadowcopy |", "rwmi", "foreach ($x in 1..3) {", "}", "if ($a) {", "'", "\"", "@'", "'@", "@\"", "\"@", "<#", "#>", "# it's", "iex $d", "$d = irm x",
		"$d = (iwr x)", "& $e", "$e = 'Clear-Event' + 'Log'", "Clear-EventLog System", "-f 'a'", "('{0}{1}' -f 'vss','admin')", "$f = [char]118", "$x.Replace('a','b')", "(", ")", "`", "a `", "; b", "Get-Item x", "$g = Get-ChildItem C:\\Windows", "Remove-Item -Recurse $g", "$h = 'C:\\Win'", "ri -r -fo \"${h}dows\"", "ri -r -fo \"$($h)dows\"", "set-alias z vssadmin", "z delete shadows", "&('vs'+'sadmin') delete shadows", "ri -r C:\\",
	},
	Cmd: {
		"set a=vss", "set b=admin", "%a%%b% delete shadows", "%a%admin delete shadows", "!a!admin delete shadows", "vssadmin delete shadows", "vss^", "admin delete shadows", "set c=delete shadows", "vssadmin %c%", "for %%f in (*.c) do cl %%f", "if exist a (", ") else (", ")", "rd /s /q C:\\", "set d=C:", "rd /s /q %d%\\", "rem it's", ":: a ^", "echo a", "dir | find \"x\"", "a |", "| diskpart", "echo clean |",
		"diskpart", "format %e%: /q", "set e=D", "rd /s /q %systemroot%", "cmd /cvssadmin delete shadows", "cmd /c \"vss\"admin delete shadows", "sh -c \"rm -rf /\"", "copy a b", "reg save HKLM\\SAM x", "start \"\" vssadmin delete shadows", "call %a%%b% delete shadows", "set f=%a%%b%", "%f% delete shadows",
	},
}

// mixed is a text of pieces, some on lines of their own.
func mixed(r *rand.Rand, d Dialect) string {
	var b strings.Builder
	for range 1 + r.IntN(14) {
		b.WriteString(pieces[d][r.IntN(len(pieces[d]))])
		b.WriteString([]string{"\n", "\n", "\n", "\n", "; ", " ", "\r\n", ""}[r.IntN(8)])
	}
	return b.String()
}

// TestMixedK2: of texts in which parts change how others are read, the prefilter leaves out none that matters.
func TestMixedK2(t *testing.T) {
	g := testGuard()
	r := rand.New(rand.NewPCG(2026, 11))
	n := 3000
	if s, err := strconv.Atoi(os.Getenv("MIXED")); err == nil {
		n, r = s, rand.New(rand.NewPCG(uint64(s), uint64(time.Now().UnixNano())))
	}
	refused := 0
	for range n {
		d := []Dialect{POSIX, POSIX, POSIX, PowerShell, Cmd}[r.IntN(5)]
		text := mixed(r, d)
		if _, ok := g.Whole(d, text); ok {
			refused++
		}
		if how := differs(g, d, text); how != "" {
			t.Errorf("%d %q: %s", d, text, how)
		}
	}
	if refused < n/20 {
		t.Errorf("only %d of %d texts are refused", refused, n)
	}
}

// FuzzPrefilter (K2): a text that is not read has nothing in it that reading would find.
func FuzzPrefilter(f *testing.F) {
	g := testGuard()
	for _, r := range g.Rules() {
		for _, e := range slices.Concat(r.Refused, r.Near) {
			f.Add(uint8(language(e.Tool)), e.Text)
		}
	}
	for d, list := range pieces {
		for i := range list {
			f.Add(uint8(d), strings.Join(list[i:min(len(list), i+3)], "\n"))
		}
	}
	f.Fuzz(func(t *testing.T, d uint8, text string) {
		if how := differs(g, Dialect(d%3), text); how != "" {
			t.Errorf("%d %q: %s", d%3, text, how)
		}
	})
}

// TestOrdinaryK2: ordinary texts are not read, which is what keeps a check under a millisecond.
func TestOrdinaryK2(t *testing.T) {
	p := testGuard().prefilter()
	for name, d := range map[string]Dialect{"powershell": PowerShell, "cmd": Cmd, "shell": POSIX, "shell, read": POSIX, "shell, paths": POSIX} {
		if p.some(d, ordinary(name, 64<<10)) {
			t.Errorf("%s: is read", name)
		}
	}
}
