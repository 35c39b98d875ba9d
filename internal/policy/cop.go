package policy

import (
	"net/netip"
	"net/url"

	"go.yaml.in/yaml/v3"
)

// check: what a reviewer needs, and what it would never use, is told here, not at the first review.
func (out *Cop) check(p *parser, _ *yaml.Node, lines map[string]place) {
	asks := out.Reviewer == Anthropic || out.Reviewer == OpenAI
	for _, key := range []string{"model", "base_url", "key_file", "key_env"} {
		if line, ok := lines[key]; ok && !asks {
			p.Fail(line, "cop.%s is not used by the reviewer %s: leave it out, or name anthropic or openai", key, out.Reviewer)
			return
		}
	}
	if wrong := baseURL(out.BaseURL, out.KeyFile+out.KeyEnv != ""); out.BaseURL != "" && wrong != "" {
		// The URL is not repeated: it may hold a key.
		p.Fail(lines["base_url"], "cop.base_url %s", wrong)
	}
	if out.KeyFile != "" {
		p.secretFile(lines["key_file"], "cop.key_file", out.KeyFile)
	}
	if out.KeyEnv != "" && !variable(out.KeyEnv) {
		// Somebody wrote the key where its variable's name belongs.
		p.Fail(lines["key_env"], "cop.key_env is not the name of an environment variable such as ANTHROPIC_API_KEY: the key itself never stands in a policy")
	}
	switch line := lines["reviewer"]; {
	case !asks:
	case out.KeyFile != "" && out.KeyEnv != "":
		p.Fail(lines["key_env"], "cop.key_env and cop.key_file are both set: keep one")
	case out.KeyFile == "" && out.KeyEnv == "" && out.Reviewer == Anthropic:
		p.Fail(line, "cop.reviewer anthropic needs a key: set cop.key_file or cop.key_env")
	case out.KeyFile == "" && out.KeyEnv == "" && out.BaseURL == "":
		p.Fail(line, "cop.reviewer openai needs a key (cop.key_file or cop.key_env), or the cop.base_url of a server that asks for none")
	case out.Reviewer == OpenAI && out.Model == "":
		p.Fail(line, "cop.reviewer openai needs cop.model: it has no default")
	}
}

// baseURL says what is wrong with a base URL; key tells that a key is sent to it.
func baseURL(s string, key bool) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "is not an http or https URL such as https://models.example.com/v1"
	case u.User != nil:
		return "holds a user: leave it out; a key belongs into a key_file"
	case u.RawQuery != "" || u.Fragment != "":
		return "has a query or a fragment: leave it out"
	}
	a, err := netip.ParseAddr(u.Hostname())
	if u.Scheme == "http" && key && !(err == nil && a.IsLoopback()) && u.Hostname() != "localhost" {
		return "is http, so the key would go out in the clear: use https"
	}
	return ""
}

func variable(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 128
}
