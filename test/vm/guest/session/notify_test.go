//go:build vmguest

package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/vm/guest/rig"
)

const (
	notifyKey   = "not-a-real-notify-key"
	callbackKey = "not-a-real-callback-key"
	callbackAt  = "127.0.0.1:8787"
	callbackFor = "/run/weir-callback.sock"
)

// posted is what the receiver in the VM was posted.
type posted struct {
	Type     string
	Question struct{ ID, Command string }
	Shown    struct{ Text, SHA256 string }
	Answer   *struct{ Outcome, By string }
	right    bool // its signature
}

// hmacHex signs as docs/approvals.md says, without the sensor's own code.
func hmacHex(key, text string) string {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(text))
	return hex.EncodeToString(m.Sum(nil))
}

// listener takes notifications, and checks their signatures.
func listener(t *testing.T) (url string, news chan posted) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	news = make(chan posted, 100)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var a posted
		if err := json.Unmarshal(body, &a); err != nil {
			t.Error(err)
		}
		at := r.Header.Get("Weir-Timestamp")
		a.right = r.Header.Get("Weir-Signature") == "v1="+hmacHex(notifyKey, "v1:notify:"+at+":"+string(body))
		news <- a
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends when it is closed
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return "http://" + l.Addr().String() + "/hook", news
}

// call posts a signed answer to the callback.
func call(t *testing.T, key, body string) (int, string) {
	t.Helper()
	at := fmt.Sprint(time.Now().Unix())
	r, err := http.NewRequest(http.MethodPost, "http://"+callbackAt+"/v1/answer", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Weir-Timestamp", at)
	r.Header.Set("Weir-Signature", "v1="+hmacHex(key, "v1:answer:"+at+":"+body))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func next(t *testing.T, news chan posted, kind, id string) posted {
	t.Helper()
	for end := time.After(2 * rig.Late); ; {
		select {
		case a := <-news:
			if !a.right {
				t.Errorf("posted with a wrong signature: %+v", a)
			}
			if a.Type == kind && a.Question.ID == id {
				return a
			}
		case <-end:
			t.Fatalf("%s of %s was not posted", kind, id)
		}
	}
}

// TestAnnounced: a question goes out signed, its answer comes back signed, and the
// held curl connects (G15, G17, B50).
func TestAnnounced(t *testing.T) {
	url, news := listener(t)
	for name, key := range map[string]string{"/run/notify.key": notifyKey, "/run/callback.key": callbackKey} {
		if err := os.WriteFile(name, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := &fixture{world: rig.NewOutside(t)}
	f.sensor = rig.StartSensor(t, fmt.Sprintf(`
notify:
  url: %s
  key_file: /run/notify.key
  callback:
    listen: %s
    key_file: /run/callback.key
    users: [alice]
`, url, callbackAt))

	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.sensor.Must(t, "events"))
		}
	})
	to, s := f.web(t), f.guard(t, "secret")
	p := s.Start(t, append(to.Curl(), "-H", "Authorization: Bearer s3cr3tvalue")...)
	q := to.asked(t)
	a := next(t, news, "question.asked", q.ID)
	if !strings.Contains(a.Question.Command, to.Text) || strings.Contains(a.Question.Command+a.Shown.Text, "s3cr3tvalue") {
		t.Errorf("posted: %+v", a)
	}
	approve := fmt.Sprintf(`{"id":%q,"answer":"approve","user":"alice","shown":%q,"why":"known"}`, q.ID, a.Shown.SHA256)

	// G17, B50: a guarded process does not reach the callback, clean or tainted.
	clean := f.guard(t)
	forged := []string{"curl", "-sS", "-m", "60", "--data-binary", approve, "-H", fmt.Sprint("Weir-Timestamp: ", time.Now().Unix()), "-H", "Weir-Signature: v1=00",
		"http://" + callbackAt + "/v1/answer"}
	if r := clean.Run(t, forged...); r.Exit == 0 || r.Stdout != "" {
		t.Errorf("a clean guarded process got %s", r)
	}
	if code, text := call(t, "another key of nobody's", approve); code != 401 || text != "refused: the request is not signed with the key\n" {
		t.Errorf("a stranger on the host: %d %s", code, text)
	}
	if r := s.Run(t, forged...); r.Exit != 7 {
		t.Errorf("a tainted process reached the callback: %s", r)
	}
	if code, text := call(t, notifyKey, approve); code != 401 {
		t.Errorf("another key: %d %s", code, text)
	}
	if code, text := call(t, callbackKey, strings.Replace(approve, "alice", "bob", 1)); code != 403 {
		t.Errorf("another user: %d %s", code, text)
	}
	to.Nothing(t)

	code, text := call(t, callbackKey, approve)
	if code != 200 || !strings.Contains(text, "approved by callback user alice: known") {
		t.Fatalf("the answer: %d %s", code, text)
	}
	succeeded(t, p, "answer")
	to.Arrived(t)
	if a := next(t, news, "question.ended", q.ID); a.Answer == nil || a.Answer.Outcome != "approved" || a.Answer.By != "callback user alice" {
		t.Errorf("posted: %+v", a)
	}
	if code, text := call(t, callbackKey, strings.Replace(approve, "known", "again", 1)); code != 409 || !strings.Contains(text, "already answered") {
		t.Errorf("a second answer: %d %s", code, text)
	}
	e := f.sensor.Event(t, func(e event.Event) bool { return e.Kind == event.Verdict && e.Question == q.ID })
	if v := e.Verdict; v.Why != "known" || v.From == nil || v.From.Via != "callback" || v.From.User != "alice" || v.Shown == nil || v.Shown.SHA256 != a.Shown.SHA256 {
		t.Errorf("the log has %+v, from %+v, shown %+v", v, v.From, v.Shown)
	}

	// On the host: who, from where, why, upon which text (G17).
	p = s.Start(t, to.Curl()...)
	q = to.again(t, q)
	f.sensor.Must(t, "deny", q.ID, "--reason", "not today")
	if r := p.Wait(t); r.Exit != 7 {
		t.Errorf("curl, denied: want exit 7, got %s", r)
	}
	next(t, news, "question.ended", q.ID)
	var ended []gate.Question
	if err := json.Unmarshal([]byte(f.sensor.Must(t, "pending", "--ended", "--json")), &ended); err != nil {
		t.Fatal(err)
	}
	if len(ended) < 2 || ended[0].ID != q.ID || ended[0].Why != "not today" || ended[0].From == nil || ended[0].From.Via != "control" ||
		!strings.HasSuffix(ended[0].From.Exe, "/weir") || ended[0].Shown == nil || !strings.Contains(ended[0].Shown.Text, to.Text) {
		t.Errorf("weir pending --ended: %+v", ended)
	}

	t.Run("webhook down", func(t *testing.T) { f.webhookDown(t, s) })
}

// webhookDown: a receiver that is away delays nobody, is told, and what it missed is
// counted.
func (f *fixture) webhookDown(t *testing.T, s *rig.Session) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	f.sensor.Stop(t)
	for _, url := range []string{"http://127.0.0.1:9/", "http://" + silent.Addr().String() + "/"} {
		f.sensor.Configure(t, fmt.Sprintf(`
notify:
  url: %s
  key_file: /run/notify.key
  callback:
    listen: %s
    key_file: /run/callback.key
    users: [alice]
`, url, callbackFor))
		f.sensor.Restart(t)
		to := f.web(t)
		p := s.Start(t, to.Curl()...)
		q := to.asked(t)
		f.sensor.Approve(t, q.ID)
		succeeded(t, p, "answer")
		to.Arrived(t)
		f.sensor.Event(t, func(e event.Event) bool {
			return e.Kind == event.Error && strings.HasPrefix(e.Message, "posting a question fails")
		})
		if strings.HasSuffix(url, ":9/") {
			// B50: on a Unix socket the sensor knows its peers, and a guarded one is a stranger even with the key.
			clean := f.guard(t)
			body, at := fmt.Sprintf(`{"id":%q,"answer":"deny","user":"alice"}`, q.ID), fmt.Sprint(time.Now().Unix())
			signed := []string{"curl", "-sS", "-m", "20", "--unix-socket", callbackFor, "--data-binary", body, "-H", "Weir-Timestamp: " + at,
				"-H", "Weir-Signature: v1=" + hmacHex(callbackKey, "v1:answer:"+at+":"+body), "http://callback/v1/answer"}
			if r := clean.Run(t, signed...); r.Exit == 0 || r.Stdout != "" {
				t.Errorf("a guarded process got %s", r)
			}
		}
		f.sensor.Stop(t)
	}
	f.sensor.Restart(t)
}
