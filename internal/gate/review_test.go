package gate

import (
	"testing"

	"weir/internal/cop"
	"weir/internal/event"
)

// The reviewer goes by the file that runs, as the classifier does, also of what is above it.
func TestReviewOfTheFileB148(t *testing.T) {
	const url = "https://pkgs.example/simple/"
	to := event.Destination{Protocol: "tcp", Port: 443, Name: "pkgs.example"}
	for _, c := range []struct {
		what, file string
		argv       []string
		above      []event.Ancestor
		flagged    bool
	}{
		{"curl", "/usr/bin/curl", []string{"curl", url}, nil, false},
		{"curl by its path", "/usr/bin/curl", []string{"/usr/bin/curl", url}, nil, false},
		{"another program", "/tmp/x/evil", []string{"curl", url}, nil, true},
		{"one with the path of curl", "/tmp/x/evil", []string{"/usr/bin/curl", url}, nil, true},
		{"one of the system's", "/usr/bin/evil", []string{"curl", url}, nil, true},
		{"an interpreter", "/usr/bin/python3.11", []string{"curl", url}, nil, true},
		{"a shell", "/usr/bin/dash", []string{"curl", url}, nil, true},
		{"the loader", "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", []string{"curl", url}, nil, true},
		{"one without a directory", "evil", []string{"curl", url}, nil, true},
		{"one of many names elsewhere", "/tmp/x/busybox", []string{"wget", url}, nil, true},
		{"one of many names", "/bin/busybox", []string{"wget", url}, nil, false},
		{"telnet, as Debian has it", "/usr/bin/inetutils-telnet", []string{"telnet", "pkgs.example"}, nil, true},
		{"a version", "/usr/bin/wget2", []string{"wget", url}, nil, false},
		{"a parent", "/usr/bin/evil", []string{"evil"}, []event.Ancestor{{PID: 2, Inside: true, Exe: "/tmp/x/evil", Argv: []string{"curl", url}}}, true},
		{"a shell above", "/usr/bin/curl", []string{"curl", url}, []event.Ancestor{{PID: 2, Inside: true, Exe: "/usr/bin/dash", Argv: []string{"sh", "-c", "curl " + url}}}, false},
		{"a parent that is not known", "/usr/bin/curl", []string{"curl", url}, []event.Ancestor{{PID: 2, Inside: true, Argv: []string{"node", "agent.js"}}}, false},
	} {
		r := Request{Ask: Connect, Destination: to, Container: event.Container{Taint: []string{"corruption"}}, Process: event.Process{Exe: &event.File{Path: c.file}, Argv: c.argv, Ancestry: c.above}}
		if o, err := (cop.Static{}).Review(t.Context(), caseOf(r, judge(r))); err != nil || o.Flagged != c.flagged {
			t.Errorf("%s: %+v, %v, want flagged %t", c.what, o, err, c.flagged)
		}
	}
}
