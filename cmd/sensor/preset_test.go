package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"weir/internal/policy"
)

// TestPresets: each has a policy that parses, with the addresses of its endpoints where it has some, and says what remains possible (B43, B52).
func TestPresets(t *testing.T) {
	doc, err := os.ReadFile("../../docs/presets.md")
	if err != nil {
		t.Fatal(err)
	}
	found := []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7"), netip.MustParseAddr("127.0.0.1")}
	for name, p := range presets {
		for _, lookup := range []func(context.Context, string, string) ([]netip.Addr, error){
			func(context.Context, string, string) ([]netip.Addr, error) { return found, nil },
			func(context.Context, string, string) ([]netip.Addr, error) { return nil, errors.New("no answer") },
		} {
			text, missing, err := p.policy(context.Background(), name, lookup)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := policy.Parse(name, []byte(text))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(got.Taint.SecretFiles) < 20 || !got.Taint.Untrusted || len(got.AllowUnixSockets) != 0 || got.Mode != policy.Enforce {
				t.Errorf("%s: %+v", name, got)
			}
			// F06: what the reviewer flags can be approved; and every preset holds.
			if want := map[string]string{"claude": policy.Person, "codex": policy.Person, "strict": policy.Deny}[name]; got.Cop.Flagged != want || !got.Hold {
				t.Errorf("%s: what is flagged: %s, hold %v", name, got.Cop.Flagged, got.Hold)
			}
			if _, err := got.Destinations(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			want := map[string]int{"claude": 2, "codex": 2 * (len(p.endpoints) - len(missing)) / max(1, len(p.endpoints)), "strict": 0}[name]
			if len(got.Allow) != want || len(got.Taint.TrustedNetworks) != want {
				t.Errorf("%s opens %v and trusts %v, want %d of each (missing: %v)", name, got.Allow, got.Taint.TrustedNetworks, want, missing)
			}
			for line := range strings.Lines(text) {
				if path, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok && strings.ContainsAny(path[:1], "~/\"") && !strings.Contains(string(doc), "`"+strings.Trim(path, "\"")+"`") {
					t.Errorf("docs/presets.md says nothing of %s", path)
				}
			}
			for _, a := range got.Allow {
				if len(a.Ports) != 1 || a.Ports[0].Low != 443 || a.Protocol != policy.TCP {
					t.Errorf("%s opens %+v", name, a)
				}
			}
		}
		says := p.explain(name)
		for _, want := range append(slices.Concat(p.limits, remains, protected, p.env, p.endpoints), p.own...) {
			if !strings.Contains(says, want) {
				t.Errorf("%s does not say %q", name, want)
			}
		}
		if !strings.Contains(presetNames, name) {
			t.Errorf("%s is not named", name)
		}
	}
}

// TestHooked: the hook is in the command line of the agent, as its settings have it, and nobody else's command changes.
func TestHooked(t *testing.T) {
	argv, hooked, err := presets["claude"].hooked([]string{"/opt/claude", "-p", "x"}, "/usr/bin/weir")
	if err != nil || !hooked || len(argv) != 5 || argv[1] != "--settings" || argv[4] != "x" {
		t.Fatalf("got %q, %v, %v", argv, hooked, err)
	}
	var settings struct {
		Hooks map[string][]struct {
			Matcher string
			Hooks   []struct {
				Type, Command string
				Timeout       int
			}
		}
		Permissions struct{ Deny []string }
	}
	if err := json.Unmarshal([]byte(argv[2]), &settings); err != nil {
		t.Fatal(err)
	}
	h := settings.Hooks["PreToolUse"][0]
	if h.Matcher != "*" || h.Hooks[0].Command != "/usr/bin/weir hook claude" || h.Hooks[0].Timeout != 3660 || settings.Permissions.Deny[0] != "WebFetch" {
		t.Errorf("got %+v", settings)
	}
	argv, hooked, err = presets["codex"].hooked([]string{"codex", "exec"}, "/usr/bin/weir", "-c", "more")
	if err != nil || !hooked || argv[1] != "-c" || strings.Join(argv[3:], " ") != "-c more exec" {
		t.Fatalf("got %q, %v, %v", argv, hooked, err)
	}
	var config struct {
		Hooks map[string][]struct {
			Hooks []struct{ Command string }
		} `toml:"hooks"`
	}
	if _, err := toml.Decode(argv[2], &config); err != nil || config.Hooks["PreToolUse"][0].Hooks[0].Command != "/usr/bin/weir hook codex" {
		t.Errorf("%q: %+v, %v", argv[2], config, err)
	}
	for _, name := range []string{"claude", "codex", "strict"} {
		argv, hooked, err := presets[name].hooked([]string{"bash", "-l"}, "/usr/bin/weir")
		if err != nil || hooked || strings.Join(argv, " ") != "bash -l" {
			t.Errorf("%s: %q, %v, %v", name, argv, hooked, err)
		}
	}
}

// TestB43Closed: behind the model's proxy a preset opens nothing but its socket, and trusts no address; what cannot be closed is refused.
func TestB43Closed(t *testing.T) {
	for _, name := range []string{"claude", "codex"} {
		p := presets[name]
		p.endpoints = nil
		text, _, err := p.policy(t.Context(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err = closed(text, "/run/weir/model-7.sock")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := policy.Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Allow) != 0 || !got.Taint.Untrusted || len(got.Taint.TrustedNetworks) != 0 || !slices.Equal(got.AllowUnixSockets, []string{"/run/weir/model-7.sock"}) || len(got.Taint.SecretFiles) < 20 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, text := range []string{"allow: [{prefix: 192.0.2.1/32}]\nallow_unix_sockets: []\n", "mode: enforce\nallow_unix_sockets: [/run/x]\n", "x: y\n"} {
		if _, err := closed("version: 1\n"+text, "/run/weir/model-7.sock"); err == nil {
			t.Errorf("taken: %s", text)
		}
	}
}
