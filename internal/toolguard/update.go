package toolguard

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// MaxHops is how many redirects are followed at most.
const MaxHops = 5

// CheckUpdate says why an update may not be fetched from a place; server is the host that was configured at the start, or empty.
func CheckUpdate(raw, server string) error {
	if len(raw) > 4096 || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || strings.Contains(raw, `\`) {
		return errors.New("the address has characters that are not allowed")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("the address cannot be read")
	}
	host := u.Hostname()
	switch {
	case u.Scheme != "https":
		return errors.New("only https is allowed")
	case u.User != nil || strings.Contains(u.Host, "@"):
		return errors.New("the address has a user in it")
	case u.Opaque != "" || host == "":
		return errors.New("the address names no host")
	case u.Port() != "" && u.Port() != "443":
		return errors.New("only port 443 is allowed")
	case strings.HasSuffix(u.Host, ":"):
		return errors.New("the address has an empty port")
	case literal(host):
		return errors.New("the host is an IP address, not a name")
	case host != strings.ToLower(host) || strings.HasSuffix(host, ".") || strings.Contains(host, "xn--") || strings.Contains(host, "%"):
		return fmt.Errorf("the host %q is not written as the allowed ones are", host)
	}
	switch {
	case server != "" && host == server:
		return nil
	case host == "objects.githubusercontent.com", host == "release-assets.githubusercontent.com":
		return nil
	case host == "github.com":
		if release(u) {
			return nil
		}
		return errors.New("on github.com only a release file is allowed")
	}
	return fmt.Errorf("the host %q is none that updates come from", host)
}

// literal says whether a host is an IP address in any notation that a resolver would take.
func literal(host string) bool {
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last != "" && strings.Trim(strings.ToLower(last), "0123456789") == "" || strings.HasPrefix(strings.ToLower(last), "0x")
}

// hidden are escapes of what takes a path apart, of % itself, and of control characters.
var hidden = pathPattern(`(?i)%(2[ef5]|5c|[01]|7f|[89a-f])`)

// release is /OWNER/REPOSITORY/releases/download/TAG/FILE, or releases/latest/download/FILE.
func release(u *url.URL) bool {
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	for _, p := range parts {
		if p == "" || p == "." || p == ".." || hidden().MatchString(p) {
			return false
		}
	}
	if len(parts) != 6 || parts[2] != "releases" {
		return false
	}
	return parts[3] == "download" || parts[3] == "latest" && parts[4] == "download"
}

// CheckHops checks an address and every one that it redirects to, in order.
func CheckHops(server string, hops ...string) error {
	if len(hops) > MaxHops+1 {
		return fmt.Errorf("it redirects more than %d times", MaxHops)
	}
	for i, h := range hops {
		if err := CheckUpdate(h, server); err != nil {
			if i > 0 {
				return fmt.Errorf("redirect %d: %w", i, err)
			}
			return err
		}
	}
	return nil
}
