package toolguard

import (
	"strings"
	"testing"
)

const file = "https://github.com/acme/agent/releases/download/v1/agent.tar.gz"

// TestCheckK8: which addresses an update may come from.
func TestCheckK8(t *testing.T) {
	const server = "updates.example.org"
	for _, tt := range []struct {
		url string
		ok  bool
	}{
		{file, true}, {"https://github.com/acme/agent/releases/latest/download/agent", true}, {"https://github.com:443/acme/agent/releases/download/v1/a", true},
		{"https://objects.githubusercontent.com/a/b?c=d", true}, {"https://release-assets.githubusercontent.com/x", true}, {"https://updates.example.org/agent", true},
		{"http://github.com/acme/agent/releases/download/v1/a", false}, {"HTTPS://github.com/acme/agent/releases/download/v1/a", true}, {"ftp://updates.example.org/a", false}, {"//updates.example.org/a", false},
		{"https://github.com/acme/agent/raw/main/a", false}, {"https://github.com/acme/agent/releases/tag/v1", false}, {"https://github.com/acme/agent/releases/download/v1/../../../../x/y/raw/a", false},
		{"https://github.com/acme/agent/releases/download/v1%2f..%2f/a", false}, {"https://github.com//agent/releases/download/v1/a", false},
		{"https://raw.githubusercontent.com/acme/agent/main/a", false}, {"https://gist.github.com/x", false}, {"https://github.com.evil.example/acme/agent/releases/download/v1/a", false},
		{"https://evil.example/github.com/acme/agent/releases/download/v1/a", false}, {"https://github.com@evil.example/acme/agent/releases/download/v1/a", false}, {"https://user:pw@github.com/acme/agent/releases/download/v1/a", false},
		{"https://GitHub.com/acme/agent/releases/download/v1/a", false}, {"https://github.com./acme/agent/releases/download/v1/a", false}, {"https://xn--gthub-zsa.com/acme/agent/releases/download/v1/a", false},
		{"https://gıthub.com/acme/agent/releases/download/v1/a", false}, {"https://github.com:8443/acme/agent/releases/download/v1/a", false}, {"https://github.com:/acme/agent/releases/download/v1/a", false},
		{"https://192.0.2.7/a", false}, {"https://[2001:db8::1]/a", false}, {"https://0x7f.1/a", false}, {"https://2130706433/a", false}, {"https://updates.example.org.evil.example/a", false},
		{"https://updates.example.org\\@evil.example/a", false}, {"https://updates.example.org /a", false}, {"https:updates.example.org/a", false}, {"https://", false}, {"", false},
		{"https://updates.example.org/" + strings.Repeat("a", 5000), false}, {"https://updates.example.org%00.evil.example/a", false},
	} {
		if err := CheckUpdate(tt.url, server); (err == nil) != tt.ok {
			t.Errorf("%q: %v", tt.url, err)
		}
	}
	if CheckUpdate("https://updates.example.org/agent", "") == nil {
		t.Error("a server that was not configured")
	}
}

// TestHopsK8: every redirect is checked, and there are not many.
func TestHopsK8(t *testing.T) {
	const asset = "https://objects.githubusercontent.com/a"
	for _, tt := range []struct {
		hops []string
		says string
	}{
		{[]string{file, asset}, ""}, {[]string{file, "https://evil.example/a"}, "redirect 1"}, {[]string{file, asset, "http://objects.githubusercontent.com/a"}, "redirect 2"},
		{[]string{"https://evil.example/a", file}, "evil.example"}, {[]string{file, asset, asset, asset, asset, asset}, ""}, {[]string{file, asset, asset, asset, asset, asset, asset}, "more than 5"},
	} {
		err := CheckHops("", tt.hops...)
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v: %v", tt.hops, err)
		}
	}
}

func FuzzCheckUpdate(f *testing.F) {
	f.Add(file)
	f.Add("https://a@b:c/%2f..")
	f.Fuzz(func(t *testing.T, s string) {
		if CheckUpdate(s, "updates.example.org") == nil && !strings.HasPrefix(strings.ToLower(s), "https://") {
			t.Errorf("%q passes", s)
		}
	})
}
