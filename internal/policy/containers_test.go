package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestContainers(t *testing.T) {
	got, err := Parse("p", []byte(`containers:
  containerd: /run/containerd/containerd.sock
  nri: /run/nri/nri.sock
  refuse: [privileged]
  match:
    - {namespace: default, image: "*/agents/*", labels: {weir.taint: secret}, annotations: {a: "*"}, taint: [secret], refuse: [host_pid]}
    - {labels: {weir: "off"}, guard: false}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Containers{
		Containerd: "/run/containerd/containerd.sock", NRI: "/run/nri/nri.sock", Refuse: []string{"privileged"},
		Match: []Match{
			{Namespace: "default", Image: "*/agents/*", Labels: []Label{{"weir.taint", "secret"}}, Annotations: []Label{{"a", "*"}}, Guard: true, Taint: []string{"secret"}, Refuse: []string{"host_pid"}},
			{Labels: []Label{{"weir", "off"}}},
		},
	}
	if diff := cmp.Diff(want, got.Containers); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestContainersMistakes(t *testing.T) {
	const socket = "containerd: /s, "
	for _, c := range []struct{ text, want string }{
		{"{match: [{taint: [secret]}]}", `p:1:14: containers.match is not used without containers.containerd: name its socket, usually /run/containerd/containerd.sock`},
		{"{containerd: run/x}", `p:1:26: containers.containerd is "run/x": accepted is the absolute path of a socket such as /run/containerd/containerd.sock, or "" for none`},
		{"{nri: /run/nri/nri.sock}", `p:1:14: containers.nri is not used without containers.containerd: name its socket, usually /run/containerd/containerd.sock`},
		{"{" + socket + "nri: run/x}", `p:1:35: containers.nri is "run/x": accepted is the absolute path of a socket such as /run/nri/nri.sock, or "" for none`},
		{"{refuse: [privlleged]}", `p:1:23: containers.refuse has "privlleged": unknown finding: did you mean "privileged"?`},
		{"{" + socket + "match: [{guard: false, taint: [secret]}]}", `p:1:38: containers.match has an item with guard: false and taint or refuse: only what is guarded can be tainted or refused`},
		{"{" + socket + "match: [{labels: {weir: true}}]}", `p:1:54: containers.match.labels has "weir": "true": accepted is a text, in quotes if it looks like a number or true`},
		{"{" + socket + "match: [{labels: []}]}", `p:1:47: containers.match.labels is a list: accepted is a mapping of up to 64 keys to texts, such as {weir.taint: secret}`},
		{"{" + socket + "match: [{image: ''}]}", `p:1:46: containers.match.image is "": accepted is a text in which * stands for any text; leave the key out for all`},
		{"{" + socket + "match: [{taint: [sticky]}]}", `p:1:47: containers.match.taint has "sticky": unknown taint bit: accepted are corruption, secret`},
	} {
		_, err := Parse("p", []byte("containers: "+c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}
