package eventtest

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCopyOfSchema(t *testing.T) {
	documented, err := os.ReadFile("../../docs/events.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(documented), string(schema)); diff != "" {
		t.Errorf("copy docs/events.schema.json here: documented - here +\n%s", diff)
	}
}

func TestCheckLines(t *testing.T) {
	good := `{"time":"2026-03-01T12:30:05Z","kind":"start","message":"x"}` + "\n"
	if n := CheckLines(t, []byte(good+"\n"+good)); n != 2 {
		t.Errorf("CheckLines counts %d events, want 2", n)
	}
	if Validate([]byte(good[:20])) == nil {
		t.Error("half a line is accepted")
	}
}
