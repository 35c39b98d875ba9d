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
	Form     string   `key:"form" one:"json slack"`
	URL      string   `key:"url" word:"an https URL"`                            // or http on loopback; or
	URLFile  string   `key:"url_file" word:"an absolute path"`                   // of the file that holds it: a chat's URL is a secret. Both empty: nothing is posted
	KeyFile  string   `key:"key_file" word:"an absolute path"`                   // of the file that holds the key that signs notifications; or
	KeyEnv   string   `key:"key_env" word:"the name of an environment variable"` // that holds it
	Proxy    string   `key:"proxy" word:"the URL of a proxy"`                    // http or https; empty: none
	Callback Callback `key:"callback"`
}

// On says whether anything is posted.
func (a Notify) On() bool { return a.URL != "" || a.URLFile != "" }

// Callback says how signed answers come in over HTTP.
type Callback struct {
	Listen       string   `key:"listen" word:"an address and port such as 127.0.0.1:8787, or a socket's path"` // empty: no callback
	Exposed      bool     `key:"exposed"`                                                                      // Listen may be an address that is not loopback
	KeyFile      string   `key:"key_file" word:"an absolute path"`                                             // of the key that signs answers in JSON; or
	KeyEnv       string   `key:"key_env" word:"the name of an environment variable"`
	SlackKeyFile string   `key:"slack_key_file" word:"an absolute path"` // of the signing secret of a Slack app; or
	SlackKeyEnv  string   `key:"slack_key_env" word:"the name of an environment variable"`
	Users        []string `key:"users" list:"names of people, as the callback sends them" most:"256" each:"user"`
	Window       int      `key:"window_seconds" number:"seconds 10 900"` // that a signature's time may differ from now
}

func (out *Notify) check(p *parser, n *yaml.Node, lines map[string]place) {
	inner := p.places["notify.callback"]
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
	if s == "" || len(s) > 64 || strings.ContainsFunc(s, unprintable) {
		return s, "a name is 1 to 64 letters, digits and signs, without blanks"
	}
	return s, ""
}
