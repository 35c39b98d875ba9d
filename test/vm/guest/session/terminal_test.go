//go:build vmguest

package session

import (
	"strings"
	"testing"

	"weir/test/vm/guest/rig"
)

// typing: what a session's command types into the terminal that it shares with an unguarded shell would be run by that when the session
// has ended (B52). Programs that change the user go on working in it.
func (f *fixture) typing(t *testing.T) {
	rig.Must(t, "echo 'agent ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/typing && chmod 440 /etc/sudoers.d/typing")
	const (
		ways = "egress type -say plain; egress type-thread -say thread; egress type-high -say high; egress type-x32 -say x32; " +
			"egress.386 type -say i386; egress type-console; egress.386 type-console"
		sudo                  = "sudo -n id -u; sudo -n -u agent sudo -n id -u; grep NoNewPrivs /proc/self/status"
		typed, refused, works = "[plain][thread][high][x32][i386]", "TIOCSTI: operation not permitted", "0\r\n0\r\nNoNewPrivs:\t0\r\n"
	)
	if got := shared(t, ways); !strings.Contains(got, typed) || strings.Count(got, "TIOCLINUX: inappropriate ioctl for device") != 2 {
		t.Errorf("unguarded: the shell got %q", got)
	}
	for _, user := range []string{"root", "agent"} {
		got := shared(t, "weir guard -q --taint secret,corruption --user "+user+" -- bash -c '"+ways+"; "+sudo+"'")
		if !strings.Contains(got, works+"over") || strings.Count(got, refused) != 5 || strings.Count(got, "TIOCLINUX: operation not permitted") != 2 {
			t.Errorf("a session of %s: the shell got %q", user, got)
		}
	}
}

// shared runs a command on a terminal, has the shell that started it read lines there afterwards, and returns all that the terminal showed.
func shared(t *testing.T, command string) string {
	t.Helper()
	// what is typed can be read in the same moment: a line is there already, or is not
	term := rig.OnTerminal(t, "bash", "-c", "stty -echo; "+command+"; while read -t 0 && IFS= read -r line; do printf '[%s]' \"$line\"; done; echo over")
	return term.Expect(t, "over")
}
