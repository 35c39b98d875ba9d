package vault

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"weir/internal/permission"
	"weir/internal/strict"
)

// Binding says where a secret may go (V7, V8), and how (B161). What is empty binds nothing, but for Networks.
type Binding struct {
	Hosts    []string `json:"hosts,omitempty"`    // with a port where that is not 443
	Methods  []string `json:"methods,omitempty"`  //
	Paths    []string `json:"paths,omitempty"`    // prefixes, of whole segments
	Networks []string `json:"networks,omitempty"` // addresses or prefixes that may be reached although they are private
	CA       string   `json:"ca,omitempty"`       // certificates in PEM, in place of the system's
	Scheme   string   `json:"scheme,omitempty"`   // the only one
	Header   string   `json:"header,omitempty"`   // with the scheme Custom
}

var methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}

const maxList = 100

// clean checks a binding and writes it as it is compared.
func (b Binding) clean() (Binding, error) {
	c := Binding{CA: b.CA, Scheme: b.Scheme, Header: b.Header}
	if c.Header != "" {
		c.Scheme = cmp.Or(c.Scheme, Custom)
	}
	switch {
	case c.Scheme != "" && !slices.Contains(Schemes(), c.Scheme):
		return c, fmt.Errorf("%s is no scheme: accepted are %s", strict.Quote(c.Scheme), strings.Join(Schemes(), ", "))
	case (c.Scheme == Custom) != (c.Header != ""):
		return c, errors.New("a header goes with the scheme custom, and only with it")
	case c.Header != "" && !headerName(c.Header):
		return c, fmt.Errorf("%s is no header for a secret: %s", strict.Quote(c.Header), whatHeader)
	}
	for _, list := range [][]string{b.Hosts, b.Methods, b.Paths, b.Networks} {
		if len(list) > maxList {
			return c, fmt.Errorf("a binding has more than %d entries of a kind", maxList)
		}
	}
	for _, h := range b.Hosts {
		host := permission.Host(h)
		if host == "" {
			return c, fmt.Errorf("%s is no host: write it without https:// and path", strict.Quote(h))
		}
		c.Hosts = append(c.Hosts, host)
	}
	for _, m := range b.Methods {
		if m = strings.ToUpper(m); !slices.Contains(methods, m) {
			return c, fmt.Errorf("%s is no method: accepted are %s", strict.Quote(m), strings.Join(methods, ", "))
		}
		c.Methods = append(c.Methods, m)
	}
	for _, p := range b.Paths {
		if !strings.HasPrefix(p, "/") || path.Clean(p) != strings.TrimSuffix(p, "/") && p != "/" || strings.ContainsAny(p, "%?#\\") {
			return c, fmt.Errorf("%s is no path: write it from / on, without .. and escapes", strict.Quote(p))
		}
		c.Paths = append(c.Paths, p)
	}
	for _, n := range b.Networks {
		prefix, err := network(n)
		if err != nil {
			return c, fmt.Errorf("%s is neither an address nor a network such as 10.1.0.0/16", strict.Quote(n))
		}
		c.Networks = append(c.Networks, prefix.String())
	}
	if b.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(b.CA)) {
		return c, errors.New("the CA holds no certificate in PEM")
	}
	return c, nil
}

func network(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}

// permits says whether a request may have the secret. A path with escapes or dots in it is within no prefix: servers differ in what
// they make of them.
func (b Binding) permits(host, method, escaped string) error {
	if len(b.Hosts) > 0 && !slices.Contains(b.Hosts, host) {
		return refuse(NotBound, "the key is not bound to this host")
	}
	if len(b.Methods) > 0 && !slices.Contains(b.Methods, method) {
		return refuse(NotBound, "the key is not bound to this method")
	}
	if len(b.Paths) == 0 {
		return nil
	}
	if plainPath(escaped) {
		for _, p := range b.Paths {
			if escaped == p || strings.HasPrefix(escaped, strings.TrimSuffix(p, "/")+"/") {
				return nil
			}
		}
	}
	return refuse(NotBound, "the key is not bound to this path")
}

// carries says whether a request may choose how the secret is sent: where the key says it, only that.
func (b Binding) carries(r Request) error {
	if b.Scheme == "" || r.Scheme == "" || r.Scheme == b.Scheme && strings.EqualFold(r.HeaderName, b.Header) {
		return nil
	}
	return refuse(NotBound, "the key goes by another scheme or header: leave auth_scheme and auth_header_name out")
}

func plainPath(p string) bool {
	return !strings.ContainsAny(p, "%\\;") && !strings.Contains(p, "//") && !slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool {
		return part == "." || part == ".."
	})
}

// reserved are addresses that a name from outside must not lead to (V8): the host's own, the local networks', those of the clouds'
// metadata services, and what stands for other addresses.
var reserved = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3", "168.63.129.16/32",
	"::/3", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "4000::/2", "8000::/1", // without IPv4, 2000::/3 alone is the internet
)

func prefixes(list ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(list))
	for i, s := range list {
		all[i] = netip.MustParsePrefix(s)
	}
	return all
}

// reaches says whether an address may be dialled.
func (b Binding) reaches(addr netip.Addr) bool {
	if addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	for _, n := range b.Networks {
		if p, err := network(n); err == nil && p.Contains(addr) {
			return true
		}
	}
	return addr.IsValid() && !slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(addr) })
}
