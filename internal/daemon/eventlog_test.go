package daemon

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
	"weir/internal/policy"
)

func TestLogIsTallied(t *testing.T) {
	l := newEventLog(event.NewJSONSink(io.Discard))
	for _, e := range []event.Event{
		{Kind: event.Exec},
		{Kind: event.Taint, Change: &event.TaintChange{Set: []string{"secret"}, Source: "file"}},
		{Kind: event.Taint, Change: &event.TaintChange{Cleared: []string{"secret"}, Source: "operator"}},
		{Kind: event.Grant, Grant: &event.GrantInfo{State: "made"}},
	} {
		if err := l.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	l.WriteAsync(event.Event{Kind: event.Exec})
	l.WriteAsync(event.Event{Kind: event.Grant, Grant: &event.GrantInfo{State: "spent"}})
	kinds, taints, grants := l.Counts()
	if len(kinds) != len(event.Kinds()) {
		t.Errorf("%d kinds: those that did not happen are shown as 0", len(kinds))
	}
	for k, n := range kinds {
		if n == 0 {
			delete(kinds, k)
		}
	}
	got := []map[string]uint64{kinds, taints, grants}
	want := []map[string]uint64{{"exec": 2, "taint": 2, "grant": 2}, {"file": 1}, {"made": 1, "spent": 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

// The policy says where events go besides their file, and which do not.
func TestAlsoOnStandardOutput(t *testing.T) {
	var out bytes.Buffer
	p := policy.Default()
	p.Events.File, p.Events.Also = filepath.Join(t.TempDir(), "events.jsonl"), policy.AlsoStdout
	d := &daemon{opts: Options{Stdout: &out}, policies: newActivePolicy(p)}
	end, err := d.openLog()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []event.Kind{event.Start, event.Exec, event.Error} {
		if err := d.log.Write(event.Event{Kind: k}); err != nil {
			t.Fatal(err)
		}
	}
	d.log.Flush()
	if err := end(); err != nil {
		t.Error(err)
	}
	stored, err := os.ReadFile(p.Events.File)
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	for line := range bytes.Lines(stored) {
		if !bytes.Contains(line, []byte(`"kind":"exec"`)) {
			want = append(want, line...)
		}
	}
	if bytes.Count(stored, []byte("\n")) != 3 || out.String() != string(want) {
		t.Errorf("standard output has\n%sand the file\n%s", &out, stored)
	}
}

type memory map[memoryKey]map[string]uint64

func (m memory) Put(key memoryKey, value any) error {
	m[key] = maps.Clone(value.(map[string]uint64))
	return nil
}

func (m memory) Get(key memoryKey, value any) error {
	if stored, ok := m[key]; ok {
		*value.(*map[string]uint64) = maps.Clone(stored)
	}
	return nil
}

// Each loss is told once, by whichever daemon; what counts anew with the daemon is told anew.
func TestLossesAreToldOnce(t *testing.T) {
	var out bytes.Buffer
	l, m, counts := newEventLog(event.NewJSONSink(&out)), memory{}, map[string]uint64{}
	for i, loss := range losses {
		counts[loss.Counter] = uint64(i + 1)
	}
	for _, c := range []struct {
		name string
		want func(loss) bool
	}{
		{"at first", func(loss) bool { return true }},
		{"by the next daemon", func(l loss) bool { return !l.Kernel }},
	} {
		out.Reset()
		told, err := recallCounters(l, m)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := told.Tell(counts); err != nil {
				t.Fatal(err)
			}
		}
		var got, want []event.Loss
		for line := range bytes.Lines(out.Bytes()) {
			var e event.Event
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatal(err)
			}
			got = append(got, *e.Loss)
		}
		for _, loss := range losses {
			if c.want(loss) {
				want = append(want, event.Loss{Stage: loss.Stage, What: loss.What, Count: counts[loss.Counter]})
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: want - got +\n%s", c.name, diff)
		}
	}
}

// Every counter of the kernel for what was lost is told and remembered.
func TestLossesOfTheKernel(t *testing.T) {
	counters, err := os.ReadFile("../../bpf/types.h")
	names, err2 := os.ReadFile("../netegress/load.go")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	lost := regexp.MustCompile(`COUNT_LOST_\w+: +"(\w+)"`).FindAllSubmatch(names, -1)
	if n := bytes.Count(counters, []byte("COUNT_LOST_")); n == 0 || n != len(lost) {
		t.Errorf("%d of %d have a name", len(lost), n)
	}
	for _, m := range lost {
		if !slices.ContainsFunc(losses, func(l loss) bool { return l.Counter == string(m[1]) && l.Stage == "ring" && l.Kernel }) {
			t.Errorf("%s is told to nobody", m[1])
		}
	}
}
