package bpfobj

import (
	"context"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"
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

// ReadRing gives each record of a ring to handle, which keeps nothing of it, until ctx ends. pace is of a ring whose writers do not wake its reader for
// each record; nil: they do.
func ReadRing[T any](ctx context.Context, ring *ringbuf.Reader, pace *AdaptivePoll, handle func(*T)) error {
	var sample ringbuf.Record
	var record T
	for {
		if pace != nil {
			until, err := pace.Until()
			if err != nil {
				return err
			}
			ring.SetDeadline(until)
		}
		err := ring.ReadInto(&sample)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read ring: %w", err)
		}
		if pace != nil {
			pace.Busy()
		}
		if err := Record(&record, sample.RawSample); err != nil {
			return fmt.Errorf("decode record: %w", err)
		}
		handle(&record)
	}
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
