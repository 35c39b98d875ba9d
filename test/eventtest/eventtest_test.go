package eventtest

import "testing"

func TestCheckLines(t *testing.T) {
	good := `{"time":"2026-03-01T12:30:05Z","kind":"start","message":"x"}` + "\n"
	if n := CheckLines(t, []byte(good+"\n"+good)); n != 2 {
		t.Errorf("CheckLines counts %d events, want 2", n)
	}
	if Validate([]byte(good[:20])) == nil {
		t.Error("half a line is accepted")
	}
}
