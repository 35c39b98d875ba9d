package bpfobj

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecord(t *testing.T) {
	type record struct {
		A uint64
		B uint32
		C [4]int8
	}
	want := record{1, 2, [4]int8{-1, 'b', 'c', 'd'}}
	raw, err := binary.Append(nil, binary.NativeEndian, &want)
	if err != nil {
		t.Fatal(err)
	}
	var got record
	if err := Record(&got, append(raw, "more"...)); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if err := Record(&got, raw[:len(raw)-1]); !errors.Is(err, ErrShort) {
		t.Errorf("a record that is cut: %v", err)
	}
}

func TestText(t *testing.T) {
	got := []string{Text([]int8{'c', 'u', 'r', 'l', 0, 'x'}), Text([]int8{'a', 'b'}), Text([]int8{-61, -92}), Text(nil)}
	if diff := cmp.Diff([]string{"curl", "ab", "ä", ""}, got); diff != "" {
		t.Error(diff)
	}
}
