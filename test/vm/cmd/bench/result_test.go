package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVerdict(t *testing.T) {
	target := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		name string
		r    result
		want string
	}{
		{"no target", result{Value: 3, Low: 2, High: 4, Unit: "ms"}, ""},
		{"below", result{Value: 3, Low: 2, High: 4, Unit: "ms", Target: target(5)}, "met"},
		{"above", result{Value: 8, Low: 7, High: 9, Unit: "ms", Target: target(5)}, "NOT MET"},
		{"around", result{Value: 4, Low: 3, High: 6, Unit: "ms", Target: target(5)}, "met, within the noise"},
		{"a high rate", result{Value: 8, Low: 7, High: 9, Unit: rate, Target: target(5)}, "met"},
		{"a low rate", result{Value: 3, Low: 2, High: 4, Unit: rate, Target: target(5)}, "NOT MET"},
		{"a rate around", result{Value: 4, Low: 3, High: 6, Unit: rate, Target: target(5)}, "not met, within the noise"},
	} {
		if got := c.r.verdict(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestRates(t *testing.T) {
	const text = `goos: linux
BenchmarkQueries/allowed-2   	   12000	     81500 ns/op	         0.0815 ms/query	     12269 queries/s
BenchmarkQueries/unknown-2   	   12000	     81500 ns/op	         0.0815 ms/query	     15000 queries/s
BenchmarkQueries/allowed-2   	   12000	     81500 ns/op	         0.0815 ms/query	     13269.5 queries/s
`
	got, err := rates(text, "BenchmarkQueries/allowed")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{12269, 13269.5}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := rates(text, "BenchmarkStand"); err == nil {
		t.Error("a benchmark that did not run has rates")
	}
}

// A run of some parts keeps what was measured of the others; one of all keeps nothing.
func TestWriteKeeps(t *testing.T) {
	repo := t.TempDir()
	if err := os.Mkdir(filepath.Join(repo, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		keep bool
		name string
		want []string
	}{{true, "a", []string{"a"}}, {true, "b", []string{"a", "b"}}, {false, "c", []string{"c"}}} {
		if err := write(repo, []result{{Name: step.name, Value: 1}}, step.keep); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(repo, "bench/results.json"))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]result
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		for _, name := range step.want {
			if _, ok := got[name]; !ok || len(got) != len(step.want) {
				t.Errorf("with %s the file has %v, want %v", step.name, got, step.want)
			}
		}
	}
}

func TestChosen(t *testing.T) {
	all, err := chosen(nil)
	if err != nil || len(all) != len(parts()) {
		t.Errorf("without arguments %d parts are measured: %v", len(all), err)
	}
	some, err := chosen([]string{"names", "count"})
	if err != nil || len(some) != 2 || some[0].name != "names" {
		t.Errorf("chosen are %v: %v", some, err)
	}
	if _, err := chosen([]string{"nothing"}); err == nil {
		t.Error("an unknown part is measured")
	}
}
