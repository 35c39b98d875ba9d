package event

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// fill sets about half of all fields, to values that need an escape now and then.
func fill(v reflect.Value, r *rand.Rand) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<33), r.Int64N(2)*r.Int64N(1e9)).UTC()))
		return
	}
	if v.Kind() != reflect.Struct && r.IntN(2) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), r)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), r)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			fill(v.Index(i), r)
		}
	case reflect.String:
		texts := []string{"plain", `a "b" \c`, "<&>", "x\ny\x1b\x00", "\xff", "ä\u202e\U000e0001", "{", ","}
		v.SetString(texts[r.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64() - r.Int64())
	default:
		v.SetUint(r.Uint64() >> (64 - v.Type().Bits()))
	}
}

// A line is what encoding/json makes of the event, field by field.
func TestEncodeAsJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var e Event
		fill(reflect.ValueOf(&e).Elem(), r)
		want, err := marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Marshal(e); err != nil || string(got) != string(want) {
			t.Fatalf("%v\nwant %s\ngot  %s", err, want, got)
		}
	}
	if _, err := Marshal(Event{Time: time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Error("a year that JSON's times do not have is written")
	}
}
