package policy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTrusted(t *testing.T) { // G2
	p, err := Parse("p", []byte("taint:\n  trusted_networks: []\n"))
	if err != nil || !p.Taint.Untrusted || len(p.Taint.TrustedNetworks) != 0 {
		t.Errorf("an empty list: %+v, %v", p.Taint, err)
	}
	if Default().Taint.Untrusted {
		t.Error("by default something is untrusted")
	}
	prefix := netip.MustParsePrefix
	for _, c := range []struct {
		text  string
		want  map[netip.Prefix]bool
		wrong string
	}{
		{text: "[10.0.0.0/8, 192.0.2.1]", want: map[netip.Prefix]bool{prefix("::ffff:10.0.0.0/104"): true, prefix("::ffff:192.0.2.1/128"): true}},
		{text: `["2001:db8::/32"]`, want: map[netip.Prefix]bool{prefix("2001:db8::/32"): true}},
		{text: `["::/0"]`, want: map[netip.Prefix]bool{prefix("::/0"): true, prefix("::ffff:0:0/96"): false}},
		{text: `["::/0", 0.0.0.0/0]`, want: map[netip.Prefix]bool{prefix("::/0"): true, prefix("::ffff:0:0/96"): true}},
		{text: "[10.1.2.3/8]", wrong: "did you mean 10.0.0.0/8?"},
		{text: "[example.com]", wrong: "not a network"},
		{text: `["10.0.0.0/8", "::ffff:10.0.0.0/104"]`, wrong: "twice"},
		{text: "10.0.0.0/8", wrong: "taint.trusted_networks"},
	} {
		p, err := Parse("p", []byte("taint:\n  trusted_networks: "+c.text+"\n"))
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want one line with %q", c.text, err, c.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(c.want, p.Taint.TrustedPrefixes(), netips); diff != "" {
			t.Errorf("%s: want - got +\n%s", c.text, diff)
		}
	}
}
