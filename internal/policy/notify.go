package policy

import (
	"net/netip"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Forms of notifications.
const (
	formJSON  = "json"  // signed, for programs
	formSlack = "slack" // for the incoming webhook of a Slack-compatible chat
)

// Notify says where questions are posted, and how answers come back (G15, B50). Keys never stand in a policy.
type Notify struct {
	Form     string // "json" or "slack"
	URL      string // https, or http on loopback; or
	URLFile  string // absolute path of the file that holds it: a chat's URL is a secret. Both empty: nothing is posted
	KeyFile  string // absolute path of the file that holds the key that signs notifications; or
	KeyEnv   string // name of the environment variable that holds it
	Proxy    string // http or https URL of the proxy to use; empty: none
	Callback Callback
}

// On says whether anything is posted.
func (a Notify) On() bool { return a.URL != "" || a.URLFile != "" }

// Callback says how signed answers come in over HTTP.
type Callback struct {
	Listen       string // address and port, or the absolute path of a Unix socket; empty: no callback
	Exposed      bool   // Listen may be an address that is not loopback
	KeyFile      string // the key that signs answers in JSON; or
	KeyEnv       string // its environment variable
	SlackKeyFile string // the signing secret of a Slack app; or
	SlackKeyEnv  string // its environment variable
	Users        []string
	Window       int // seconds that a signature's time may differ from now, 10 to 900
}

// maxUsers bounds who may answer.
const maxUsers = 256

func (p *parser) notify(n *yaml.Node, out *Notify) {
	before := p.Mistakes()
	var inner map[string]place
	lines := p.Mapping(n, "notify", []yamlField{
		{Key: "form", Read: p.One("notify.form", []string{formJSON, formSlack}, func(s string) { out.Form = s })},
		{Key: "url", Read: p.Word("notify.url", "an https URL", &out.URL)},
		{Key: "url_file", Read: p.Word("notify.url_file", "an absolute path", &out.URLFile)},
		{Key: "key_file", Read: p.Word("notify.key_file", "an absolute path", &out.KeyFile)},
		{Key: "key_env", Read: p.Word("notify.key_env", "the name of an environment variable", &out.KeyEnv)},
		{Key: "proxy", Read: p.Word("notify.proxy", "the URL of a proxy", &out.Proxy)},
		{Key: "callback", Read: func(n *yaml.Node) {
			c := &out.Callback
			inner = p.Mapping(n, "notify.callback", []yamlField{
				{Key: "listen", Read: p.Word("notify.callback.listen", "an address and port such as 127.0.0.1:8787, or a socket's path", &c.Listen)},
				{Key: "exposed", Read: p.Truth("notify.callback.exposed", &c.Exposed)},
				{Key: "key_file", Read: p.Word("notify.callback.key_file", "an absolute path", &c.KeyFile)},
				{Key: "key_env", Read: p.Word("notify.callback.key_env", "the name of an environment variable", &c.KeyEnv)},
				{Key: "slack_key_file", Read: p.Word("notify.callback.slack_key_file", "an absolute path", &c.SlackKeyFile)},
				{Key: "slack_key_env", Read: p.Word("notify.callback.slack_key_env", "the name of an environment variable", &c.SlackKeyEnv)},
				{Key: "users", Read: func(n *yaml.Node) {
					p.Texts(n, "notify.callback.users", "names of people, as the callback sends them", maxUsers, &c.Users, userName)
				}},
				{Key: "window_seconds", Read: p.Number("notify.callback.window_seconds", "seconds", 10, 900, &c.Window)},
			})
		}},
	})
	if p.Mistakes() > before {
		return
	}
	p.keys("notify", lines, out.KeyFile, out.KeyEnv, "key")
	p.keys("notify.callback", inner, out.Callback.KeyFile, out.Callback.KeyEnv, "key")
	p.keys("notify.callback", inner, out.Callback.SlackKeyFile, out.Callback.SlackKeyEnv, "slack_key")
	switch {
	case out.URL != "" && out.URLFile != "":
		p.Fail(lines["url_file"], "notify.url_file and notify.url are both set: keep one")
	case out.URL != "" && notifyURL(out.URL) != "":
		p.Fail(lines["url"], "notify.url %s", notifyURL(out.URL)) // it is not repeated: it may hold a key
	case out.URLFile != "" && !p.secretFile(lines["url_file"], "notify.url_file", out.URLFile):
	case !out.On() && len(lines) > 0 && (len(lines) > 1 || lines["callback"] == place{}):
		for _, key := range []string{"form", "key_file", "key_env", "proxy"} {
			if line, ok := lines[key]; ok {
				p.Fail(line, "notify.%s is not used without notify.url or notify.url_file: set one of them, or leave it out", key)
				break
			}
		}
	case out.On() && out.Form == formJSON && out.KeyFile == "" && out.KeyEnv == "":
		p.Fail(at(n), "notify needs a key that signs: set notify.key_file or notify.key_env")
	case out.Form == formSlack && out.KeyFile+out.KeyEnv != "":
		p.Fail(lines["form"], "notify.form slack signs nothing: leave notify.key_file and notify.key_env out")
	}
	if wrong := baseURL(out.Proxy, false); out.Proxy != "" && wrong != "" {
		p.Fail(lines["proxy"], "notify.proxy %s", wrong)
	}
	p.callback(out.Callback, inner)
}

// secretFile checks the path of a file that holds a secret. Another text than a path may be the secret itself, and is not repeated.
func (p *parser) secretFile(where place, key, file string) bool {
	switch wrong := cleanPath(file, 4095); {
	case wrong == "":
		return true
	case strings.HasPrefix(file, "/"):
		p.Fail(where, "%s is %s: %s", key, yamlQuote(file), wrong)
	default:
		p.Fail(where, "%s is not an absolute path: write one, such as /etc/weir/key; what the file holds never stands in a policy", key)
	}
	return false
}

// keys checks the two ways to name a key.
func (p *parser) keys(where string, lines map[string]place, file, env, name string) {
	switch {
	case file != "" && env != "":
		p.Fail(lines[name+"_env"], "%s.%s_env and %s.%s_file are both set: keep one", where, name, where, name)
	case file != "":
		p.secretFile(lines[name+"_file"], where+"."+name+"_file", file)
	case env != "" && !variable(env):
		p.Fail(lines[name+"_env"], "%s.%s_env is not the name of an environment variable such as WEIR_KEY: the key itself never stands in a policy", where, name)
	}
}

func (p *parser) callback(c Callback, lines map[string]place) {
	if c.Listen == "" {
		for _, key := range []string{"exposed", "key_file", "key_env", "slack_key_file", "slack_key_env", "users", "window_seconds"} {
			if line, ok := lines[key]; ok {
				p.Fail(line, "notify.callback.%s is not used without notify.callback.listen: set it, or leave this out", key)
				return
			}
		}
		return
	}
	line := lines["listen"]
	switch wrong := listen(c.Listen, c.Exposed); {
	case wrong != "":
		p.Fail(line, "notify.callback.listen is %s: %s", yamlQuote(c.Listen), wrong)
	case c.KeyFile+c.KeyEnv+c.SlackKeyFile+c.SlackKeyEnv == "":
		p.Fail(line, "notify.callback.listen needs a key that answers are signed with: set notify.callback.key_file or slack_key_file")
	case len(c.Users) == 0:
		p.Fail(line, "notify.callback.listen needs notify.callback.users: name who may answer")
	}
}

// listen says what is wrong with where the callback listens. Containers can reach
// what is not loopback (B50).
func listen(s string, exposed bool) string {
	if strings.HasPrefix(s, "/") {
		return cleanPath(s, maxUnixPath)
	}
	at, err := netip.ParseAddrPort(s)
	switch {
	case err != nil || at.Addr().Zone() != "":
		return "accepted is an IP address and port such as 127.0.0.1:8787 or [::1]:8787, or the absolute path of a Unix socket"
	case at.Port() == 0:
		return "name a port"
	case !at.Addr().Unmap().IsLoopback() && !exposed:
		return "containers can reach an address that is not loopback: listen on 127.0.0.1 or a Unix socket behind a proxy of yours, or set notify.callback.exposed: true"
	}
	return ""
}

// notifyURL says what is wrong with the URL that notifications go to.
func notifyURL(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "is not an https URL such as https://alerts.example.com/weir"
	case u.User != nil:
		return "holds a user: leave it out, notifications are signed"
	case u.Fragment != "":
		return "has a fragment: leave it out"
	}
	a, err := netip.ParseAddr(u.Hostname())
	if u.Scheme == "http" && !(err == nil && a.IsLoopback()) && u.Hostname() != "localhost" {
		return "is http, so commands would go out in the clear: use https"
	}
	return ""
}

func userName(s string) (string, string) {
	if s == "" || len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return s, "a name is 1 to 64 letters, digits and signs, without blanks"
	}
	return s, ""
}
