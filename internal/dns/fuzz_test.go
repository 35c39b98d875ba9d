package dns

import (
	"strings"
	"testing"
)

// FuzzConfig: whatever a container has as its resolv.conf, it is read within bounds, and no server is this machine's any address or a group.
func FuzzConfig(f *testing.F) {
	f.Add("nameserver 192.0.2.1\nsearch a.example. B\noptions ndots:2\n")
	f.Add("nameserver fe80::1%eth0\nnameserver 0.0.0.0\nnameserver ff02::1\ndomain\n")
	f.Add(strings.Repeat("nameserver 192.0.2.1\n", 20) + "search" + strings.Repeat(" a", 99))
	f.Fuzz(func(t *testing.T, text string) {
		c := ReadConfig(strings.NewReader(text))
		if len(c.Servers) > maxServers || len(c.Search) > maxSearch {
			t.Fatalf("%d servers, %d domains", len(c.Servers), len(c.Search))
		}
		for _, a := range c.Servers {
			if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() {
				t.Fatalf("the server %v", a)
			}
		}
		for _, s := range c.Search {
			if s == "" || s != strings.ToLower(s) || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") {
				t.Fatalf("the domain %q", s)
			}
		}
	})
}
