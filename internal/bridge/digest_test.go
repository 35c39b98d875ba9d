package bridge

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzDigest (P6): two inputs of a call have one digest exactly if they say the same; what says nothing has none.
func FuzzDigest(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[1.0,"x"]}`), []byte(`{"b":[1.0,"x"], "a":1}`))
	f.Add([]byte(`{"a":1}`), []byte(`{"a":1.0}`))
	f.Add([]byte(`{"a":"<\u003c"}`), []byte(`{"a":"<<"}`))
	f.Add([]byte(``), []byte(`{}`))
	f.Add([]byte(`null`), []byte(`[]`))
	f.Add([]byte(`{"n":12345678901234567890}`), []byte(`{"n":12345678901234567891}`))
	read := func(data []byte) (v map[string]any, ok bool) {
		if len(bytes.TrimSpace(data)) == 0 {
			data = []byte("{}")
		}
		if !json.Valid(data) {
			return nil, false
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		err := dec.Decode(&v)
		return v, err == nil
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		sumA, okA := digest(a)
		sumB, okB := digest(b)
		x, okX := read(a)
		y, okY := read(b)
		if okA != okX || okB != okY {
			t.Fatalf("%q has a digest: %v; it is an object: %v. %q: %v, %v", a, okA, okX, b, okB, okY)
		}
		if okA && okB && (sumA == sumB) != reflect.DeepEqual(x, y) {
			t.Fatalf("%q and %q: one digest is %v", a, b, sumA == sumB)
		}
		var spaced bytes.Buffer
		if okA && len(bytes.TrimSpace(a)) > 0 && json.Indent(&spaced, a, " ", "\t") == nil {
			if again, ok := digest(spaced.Bytes()); !ok || again != sumA {
				t.Fatalf("%q and %q differ", a, spaced.Bytes())
			}
		}
	})
}
