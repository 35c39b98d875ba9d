package event

import "testing"

func BenchmarkMarshal(b *testing.B) {
	e := Event{
		Kind:      Exec,
		Container: &Container{ID: "g-abcdef", Name: "agent", Cgroup: "/weir/g-abcdef", CgroupID: 4711, Taint: []string{"secret"}},
		Process: &Process{
			PID: 4711, Start: 1234567890123, Comm: "curl", Exe: &File{Path: "/usr/bin/curl", Device: 65024, Inode: 1234},
			Argv: []string{"/usr/bin/curl", "--silent", "--output", "/tmp/page", "https://example.com/a/page?with=a&query=1"},
			Ancestry: []Ancestor{{PID: 4710, Start: 1234567890000, Comm: "bash"}, {PID: 4700, Start: 1234567880000, Comm: "agent"},
				{PID: 1, Start: 10, Comm: "systemd"}},
			NetNS: 4026531840, PidNS: 4026531836,
		},
		Verdict: &Decision{Decision: "allow", Reason: "untainted", Text: "the container is not tainted"},
	}
	for b.Loop() {
		if _, err := Marshal(e); err != nil {
			b.Fatal(err)
		}
	}
}
