// Package console tests the page of weir console in a browser: Debian's Chromium, with no way but loopback.
package console

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"weir/internal/console"
	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/show"
)

// long is how long something may take to be seen on a machine that does much else.
const long = 20 * time.Second

// browser is one Chromium for all tests.
var browser context.Context

func TestMain(m *testing.M) {
	os.Exit(func() int {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.Flag("no-proxy-server", true), chromedp.Flag("ignore-certificate-errors", true), chromedp.WSURLReadTimeout(40*time.Second),
			// evil.test is a name that its owner lets lead to the console; no other name leads anywhere
			chromedp.Flag("host-resolver-rules", "MAP evil.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
		if os.Geteuid() == 0 {
			options = append(options, chromedp.NoSandbox)
		}
		all, end := chromedp.NewExecAllocator(context.Background(), options...)
		defer end()
		var close context.CancelFunc
		browser, close = chromedp.NewContext(all)
		defer close()
		if err := chromedp.Do(browser); err != nil {
			fmt.Fprintln(os.Stderr, "no Chromium: run scripts/packages browser:", err)
			return 1
		}
		return m.Run()
	}())
}

// tab is a page of the browser, at a console of its own.
type tab struct {
	t   testing.TB
	ctx context.Context
	at  string // of the console, as the page names it
}

func open(t testing.TB, s *sensor) *tab {
	t.Helper()
	c := serve(t, console.Options{Sensor: s, Listen: "127.0.0.1:0"})
	at, _, _ := strings.Cut(c.URL(), "#")
	return newTab(t, at).opens(c.URL())
}

// opens shows a console's page.
func (b *tab) opens(address string) *tab {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(1100, 700), chromedp.Navigate(address))
	b.sees(`document.getElementById('status').textContent.startsWith('enforce')`)
	return b
}

// serve serves a console until the test ends.
func serve(t testing.TB, o console.Options) *console.Console {
	t.Helper()
	o.By, o.Why, o.Every, o.Suggestion = "alice", why, 50*time.Millisecond, func(s gate.Suggestion) string { return s.Diff }
	o.Grant = func(event.GrantInfo) string {
		return "grant 4 lets out npm install (pid 300) and what it starts: to registry.corp.test:443/tcp, 1048576 bytes and 42s left"
	}
	c, err := console.Listen(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Serve(serving) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c
}

// newTab opens one that is closed with the test. A tab lives as long as the context of its first run, which is therefore no limited one.
func newTab(t testing.TB, at string) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(browser)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return &tab{t, ctx, at}
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, long)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// get is what an expression of the page's is.
func get[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, long)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// sees waits until an expression is true of the page.
func (b *tab) sees(expression string) {
	b.t.Helper()
	for end := time.Now().Add(long); ; {
		if get[bool](b, "Boolean("+expression+")") {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("never seen: %s; the page is: %.3000s", expression, get[string](b, `document.body.innerText`))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// says waits for a text in what a person sees.
func (b *tab) says(text string) {
	b.t.Helper()
	b.sees(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// key presses keys as a keyboard does: what a program takes as a command is no letter of a field any more.
func (b *tab) key(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.run(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			for _, r := range k {
				events := kb.Encode(r)
				if len(events) == 3 { // down, the character, up
					events[0].Text = events[1].Text
					events = []*input.DispatchKeyEventParams{events[0], events[2]}
				}
				for _, e := range events {
					if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, *e); err != nil {
						return err
					}
				}
			}
			return nil
		}))
	}
}

// at waits until a question is selected, and shown to its end.
func (b *tab) selects(id string) {
	b.t.Helper()
	b.sees(fmt.Sprintf("document.querySelector('[aria-selected=true]')?.id === 'q-%s' && document.getElementById('unread').hidden", id))
}

const isOpen = `document.querySelector('dialog[open]')?.id === `

// Every question is decided by keys alone, and each answer is for the one that was selected.
func TestKeysAlone(t *testing.T) {
	s := usual()
	b := open(t, s)
	if got := get[string](b, `location.href + document.referrer + document.cookie`); got != b.at {
		t.Errorf("the address bar, referrer and what scripts see of cookies are %q", got)
	}
	b.says("2 of one program to one destination")
	b.selects("aaa222")
	b.key("j", "j", "k")
	b.selects("bbb222")

	b.key("a")
	b.sees(isOpen + `'confirm'`)
	b.key("2", "y") // a wider scope
	b.sees(`!document.getElementById('q-bbb222')`)
	b.selects("ccc222")

	b.key("d")
	b.sees(isOpen + `'confirm'`)
	b.key("r")
	b.sees(`document.activeElement.id === 'reason'`)
	b.key("n", "o", "t", " ", "y", "e", "t", kb.Enter)
	b.sees(`!document.getElementById('q-ccc222')`)

	b.key("k")
	b.selects("aaa222")
	b.key("l")
	b.sees(isOpen + `'lasting' && document.activeElement.id === 'for'`)
	b.key(kb.Tab, "e", kb.Tab, "1", "M", "i", "B", kb.Enter) // who: every process of its program
	b.says("so far       nothing")
	b.says("every process of web-1 that runs /usr/bin/pip")
	b.says("for 30m, 1 MiB in all")
	if len(s.taken()) != 2 {
		t.Error("answered before it was confirmed")
	}
	b.key("y")
	b.sees(`!document.getElementById('q-aaa222')`)

	b.selects("ddd222")
	b.key("a")
	b.sees(isOpen + `'confirm'`)
	b.key(kb.Escape)
	b.sees(`!document.querySelector('dialog[open]') && document.activeElement.id === 'queue'`)
	b.key("y", kb.Enter) // nothing is open
	b.key("a")
	b.sees(isOpen + `'confirm'`)
	b.key("y")
	b.says("No questions wait.")

	var got []string
	for _, a := range s.taken() {
		got = append(got, fmt.Sprintf("%s %t %d %q %s %s %d", a.id, a.reply.Allow, a.reply.Scope, a.reply.Why, a.reply.For, a.reply.Who, a.reply.Bytes))
		if a.reply.By != "alice" || !strings.Contains(a.reply.Shown, "container    web-1") {
			t.Errorf("%+v", a)
		}
	}
	want := []string{`bbb222 true 2 ""   0`, `ccc222 false 0 "not yet"   0`, `aaa222 true 0 "" 30m program 1048576`, `ddd222 true 0 ""   0`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("answers:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	b.key("3")
	b.says("every process of web-1 that runs /usr/bin/pip")
	b.key("2")
	b.says("grant 4 lets out npm install")
	b.run(chromedp.Focus("#cards button"), chromedp.KeyEvent(kb.Enter))
	b.says("web-1: taint secret")
	b.key("3")
	b.run(chromedp.Focus("#standing button"), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Enter))
	b.says("No approvals go on.")
}

func (s *sensor) taken() (all []given) {
	s.change(func() { all = append(all, s.answers...) })
	return all
}

// What ends or changes meanwhile is not answered, what is still typed is for nothing else, and the next key is not for what has moved into its place.
func TestWhatHasEnded(t *testing.T) {
	s := usual()
	b := open(t, s)
	b.selects("aaa222")
	b.key("a")
	b.sees(isOpen + `'confirm'`)
	b.key("r")
	b.sees(`document.activeElement.id === 'reason'`)
	s.change(func() { s.questions = s.questions[1:] })
	b.says("nothing was answered")
	b.selects("bbb222")
	b.key("so may I say no, today", kb.Enter, kb.Escape)
	b.sees(`!document.querySelector('dialog[open]') && document.activeElement.id === 'queue'`)
	b.key("y", "a")
	b.says("Another question is selected now")
	b.key("y")
	if got := s.taken(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	b.key("a")
	b.sees(isOpen + `'confirm'`)
	s.change(func() { s.questions[0].Gone = true }) // it says something else now
	b.says("nobody waits any more")
	b.key("2", "y", kb.Enter, "r", "m", "a", "y", kb.Escape)
	b.sees(`!document.querySelector('dialog[open]') && document.activeElement.id === 'queue'`)
	b.key("l")
	b.sees(isOpen + `'lasting'`)
	s.change(func() { s.questions[0].Gone = false })
	b.says("nothing was answered")
	b.key(kb.Enter, "y", kb.Escape)
	b.sees(`!document.querySelector('dialog[open]') && document.activeElement.id === 'queue'`)

	s.change(func() { s.err = control.ErrNotRunning })
	b.says("no sensor is running: start it with")
	b.key("a")
	b.says("The sensor cannot be asked now.")
	s.change(func() { s.err = nil })
	b.sees(`document.getElementById('error').hidden`)
	if got := s.taken(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	s.change(func() { // nothing comes
		get[bool](b, `(now => { Date.now = () => now() + 60000; })(Date.now), true`)
		b.says("was not heard for 40 seconds")
	})
	b.sees(`document.getElementById('error').hidden`)
}

// Why a container is tainted is told anew when its taint changes, also while something else of it changes.
func TestWhyIsOfNow(t *testing.T) {
	s := usual()
	b := open(t, s)
	b.key("2")
	b.run(chromedp.Focus("#why-c1"), chromedp.KeyEvent(kb.Enter))
	b.says("web-1: taint secret")
	s.change(func() {
		more := cause()
		more.Bit = "corruption"
		s.containers[0].Taint = []string{"corruption", "secret"}
		s.why["c1"] = control.Why{Container: s.containers[0], Causes: []event.Cause{cause(), more}}
	})
	b.says("web-1: taint corruption")
	b.sees(`document.activeElement.id === 'why-c1'`)
	b.key(kb.Enter)
	b.sees(`!document.querySelector('#cards .text')`)
	s.change(func() { s.containers[0].Taint = nil })
	b.sees(`!document.querySelector('#cards .card').innerText.includes('secret')`)
	if get[bool](b, `Boolean(document.querySelector('#cards .text'))`) {
		t.Error("what was closed is shown again")
	}
}

// Who may only look has no button and no key that answers, whether the policy's groups or --may-answer say so.
func TestWhoLooks(t *testing.T) {
	s := usual()
	s.approvals = []gate.StandingApproval{{ID: "sss222", Adds: "all", By: "alice", Bytes: 1 << 20}}
	socket := filepath.Join(t.TempDir(), "page.sock")
	to := &url.URL{Scheme: "http"}
	name := ""
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			to.Host = r.In.Host
			r.SetURL(to)
			r.Out.Host = r.In.Host
			r.Out.Header["X-User"] = []string{name}
		},
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }},
	})
	t.Cleanup(proxy.CloseClientConnections) // its open pages
	uid := uint32(os.Getuid())
	c := serve(t, console.Options{Sensor: s, Listen: socket, Hosts: []string{proxy.Listener.Addr().String()}, Proxy: &uid, Login: "X-User", Answers: []string{"alice"}})
	off := `['approve', 'deny', 'last', 'revoke-sss222'].%s((id) => document.getElementById(id).disabled)`
	look := func(b *tab) {
		t.Helper()
		b.sees(`document.getElementById('status').textContent.endsWith('(may look)')`)
		b.sees(fmt.Sprintf(off, "every"))
		b.selects("aaa222")
		for _, key := range []string{"a", "d", "l"} {
			get[bool](b, `document.getElementById('note').textContent = '', true`)
			b.key(key)
			b.says("You may look here, and not answer.")
			b.key("y", kb.Enter)
		}
		get[bool](b, `document.getElementById('approve').click(), document.getElementById('revoke-sss222').click(), true`)
		if get[bool](b, `Boolean(document.querySelector('dialog[open]'))`) {
			t.Error("a dialog is open")
		}
	}
	name = "bob"
	look(newTab(t, "").opens(c.URL()))
	s.change(func() { s.looks = true })
	look(open(t, s))
	s.change(func() { s.looks = false })
	if got := s.taken(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	name = "alice"
	b := newTab(t, "").opens(c.URL())
	b.sees(`document.getElementById('status').textContent.endsWith(', alice') && !` + fmt.Sprintf(off, "some"))
	b.selects("aaa222")
	b.sees(`document.getElementById('error').hidden`) // or the page says that it cannot ask just then
	b.key("a", "y")
	b.sees(`!document.getElementById('q-aaa222')`)
}

// A key that is held down is one key: what it opens it does not confirm.
func TestHeldKey(t *testing.T) {
	s := usual()
	b := open(t, s)
	b.selects("aaa222")
	b.run(chromedp.Focus("#approve"), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		down := kb.Encode('\r')[0]
		down.Text = "\r"
		for range 5 {
			if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, *down); err != nil {
				return err
			}
			down.AutoRepeat = new(true)
		}
		return nil
	}))
	b.sees(isOpen + `'confirm'`)
	if got := s.taken(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	b.key(kb.Enter)
	b.sees(`!document.getElementById('q-aaa222')`)
}

// The second click of two answers nothing: it was meant for the button that opened the dialog.
func TestDoubleClick(t *testing.T) {
	s := usual()
	b := open(t, s)
	b.selects("aaa222")
	b.key("a")
	b.sees(isOpen + `'confirm'`)
	click := `document.getElementById('yes').dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, detail: %d }))`
	get[bool](b, fmt.Sprintf(click, 2))
	b.sees(isOpen + `'confirm'`)
	get[bool](b, fmt.Sprintf(click, 1))
	b.sees(`!document.getElementById('q-aaa222')`)
	if got := s.taken(); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// What is below the end of the window was not on the screen, nor what somebody jumped over.
func TestSeenAsAWhole(t *testing.T) {
	s := usual()
	s.questions = s.questions[:1]
	b := open(t, s)
	b.selects("aaa222")
	b.run(chromedp.EmulateViewport(360, 320))
	s.change(func() {
		s.questions = []gate.Question{asks("eee222", "example.org", "curl", strings.Repeat("x", 1900)), asks("fff222", "example.net", "curl", "y")}
	})
	b.sees(`document.querySelector('[aria-selected=true]')?.id === 'q-eee222'`)
	b.key("a") // says that another is selected
	b.key("a")
	b.says("see all of it first")
	get[bool](b, `document.getElementById('text').scrollTo(0, 1e9), document.getElementById('text').scrollIntoView({block: 'end'}), true`)
	b.says("A part of this was not on the screen")
	b.key("a")
	if get[bool](b, `Boolean(document.querySelector('dialog[open]'))`) {
		t.Error("it can be approved though a part was jumped over")
	}
	for get[bool](b, `document.getElementById('text').scrollTop > 0`) {
		b.key("b")
	}
	b.pages()
	b.key("l")
	b.sees(isOpen + `'lasting'`)
	b.key(kb.Enter)
	b.sees(`!document.getElementById('added').hidden`)
	b.key("y")
	b.says("There is more of what it adds")
	for range 40 {
		b.key(" ")
	}
	b.key("y")
	b.sees(`!document.getElementById('q-eee222')`)
	if got := s.taken(); len(got) != 1 || !got[0].reply.Allow || got[0].reply.For != "30m" {
		t.Errorf("%+v", got)
	}
}

// pages turns the pages of a long text to its end.
func (b *tab) pages() {
	b.t.Helper()
	for range 500 {
		if get[bool](b, `document.getElementById('unread').hidden`) {
			return
		}
		b.key(" ")
	}
	b.t.Fatal("the text has no end")
}

// Who revokes presses twice, also while the numbers beside the button change.
func TestRevokeWhileUsed(t *testing.T) {
	s := usual()
	s.approvals = []gate.StandingApproval{{ID: "sss222", Adds: "all", By: "alice", Bytes: 1 << 20}, {ID: "ttt222", Adds: "none", By: "alice", Bytes: 1 << 20}}
	b := open(t, s)
	b.key("3")
	b.says("given by alice")
	b.run(chromedp.Focus("#revoke-sss222"))
	b.key(kb.Enter)
	b.says("revoke it: press again")
	s.change(func() { s.approvals[0].Uses = 77 })
	b.says("used 77 times")
	b.key(kb.Enter)
	b.sees(`!document.getElementById('revoke-sss222') && document.getElementById('revoke-ttt222').textContent === 'revoke'`)
}

// What a container chose does nothing and is seen (B51), and what is shortened is not approved before all of it was shown.
func TestHostile(t *testing.T) {
	s := usual()
	word := strings.Repeat("x", 100<<10) + "THE-END"
	evil := "<img src=x onerror=hacked=1><script>hacked=1</script>\u202egnp.exe\x1b]0;owned\x07\x1b[2J\r\nstate        approved p\u0430ypal"
	q := asks("aaa222", "example.org", "curl", evil, word)
	q.Container.Name = "web\u202e\u2066<b>" + evil
	q.Causes[0].Why, q.Causes[0].By = evil, evil
	s.questions = append(s.questions[:0:0], q)
	s.containers[0].Name, s.containers[0].Image, s.containers[0].By = evil, evil, evil
	s.why["c1"] = control.Why{Container: control.Container{Name: evil}, Causes: []event.Cause{cause()}}
	b := open(t, s)
	b.sees(`document.querySelector('[aria-selected=true]')?.id === 'q-aaa222'`)
	b.key("2")
	b.run(chromedp.Focus("#cards button"), chromedp.KeyEvent(kb.Enter))
	b.sees(`document.querySelector('#cards .text')?.textContent.includes('<script>')`)
	b.key("1")
	for what, wrong := range map[string]string{
		"a script ran":               `typeof hacked !== 'undefined' || document.title.includes('owned')`,
		"there are foreign elements": `document.querySelectorAll('img, b, iframe, svg, script:not([src="/app.js"], [src="/history.js"])').length > 0`,
		"direction or controls":      `/[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f]/.test(document.body.textContent)`,
		"a look-alike letter":        `document.body.textContent.includes('\u0430')`,
		"it poses as a line":         `[...document.querySelectorAll('#text .line')].some((e) => e.textContent.startsWith('state        approved'))`,
		"the page is wider":          `document.scrollingElement.scrollWidth > innerWidth`,
	} {
		if get[bool](b, wrong) {
			t.Error(what)
		}
	}
	b.says(`\u202egnp.exe\x1b]0;owned\x07\x1b[2J\r\nstate`)
	b.says("more characters]")
	if get[bool](b, `document.getElementById('text').textContent.includes('x'.repeat(5000))`) {
		t.Error("the long word is not shortened")
	}
	b.key("a")
	b.says("see all of it first")
	b.key("f")
	b.sees(`document.getElementById('text').textContent.includes('THE-END')`)
	b.key("a")
	b.says("There is more below")
	if get[bool](b, `Boolean(document.querySelector('dialog[open]'))`) {
		t.Error("it can be approved before it was seen")
	}
	b.pages()
	b.key("a")
	b.sees(isOpen + `'confirm'`)
	b.key("y")
	b.says("No questions wait.")
	if got := s.taken(); len(got) != 1 || got[0].reply.Shown != show.Question(q) {
		t.Errorf("%d answers", len(got))
	}
}

// A page of another port or name reaches nothing, though it runs in the same browser; nor does a name that was let lead here.
func TestForeignPages(t *testing.T) {
	s := usual()
	b := open(t, s)
	b.selects("aaa222")
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<!doctype html><iframe id=frame src=%q></iframe><script>
const at = %[1]q, tries = [];
for (const path of ['enter', 'live', 'preview', 'answer', 'revoke', 'why'])
	for (const mode of ['no-cors', 'cors'])
		for (const type of ['text/plain', 'application/json'])
			tries.push(fetch(at + path, {method: 'POST', mode, credentials: 'include', headers: {'Content-Type': type}, body: '{"id":"aaa222","allow":true}'})
				.then((a) => a.type === 'opaque' ? 'opaque' : a.text()).catch(() => 'failed'));
Promise.all(tries).then((all) => { window.results = all; });
</script>`, b.at)
	}))
	defer evil.Close()
	u, err := url.Parse(evil.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]string{"another port": evil.URL, "another name": "http://evil.test:" + u.Port()} {
		other := newTab(t, at)
		other.run(chromedp.Navigate(at))
		other.sees(`window.results`)
		for _, r := range get[[]string](other, `window.results`) {
			if r != "failed" && r != "opaque" {
				t.Errorf("%s reads %q", name, r)
			}
		}
		if get[bool](other, `document.getElementById('frame').contentDocument !== null && document.getElementById('frame').contentDocument.getElementById('queue') !== null`) {
			t.Errorf("%s has the page in a frame", name)
		}
	}
	at, err := url.Parse(b.at)
	if err != nil {
		t.Fatal(err)
	}
	rebound := newTab(t, "")
	rebound.run(chromedp.Navigate("http://evil.test:" + at.Port() + "/"))
	rebound.says("refused: this is not the address that weir console printed")
	if got := s.taken(); len(got) > 0 {
		t.Errorf("%+v", got)
	}

	again := newTab(t, b.at)
	again.run(chromedp.Navigate(b.at)) // the cookie is there, the key is the first tab's
	again.says("this browser was not let in")
	b.key("a")
	b.sees(isOpen + `'confirm'`)
	b.key("y")
	b.sees(`!document.getElementById('q-aaa222')`)
}

// The page fits a narrow screen, and is light or dark as the system is. With CONSOLE_UPDATE set, its views are written into docs.
func TestScreens(t *testing.T) {
	s := usual()
	b := open(t, s)
	b.selects("aaa222")
	b.key("l")
	b.sees(isOpen + `'lasting'`)
	b.key(kb.Enter)
	b.says("so far       nothing")
	b.shoot("lasting")
	b.key("y")
	b.sees(`!document.getElementById('q-aaa222')`)
	b.selects("bbb222")
	b.sees(`document.getElementById('note').textContent.includes('approved')`)
	b.shoot("questions")
	light := get[string](b, `getComputedStyle(document.body).backgroundColor`)
	b.run(scheme("dark"))
	b.key("2")
	b.run(chromedp.Focus("#cards button"), chromedp.KeyEvent(kb.Enter))
	b.says("web-1: taint secret")
	b.shoot("containers")
	if dark := get[string](b, `getComputedStyle(document.body).backgroundColor`); dark == light {
		t.Error("light and dark are both", dark)
	}
	b.run(scheme("light"), chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	for _, key := range []string{"3", "2", "1"} {
		b.key(key)
		if get[bool](b, `document.scrollingElement.scrollWidth > innerWidth`) {
			t.Errorf("view %s is wider than the screen", key)
		}
		if key == "3" {
			b.shoot("approvals")
		}
	}
	b.shoot("narrow")
}

// axe gives a page axe, which clean uses; false: it is not there.
func (b *tab) axe() bool {
	b.t.Helper()
	found, err := filepath.Glob("../../.cache/agents/axe-*/node_modules/axe-core/axe.min.js")
	if err != nil || len(found) > 1 {
		b.t.Fatalf("%q, %v: there is more than one: remove .cache/agents and run scripts/agents", found, err)
	}
	if len(found) == 0 {
		fmt.Fprintf(os.Stderr, "\n***** %s IS NOT TESTED: axe is not there: run scripts/agents, with npm *****\n\n", b.t.Name())
		return false
	}
	script, err := os.ReadFile(found[0])
	if err != nil {
		b.t.Fatal(err)
	}
	return get[bool](b, string(script)+"; true")
}

// clean has axe find nothing serious in what is shown.
func (b *tab) clean(what string) {
	b.t.Helper()
	get[bool](b, `window.found = null, axe.run(document).then((r) => { window.found = r; }, (e) => { window.found = {failed: String(e)}; }), true`)
	b.sees(`window.found`)
	if got := get[int](b, `window.found.passes?.length ?? 0`); got < 10 {
		b.t.Errorf("%s: only %d rules have passed: %s", what, got, get[string](b, `String(window.found.failed)`))
	}
	for _, bad := range get[[]string](b, `window.found.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => v.id + ': ' + v.nodes.map((n) => n.html + ' ' + n.failureSummary).join('; '))`) {
		b.t.Errorf("%s: %s", what, bad)
	}
}

// axe finds nothing serious in any view or dialog, light or dark.
func TestAxe(t *testing.T) {
	s := usual()
	s.change(func() {
		s.approvals = []gate.StandingApproval{{ID: "sss222", Adds: "all", By: "alice", Bytes: 1 << 20}}
	})
	b := open(t, s)
	if !b.axe() {
		return
	}
	clean := b.clean
	for _, look := range []string{"light", "dark"} {
		b.run(scheme(look))
		b.key("1")
		b.selects("aaa222")
		clean(look + ", questions")
		b.key("a")
		b.sees(isOpen + `'confirm'`)
		clean(look + ", confirming")
		b.key(kb.Escape)
		b.sees(`!document.querySelector('dialog[open]')`)
		b.key("l")
		b.sees(isOpen + `'lasting'`)
		b.key(kb.Enter)
		b.says("so far       nothing")
		clean(look + ", for longer")
		b.key(kb.Escape)
		b.sees(`!document.querySelector('dialog[open]')`)
		b.key("2")
		b.says("live · c1")
		if look == "light" {
			b.run(chromedp.Focus("#cards button"))
			b.key(kb.Enter)
		}
		b.says("web-1: taint secret")
		clean(look + ", containers")
		b.key("3")
		b.says("given by alice")
		clean(look + ", approvals")
	}
	s.change(func() { s.err = control.ErrNotRunning })
	b.says("no sensor is running")
	clean("without a sensor")
}

// A hundred questions are decided by keys alone, each as it was meant.
func TestHundred(t *testing.T) {
	s := usual()
	s.questions = nil
	allowed := func(i int) bool { return i%3 != 0 }
	id := func(i int) string { return fmt.Sprintf("q%03d", i) }
	for i := range 100 {
		q := asks(id(i), fmt.Sprintf("host-%d.example.org", i), "curl", fmt.Sprintf("https://host-%d.example.org/", i))
		s.questions = append(s.questions, q)
	}
	b := open(t, s)
	begun := time.Now()
	for i := range 100 {
		b.selects(id(i))
		key := "d"
		if allowed(i) {
			key = "a"
		}
		b.key(key)
		b.sees(isOpen + `'confirm' && document.getElementById('confirm-about').textContent.includes('host-` + fmt.Sprint(i) + `.')`)
		b.key("y")
	}
	b.says("No questions wait.")
	t.Logf("a hundred questions in %v", time.Since(begun))
	got := s.taken()
	for i, a := range got {
		if a.id != id(i) || a.reply.Allow != allowed(i) {
			t.Errorf("answer %d is %+v", i, a)
		}
	}
	if len(got) != 100 {
		t.Errorf("%d answers", len(got))
	}
}

// scheme is what the system prefers: light or dark.
func scheme(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	})
}

// shoot writes what is seen into docs, if that is asked for.
func (b *tab) shoot(name string) {
	b.t.Helper()
	if os.Getenv("CONSOLE_UPDATE") == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, long)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	const most = 150 << 10
	if len(png) > most {
		b.t.Errorf("%s has %d bytes, at most %d are wanted", name, len(png), most)
	}
	if err := os.WriteFile(filepath.Join("../../docs", "console-"+name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// BenchmarkFirstPaint: at most 300 ms are wanted on loopback until something is seen, by the browser's own clock. Each time is a tab and a
// console of its own.
func BenchmarkFirstPaint(b *testing.B) {
	var paint float64
	for range b.N {
		page := open(b, usual())
		page.sees(`performance.getEntriesByName('first-contentful-paint').length`)
		paint += get[float64](page, `performance.getEntriesByName('first-contentful-paint')[0].startTime`)
	}
	b.ReportMetric(paint/float64(b.N), "paint-ms")
}
