package taint

import (
	"strings"
	"testing"
)

func TestBits(t *testing.T) { // G1
	for _, c := range []struct {
		names []string
		want  Bits
		wrong string
	}{
		{names: []string{"corruption"}, want: Corruption},
		{names: []string{"secret", " corruption "}, want: Corruption | Secret},
		{names: nil, wrong: "no taint bit given"},
		{names: []string{"secret", "sticky"}, wrong: `unknown taint bit "sticky": use corruption or secret`},
	} {
		got, err := ParseBits(c.names)
		if c.wrong != "" {
			if got != 0 || err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%q: %v, %v, want %q", c.names, got, err, c.wrong)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%q: %v, %v, want %v", c.names, got, err, c.want)
		}
		if again, err := ParseBits(got.Names()); err != nil || again != got {
			t.Errorf("%v: its names %q read as %v, %v", got, got.Names(), again, err)
		}
	}
}
