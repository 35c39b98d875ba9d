package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/control"
	"weir/internal/event"
)

// Lines of the log that are no events are counted: what is told without them may not be all.
func TestF11UnreadHistory(t *testing.T) {
	line, err := json.Marshal(event.Event{
		Time: time.Unix(1e9, 0).UTC(), Kind: event.Taint, Container: &event.Container{ID: "c1"}, Change: &event.TaintChange{Set: []string{"secret"}, Source: "file"},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "events.jsonl")
	for bad, text := range map[int]string{0: "", 2: "half of a li\n{}\n"} {
		if err := os.WriteFile(event.KeptFile(file), []byte(text+string(line)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var y control.Why
		if err := history(&y, file, "c1"); err != nil || len(y.History) != 1 || y.Unread != bad {
			t.Errorf("%d: %+v, %v", bad, y, err)
		}
	}
	before := strings.Replace(string(line), "2001-", "2000-", 1) + "\n" // and what is kept is there as well
	if err := os.WriteFile(file, []byte(before+string(line)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var y control.Why
	if err := history(&y, file, "c1"); err != nil || len(y.History) != 2 || y.History[0].Time.Year() != 2000 {
		t.Errorf("what the log has from before anything was kept: %+v, %v", y.History, err)
	}
	if err := history(&control.Why{}, file+".not-there", "c1"); err == nil {
		t.Error("no log, and nobody is told")
	}
}
