package container

import (
	"path"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"weir/internal/policy"
)

func TestSpecified(t *testing.T) {
	for _, c := range []struct {
		path, want string
		systemd    bool
	}{
		{"/default/web", "/default/web", false},
		{"/kubepods/burstable/pod1/../pod2/c", "/kubepods/burstable/pod2/c", false},
		{"kubepods-burstable-pod1.slice:cri-containerd:0a1b", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-0a1b.scope", true},
		{"a--b.slice:docker:0a1b", "", true},
		{"system.slice:docker:0a1b", "/system.slice/docker-0a1b.scope", true},
		{":docker:0a1b", "/system.slice/docker-0a1b.scope", true},
		{"-.slice:x:y", "/x-y.scope", true},
		{"user.slice::name", "/user.slice/name.scope", true},
		{"", "", false},
		{"relative/one", "", false},
	} {
		got, systemd := specified(Container{Spec: &specs.Spec{Linux: &specs.Linux{CgroupsPath: c.path}}})
		if got != c.want || systemd != c.systemd {
			t.Errorf("%q is %q, %t; want %q, %t", c.path, got, systemd, c.want, c.systemd)
		}
	}
}

// FuzzSpecified: whatever a specification names, it is no path but a clean one below the root.
func FuzzSpecified(f *testing.F) {
	for _, text := range []string{"/a/../../b", "a-b.slice:docker:0a1b", ":..:..", "-.slice::../../x", "x.slice:a:b-c.slice", "//", "a:b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, _ := specified(Container{Spec: &specs.Spec{Linux: &specs.Linux{CgroupsPath: text}}})
		if at != "" && (!strings.HasPrefix(at, "/") || path.Clean(at) != at) {
			t.Fatalf("%q is %q", text, at)
		}
	})
}

func TestPlace(t *testing.T) { // G3
	pods := []string{"/kubepods", "/kubepods/burstable", "/weir"}
	const pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a_1b.slice"
	for _, c := range []struct {
		at, uid, want string
		parents       []string
		alone         bool
	}{
		{"/default/web", "", "/default/web", nil, true},
		{"/default/web", "", "/default/web", []string{"/default"}, false},
		{"/default/web/deeper", "", "/default/web", []string{"/default"}, false},
		{"/default", "", "/default", []string{"/default"}, true},
		{"/kubepods/burstable/pod1/c", "pod1", "/kubepods/burstable/pod1", pods, false},
		{"/kubepods/pod2/c", "pod2", "/kubepods/pod2", pods, false},
		{pod + "/cri-containerd-x.scope", "0a-1b", pod, nil, true},
		{"/k8s.io/x", "0a-1b", "/k8s.io/x", nil, true},
	} {
		got, alone := place(c.at, c.parents, c.uid)
		if got != c.want || alone != c.alone {
			t.Errorf("%s below %v: %q, %t; want %q, %t", c.at, c.parents, got, alone, c.want, c.alone)
		}
	}
}

func TestActualIsWhereTheSpecificationSays(t *testing.T) {
	c := Container{PID: 1, Spec: &specs.Spec{Linux: &specs.Linux{CgroupsPath: "/default/web"}}}
	for now, want := range map[string]string{"/default/web/init": "/default/web", "/elsewhere/web": "/elsewhere/web"} {
		if got, err := actual(c, func(int) (string, error) { return now, nil }); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", now, got, err, want)
		}
	}
}

func TestMatching(t *testing.T) { // G2
	agent := Container{
		Namespace: "k8s.io", Image: "registry.example.com/agents/coder:3", Labels: map[string]string{"weir.taint": "secret", "app": ""},
		Spec: &specs.Spec{Annotations: map[string]string{"io.example/kind": "agent"}},
	}
	label := func(k, v string) []policy.Label { return []policy.Label{{Key: k, Value: v}} }
	for _, c := range []struct {
		m    policy.Match
		want bool
	}{
		{policy.Match{}, true},
		{policy.Match{Namespace: "k8s.io"}, true},
		{policy.Match{Namespace: "default"}, false},
		{policy.Match{Image: "registry.example.com/agents/*"}, true},
		{policy.Match{Image: "*/other/*"}, false},
		{policy.Match{Labels: label("weir.taint", "secret")}, true},
		{policy.Match{Labels: label("weir.taint", "sec*")}, true},
		{policy.Match{Labels: label("weir.taint", "corruption")}, false},
		{policy.Match{Labels: label("app", "*")}, true},
		{policy.Match{Labels: label("missing", "*")}, false},
		{policy.Match{Annotations: label("io.example/kind", "agent")}, true},
		{policy.Match{Labels: label("weir.taint", "secret"), Annotations: label("io.example/kind", "other")}, false},
	} {
		if got := fits(c.m, agent); got != c.want {
			t.Errorf("%s: %t, want %t", c.m, got, c.want)
		}
	}
	first, ok := matching([]policy.Match{{Namespace: "none"}, {Labels: label("app", "*"), Guard: true}, {}}, agent)
	if !ok || !first.Guard {
		t.Errorf("the first that fits is %v, %t", first, ok)
	}
}
