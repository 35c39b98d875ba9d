package console

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
)

// maxConns bounds connections at once; each page holds one.
const maxConns = 64

//go:embed assets
var files embed.FS

// Sensor is who is asked; control.Client is one.
type Sensor interface {
	Status(ctx context.Context) (control.Status, error)
	Containers(ctx context.Context) ([]control.Container, error)
	Why(ctx context.Context, name string) (control.Why, error)
	Peer(ctx context.Context, p control.Peer) error
	Pending(ctx context.Context) ([]gate.Question, error)
	Answer(ctx context.Context, id string, r gate.Reply) (gate.Question, error)
	Approvals(ctx context.Context) ([]gate.StandingApproval, error)
	Revoke(ctx context.Context, id, by, why string) (gate.StandingApproval, error)
	Log(ctx context.Context) (*event.Stored, error)
}

// Options are what a Console needs.
type Options struct {
	Sensor Sensor
	By     string   // who the caller works for, as the sensor's log is to have it; may be empty
	Listen string   // a loopback address and port, or the absolute path of a Unix socket
	Hosts  []string // of a Unix socket: the names that browsers know it by, with the port if it is not the usual one

	// Of a Unix socket: the proxy's user, and the header in which it names who logged in; both or none. With none there is the token.
	Proxy   *uint32
	Login   string
	Answers []string // names that may answer; others may look

	Why        func(control.Why) string     // words why a container is tainted
	Grant      func(event.GrantInfo) string // words what a grant opens
	Suggestion func(gate.Suggestion) string // words what a policy could let through by itself
	Every      time.Duration                // how often the sensor is asked what has changed; 0: each second
}

// Console serves the page.
type Console struct {
	o        Options
	listener net.Listener
	hosts    []string // that a request may name
	cookie   string   // its name: cookies of a host are for all of its ports
	pages    http.Handler

	mu       sync.Mutex
	link     string    // the token of the printed address; empty: it was used, or names are what lets in
	sessions []session // of browsers that were let in, the oldest first
}

// Listen checks that the sensor answers the caller, and listens; it serves nothing yet. The caller calls Serve, which closes it.
func Listen(ctx context.Context, o Options) (*Console, error) {
	if o.Every == 0 {
		o.Every = time.Second
	}
	pages, err := fs.Sub(files, "assets")
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	c := &Console{o: o, cookie: "weir-console", hosts: o.Hosts, pages: http.FileServerFS(pages), link: rand.Text() + rand.Text()}
	unix := strings.HasPrefix(o.Listen, "/")
	if (o.Proxy != nil) != (o.Login != "") || o.Login != "" && !unix {
		return nil, control.Errorf(control.Usage, "names of people need a Unix socket, the proxy's user and its header")
	}
	if o.Login != "" {
		c.link = ""
	}
	switch at, err := netip.ParseAddrPort(o.Listen); {
	case unix && len(o.Hosts) > 0:
	case err != nil || !at.Addr().IsLoopback():
		return nil, control.Errorf(control.Usage, "%q is no loopback address with a port, such as 127.0.0.1:8086", o.Listen)
	}
	for _, h := range o.Hosts {
		if u, err := url.Parse("https://" + h); err != nil || u.Host != h || u.Hostname() == "" || u.Port() == "443" || strings.ToLower(h) != h {
			return nil, control.Errorf(control.Usage, "%q is not how browsers call a host: give its name in small letters, with its port if that is not 443, such as weir.example.org", h)
		}
	}
	if _, err := o.Sensor.Status(ctx); err != nil {
		return nil, err
	}
	if conn, err := net.Dial("unix", o.Listen); unix && err == nil { // of the sensor, or another console: it would be taken away from them
		conn.Close()
		return nil, control.Errorf(control.Usage, "%s is in use: another program listens there", o.Listen)
	}
	if c.listener, err = control.ListenUnix(o.Listen, 0o660); err != nil {
		return nil, fmt.Errorf("listen for browsers: %w", err)
	}
	if !unix {
		at := c.listener.Addr().(*net.TCPAddr)
		c.hosts = []string{at.String(), fmt.Sprintf("localhost:%d", at.Port)}
		c.cookie = fmt.Sprintf("weir-console-%d", at.Port)
	}
	return c, nil
}

// URL is the address to open; with a token, once. Its last part is never sent with a request for a page, nor to another site.
func (c *Console) URL() string {
	scheme := "http://"
	if len(c.o.Hosts) > 0 {
		scheme = "https://"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.o.Login != "" {
		return scheme + c.hosts[0] + "/"
	}
	return scheme + c.hosts[0] + "/#" + c.link
}

// Serve answers browsers until ctx ends. Each connection has one request, so that each request's peer is checked.
func (c *Console) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	peer := func(p control.Peer) error {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return c.o.Sensor.Peer(limited, p) // without a sensor nobody is known: who gets in now could ask when there is one
	}
	l := control.LimitListener(c.listener, maxConns, control.PeerRules{
		User:    c.o.Proxy,
		Process: func(pid int) error { return peer(control.Peer{PID: pid}) },
		Socket:  func(local, remote netip.AddrPort) error { return peer(control.Peer{Local: local, Remote: remote}) },
	})
	if err := control.ServeHTTP(ctx, l, c.handler(ctx), 0); err != nil {
		return fmt.Errorf("serve browsers: %w", err)
	}
	return nil
}
