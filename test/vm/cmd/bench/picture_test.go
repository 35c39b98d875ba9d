package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// texts are those of a picture, which must be whole XML.
func texts(t *testing.T, svg []byte) []string {
	t.Helper()
	var all []string
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			all = append(all, string(text))
		}
	}
}

func TestPicture(t *testing.T) {
	all := map[string]result{
		"exec_outside_ratio": {Value: 1.02, Low: 1.01, High: 1.03, Unit: "ratio", Target: bound(1.01, true)},
		"late_ms":            {Value: 20, Low: 15, High: 25, Unit: "ms", Target: bound(10, true)},
		"fast":               {Value: 10000, Low: 9000, High: 11000, Unit: rate, Target: bound(5000, true)},
		"untold_ms":          {Value: 1, Low: 1, High: 1, Unit: "ms"},
	}
	svg := picture(all)
	text := strings.Join(texts(t, svg), "\n")
	for _, want := range []string{"exec_outside_ratio", "1.02", "late_ms", "20 ms (≤ 10)", "fast", "1e+04 queries/s (≥ 5000)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the picture", want)
		}
	}
	if strings.Contains(text, "untold_ms") {
		t.Error("what has no target is drawn")
	}
	// the dot of late_ms, of twice what is wanted, is right of the mark, and bad
	if !strings.Contains(string(svg), `<circle class="dot bad"`) || !strings.Contains(string(svg), "prefers-color-scheme:dark") {
		t.Error("nothing is bad, or the picture is for light pages only")
	}
	if x := share(all["late_ms"], 20); x != 2 {
		t.Errorf("20 of 10 is %v", x)
	}
	if x := share(all["fast"], 10000); x != 0.5 {
		t.Errorf("a rate of twice what is wanted is %v", x)
	}
}

// The picture in docs is that of bench/results.json: go run ./test/vm/cmd/bench picture draws it again.
func TestPictureIsDrawn(t *testing.T) {
	data, err := os.ReadFile("../../../../bench/results.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]result
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	drawn, err := os.ReadFile("../../../../docs/performance.svg")
	if err != nil {
		t.Fatal(err)
	}
	if string(drawn) != string(picture(all)) {
		t.Error("docs/performance.svg is older than bench/results.json: go run ./test/vm/cmd/bench picture")
	}
}
