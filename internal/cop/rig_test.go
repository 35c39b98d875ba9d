package cop

import (
	"net/netip"
	"testing"

	"weir/internal/classify"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func build(t testing.TB, o Options) *Cop {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// plain is a case about which the static facts are not sure.
func plain(command string) Case {
	return Case{Command: command, Taint: Taint{Corruption: true}, Dir: "/work", Judged: classify.Shell(command, "/workspace"), Policy: "p1"}
}
