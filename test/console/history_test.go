package console

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"weir/internal/event"
)

// keeps gives a sensor the log of an afternoon of two containers, one of which is called what it likes.
func (s *sensor) keeps(t testing.TB, name string) {
	t.Helper()
	s.log = filepath.Join(t.TempDir(), "events.jsonl")
	f, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sink := event.NewJSONSink(f)
	began := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	write := func(second int, e event.Event) {
		e.Time = began.Add(time.Duration(second) * time.Second)
		if e.Container == nil {
			e.Container = &event.Container{ID: "c1", Name: name, Cgroup: "/agents/web-1", Taint: []string{"secret"}}
		}
		if err := sink.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	runs := func(argv ...string) *event.Process {
		return &event.Process{PID: 281, UID: 1000, Comm: argv[0], Argv: argv, Exe: &event.File{Path: "/usr/bin/" + argv[0]}}
	}
	to := func(name string) *event.Destination {
		return &event.Destination{Address: "198.18.0.1", Name: name, Port: 443, Protocol: "tcp"}
	}
	verdict := func(decision, reason string) *event.Decision {
		return &event.Decision{Decision: decision, Reason: reason}
	}
	hosts := []string{"pypi.org", "registry.corp.test", "example.org", "github.com"}
	for i := range 1200 {
		write(3*i, event.Event{Kind: event.Exec, Process: runs("gcc", "-c", fmt.Sprintf("file%d.c", i))})
		if i%7 == 0 {
			v := verdict("allow", "listed")
			if i > 300 && i%3 == 0 {
				v = verdict("deny", "flagged")
			}
			write(3*i+1, event.Event{Kind: event.Connect, Process: runs("curl", "https://"+hosts[i%4]+"/"), Destination: to(hosts[i%4]), Verdict: v})
		}
		if i%200 == 50 {
			id := fmt.Sprintf("abc%d", i)
			write(3*i+1, event.Event{Kind: event.Hold, Process: runs("pip", "download"), Destination: to("pypi.org"), Question: id})
			v := verdict("allow", "approved")
			v.By, v.From = "alice", &event.Origin{Via: "control"}
			write(3*i+2, event.Event{Kind: event.Verdict, Process: runs("pip", "download"), Destination: to("pypi.org"), Question: id, Verdict: v})
			g := event.GrantInfo{ID: uint64(i), State: "made", Kind: "cgroup", To: []event.Destination{*to("pypi.org")}, Bytes: 1 << 20}
			write(3*i+2, event.Event{Kind: event.Grant, Grant: &g})
			g.State, g.Bytes = "expired", 1<<19
			write(3*i+80, event.Event{Kind: event.Grant, Grant: &g})
		}
	}
	write(600, event.Event{Kind: event.Taint, Process: runs("cat", "/srv/key"), Change: &event.TaintChange{Set: []string{"secret"}, Source: "file", Why: "opened /srv/key"}})
	write(2400, event.Event{Kind: event.Taint, Change: &event.TaintChange{Set: []string{"corruption"}, Source: "operator", By: "alice"}})
	write(3000, event.Event{Kind: event.Taint, Change: &event.TaintChange{Cleared: []string{"secret"}, Source: "operator", By: "alice", Why: "the key is a new one"}})
	write(3400, event.Event{Kind: event.Exec, Process: runs("curl", name, strings.Repeat("x", 100<<10)+"THE-END")})
	write(3500, event.Event{Kind: event.Exec, Process: runs("make"), Container: &event.Container{ID: "c2", Name: "docs"}})
}

// Everything that the log tells is reached by keys alone.
func TestHistoryByKeys(t *testing.T) {
	s := usual()
	s.keeps(t, "web-1")
	b := open(t, s)
	b.key("4")
	b.sees(`!document.getElementById('search').hidden && document.getElementById('questions').hidden && document.activeElement.id === 'search-text'`)
	b.key("F", "I", "L", "E", "1", "1", "2", "3", ".", "c", kb.Enter)
	b.says("1 event, newest first")
	b.sees(`document.activeElement.matches('.row') && document.activeElement.textContent.includes('gcc -c file1123.c')`)
	b.key(kb.Enter)
	b.says(`"path": "/usr/bin/gcc"`)
	b.key("a", "d", "l", "y") // nothing is answered that is not on the screen
	b.key("/")
	b.sees(`document.activeElement.id === 'search-text'`)
	get[bool](b, `document.activeElement.select(), true`)
	b.key("g", "c", "c", kb.Enter)
	b.says("200 events, newest first")
	b.key("o")
	b.says("400 events, newest first")
	b.key("j", "k", "j")
	b.sees(`document.activeElement === document.querySelectorAll('.row')[201]`)

	b.key("5")
	b.sees(`document.activeElement.id === 'life-container'`)
	b.key("c", "1", kb.Enter)
	b.says("tainted at the end")
	b.sees(`document.activeElement.id === 'life-picture'`)
	b.says("taint: secret: tainted 2026-11-22 10:10:00 to 2026-11-22 10:50:00")
	b.says("opened /srv/key")
	b.key(kb.ArrowDown, kb.ArrowDown, kb.Home, kb.ArrowRight)
	b.sees(`/^commands: 2026-11-22 10:00:..: \d+ let through or done/.test(document.getElementById('life-picture-told').textContent)`)
	b.key(kb.Enter)
	b.sees(`!document.getElementById('search').hidden && document.getElementById('search-container').value === 'c1' && document.querySelectorAll('.row').length > 1 && document.querySelectorAll('.row').length < 30`)

	b.key("6")
	b.says("4 destinations, the most used first")
	b.says("3.0 MiB")
	b.key(kb.ArrowDown, kb.End)
	b.sees(`document.querySelector('#egress-picture .current .name').textContent.endsWith(':443/tcp')`)

	b.key("7")
	b.run(chromedp.Focus("#policy-text"))
	b.key("1", "a") // what is typed is text
	b.sees(`!document.getElementById('policy').hidden && document.activeElement.value === '1a'`)
	get[bool](b, `document.activeElement.value = 'version: 1\nallow:\n  - prefix: 198.18.0.1\n    protocol: tcp\n', true`)
	b.key(kb.Tab)
	b.run(chromedp.Focus("#policy .ask button"))
	b.key(kb.Enter)
	b.says("decisions would change")
	b.says("- deny (flagged)")
	b.run(chromedp.Focus("#suggest"))
	b.key(kb.Enter)
	b.says(`+  - name: "pypi.org"`)
	get[bool](b, `document.getElementById('policy-text').value = 'mode: x', true`)
	b.run(chromedp.Focus("#suggest"))
	b.key(kb.Enter)
	b.sees(`document.getElementById('note').className === 'bad' && document.getElementById('note').textContent.includes('mode')`)

	b.key("1")
	b.sees(`!document.getElementById('questions').hidden && document.getElementById('policy').hidden`)
	b.selects("aaa222")
	if got := s.taken(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

// What a container is called and runs does nothing in any view, and is seen.
func TestHistoryOfHostile(t *testing.T) {
	s := usual()
	evil := "<img src=x onerror=hacked=1><script>hacked=1</script>\u202egnp.exe\x1b]0;owned\x07\x1b[2J\r\np\u0430ypal" + strings.Repeat("x", 2<<10)
	s.keeps(t, evil)
	b := open(t, s)
	b.key("4", "c", "u", "r", "l", kb.Enter)
	b.says("173 events")
	b.key(kb.Enter)
	b.key("5", "c", "1", kb.Enter)
	b.says("tainted at the end")
	b.key("6")
	b.says("4 destinations")
	b.key("7")
	b.run(chromedp.Focus("#policy .ask button"))
	b.key(kb.Enter)
	b.says("decisions would change")
	b.sees(`document.getElementById('diff').textContent.includes('<script>')`)
	for what, wrong := range map[string]string{
		"a script ran":               `typeof hacked !== 'undefined' || document.title.includes('owned')`,
		"there are foreign elements": `document.querySelectorAll('img, b, iframe').length > 0 || document.scripts.length !== 2`,
		"direction or controls":      `/[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f]/.test(document.body.textContent)`,
		"a look-alike letter":        `document.body.textContent.includes('\u0430')`,
		"the page is wider":          `document.scrollingElement.scrollWidth > innerWidth`,
	} {
		if get[bool](b, wrong) {
			t.Error(what)
		}
	}
}

// The views of the log fit a narrow screen, and axe finds nothing serious in them. With CONSOLE_UPDATE set they are written into docs.
func TestHistoryScreens(t *testing.T) {
	s := usual()
	s.keeps(t, "web-1")
	b := open(t, s)
	axe := b.axe()
	views := map[string]func(){
		"search": func() { b.key("4"); b.says("newest first") },
		"life":   func() { b.key("5"); b.says("tainted at the end") },
		"egress": func() { b.key("6"); b.says("most used first") },
		"whatif": func() { b.key("7"); b.says("decisions would change") },
	}
	b.key("4", "v", "e", "r", "d", "i", "c", "t", kb.Enter)
	b.says("newest first")
	b.key(kb.Enter)
	b.key("5", "c", "1", kb.Enter)
	b.says("tainted at the end")
	b.key(kb.ArrowDown, kb.ArrowDown, kb.ArrowDown)
	b.key("7")
	get[bool](b, `document.getElementById('policy-text').value = 'version: 1\nallow:\n  - prefix: 198.18.0.1\n    protocol: tcp\n', true`)
	b.run(chromedp.Focus("#policy .ask button"))
	b.key(kb.Enter)
	b.says("decisions would change")
	for _, look := range []string{"light", "dark"} {
		b.run(scheme(look))
		for name, view := range views {
			view()
			get[bool](b, `scrollTo(0, 0), true`)
			if look == "light" == (name != "egress") {
				b.shoot(name)
			}
			if axe {
				b.clean(look + ", " + name)
			}
		}
	}
	b.run(scheme("light"), chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	for name, view := range views {
		view()
		if get[bool](b, `document.scrollingElement.scrollWidth > innerWidth`) {
			t.Errorf("%s is wider than the screen", name)
		}
	}
}
