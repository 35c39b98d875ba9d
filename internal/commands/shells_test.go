package commands

import (
	"strings"
	"testing"
)

func TestShellText(t *testing.T) {
	for words, want := range map[string]string{
		"-c T a": "T", "-ec T": "T", "-e -c T": "T", "-c -e T": "T", "-c -o errexit T": "T", "-co errexit T": "T", "-o pipefail -c T": "T", "-O extglob -c T": "T", "-c -- T": "T", "-c +x T": "T", "--rcfile f -c T": "T", "--posix -c T": "T", "-cx - T": "T",
		"s -c T": "", "-- s -c": "", "-e s": "", "-c": "", "": "", "+c T": "", "-s": "", "-c -o": "", "-c --": "",
	} {
		list := strings.Fields(words)
		got := ""
		if at, ok := ShellText(list); ok {
			got = list[at]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
	for name, want := range map[string]bool{"bash": true, "bash-5.2": true, "ksh93": true, "rbash": true, "fish": true, "ssh": false, "python3": false, "": false, "5": false, "hash": false} {
		if IsShell(name) != want {
			t.Errorf("%q: want %v", name, want)
		}
	}
}
