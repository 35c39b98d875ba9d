package console

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"weir/internal/control"
	"weir/internal/event"
)

const (
	maxRequest = 256 << 10 // bytes
	keyHeader  = "X-Weir-Key"

	maxSessions = 64 // of people with names
	sessionTime = 12 * time.Hour
)

// session is a browser that was let in.
type session struct {
	id, key string // its cookie, and what its page has beside it
	name    string // who logged in at the proxy; empty: there is none
	until   time.Time
}

// policy of what the page may load and do: its own files, no text as code, in no frame.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

var headers = map[string]string{
	"Cache-Control":                "no-store",
	"Content-Security-Policy":      contentPolicy,
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
}

// refusal is an answer to a request that is not served.
type refusal struct {
	status int
	text   string
}

// Error returns what the person is told.
func (r refusal) Error() string { return r.text }

var (
	errStranger = refusal{http.StatusUnauthorized, "this browser was not let in: open the address that weir console printed, or start it again for a new one"}
	errUsed     = refusal{http.StatusUnauthorized, "this address was used, or is not of this weir console: start it again for a new one"}
	errName     = refusal{http.StatusUnauthorized, "refused: the proxy has to name who logged in, in one header with 1 to 128 visible ASCII characters without brackets"}
	errEnded    = refusal{http.StatusUnauthorized, "this browser was not let in, or somebody else is logged in now: load the page again"}
	errLooks    = refusal{http.StatusForbidden, "refused: you may look here, and not answer"}
	errOrigin   = refusal{http.StatusForbidden, "refused: the request comes from another site"}
)

// guard lets through what comes from the page itself, and sets what the browser is to keep to.
func (c *Console) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		if !slices.Contains(c.hosts, r.Host) { // a name that somebody let lead here (DNS rebinding)
			fail(w, refusal{http.StatusMisdirectedRequest, "refused: this is not the address that weir console printed"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// own says whether a request is one of the page's scripts: browsers say where a request comes from, and let no page say it otherwise.
func (c *Console) own(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	secure := len(c.o.Hosts) > 0 // behind a proxy
	return err == nil && origin.Host == r.Host && (origin.Scheme == "https") == secure && origin.Scheme+"://"+origin.Host == r.Header.Get("Origin")
}

// enter takes the token of the printed address, once, or the name that the proxy says.
func (c *Console) enter(w http.ResponseWriter, r *http.Request) {
	var q struct{ Token string }
	if !c.own(r) {
		fail(w, errOrigin)
		return
	}
	if err := read(w, r, &q); err != nil {
		fail(w, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	s := session{id: rand.Text() + rand.Text(), key: rand.Text() + rand.Text(), name: c.login(r), until: now.Add(sessionTime)}
	switch {
	case c.o.Login != "" && s.name == "":
		fail(w, errName)
		return
	case c.o.Login != "":
		c.sessions = slices.DeleteFunc(c.sessions, func(o session) bool { return !now.Before(o.until) })
		if len(c.sessions) == maxSessions {
			c.sessions = slices.Delete(c.sessions, 0, 1)
		}
	case q.Token == "":
		fail(w, errStranger)
		return
	case c.link == "" || subtle.ConstantTimeCompare([]byte(q.Token), []byte(c.link)) != 1:
		fail(w, errUsed)
		return
	}
	c.link = ""
	c.sessions = append(c.sessions, s)
	http.SetCookie(w, &http.Cookie{
		Name: c.cookie, Value: s.id, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: len(c.o.Hosts) > 0,
	})
	write(w, map[string]string{"key": s.key})
}

// member serves scripts of the page in a browser that was let in. A cookie is sent to every port of its host, so it is not enough: the key
// beside it is the page's alone, and no other site can send it.
func (c *Console) member(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !c.own(r):
			fail(w, errOrigin)
		case !c.known(r):
			fail(w, c.stranger())
		default:
			next(w, r)
		}
	}
}

func (c *Console) stranger() error {
	if c.o.Login != "" {
		return errEnded
	}
	return errStranger
}

func (c *Console) known(r *http.Request) bool {
	cookie, err := r.Cookie(c.cookie)
	if err != nil {
		return false
	}
	name := c.login(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.sessions, func(s session) bool {
		id := subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(s.id))
		key := subtle.ConstantTimeCompare([]byte(r.Header.Get(keyHeader)), []byte(s.key))
		return id&key == 1 && name == s.name && (c.o.Login == "" || time.Now().Before(s.until))
	})
}

// login is who logged in, as the proxy says of this request; empty: nobody, or there are no names here.
func (c *Console) login(r *http.Request) string {
	if c.o.Login == "" {
		return ""
	}
	if said := r.Header.Values(c.o.Login); len(said) == 1 && control.LoginName(said[0]) {
		return said[0]
	}
	return ""
}

// mayAnswer says whether a request's person may do more than look here; the sensor says what the console may.
func (c *Console) mayAnswer(r *http.Request) bool {
	return c.o.Login == "" || slices.Contains(c.o.Answers, c.login(r))
}

// read reads a request.
func read(w http.ResponseWriter, r *http.Request, into any) error {
	return readMost(w, r, into, maxRequest)
}

func readMost(w http.ResponseWriter, r *http.Request, into any, most int64) error {
	if r.Header.Get("Content-Type") != "application/json" {
		return refusal{http.StatusUnsupportedMediaType, "refused: the request is not JSON"}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return refusal{http.StatusBadRequest, "the request cannot be read"}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return refusal{http.StatusBadRequest, "the request cannot be read"}
	}
	return nil
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // who has gone needs no answer
}

// fail tells on one line why a request was not carried out.
func fail(w http.ResponseWriter, err error) {
	var r refusal
	status := http.StatusBadGateway
	switch {
	case errors.As(err, &r):
		status = r.status
	case control.Code(err) == control.Denied:
		status = http.StatusForbidden
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintln(w, mustJSON(map[string]string{"error": told(err)}))
}

// told is an error on one visible line.
func told(err error) string { return event.Visible(event.Plain(err)) }

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of text and numbers
	}
	return string(b)
}
