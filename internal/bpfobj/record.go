package bpfobj

import (
	"errors"
	"unsafe"
)

// ErrShort says that a record of a ring is shorter than its struct.
var ErrShort = errors.New("a record is too short")

// Record copies the beginning of a ring's record into the struct that bpf2go made of it. T must have no pointers; bpf2go names
// each gap, so that fields lie where the program wrote them. It is called for each event: encoding/binary would look at each byte
// of a text by reflection.
func Record[T any](into *T, record []byte) error {
	raw := unsafe.Slice((*byte)(unsafe.Pointer(into)), unsafe.Sizeof(*into))
	if copy(raw, record) < len(raw) {
		return ErrShort
	}
	return nil
}

// Text is a C string of a record.
func Text(chars []int8) string {
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(chars))), len(chars))
	for i, c := range raw {
		if c == 0 {
			return string(raw[:i])
		}
	}
	return string(raw)
}
