package taint

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
)

// Change makes void what the kernel's programs remember of their judgements, around
// a change of what they judge by: states of cgroups, and policies. Nothing is
// remembered during the change, nor after one that was cut off, until the next
// daemon starts. The change is made also if that fails, which is an error.
func (s *State) Change(change func() error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	begun := s.kernel.setEpoch(0)
	err := change()
	if begun != nil {
		return errors.Join(err, begun)
	}
	// at random: half of an old and half of a new number is never one that was
	var next [8]byte
	if _, failed := rand.Read(next[:]); failed != nil {
		return errors.Join(err, fmt.Errorf("make epoch: %w", failed))
	}
	return errors.Join(err, s.kernel.setEpoch(binary.NativeEndian.Uint64(next[:])))
}

func (o *cgroupObjects) setEpoch(epoch uint64) error {
	if err := o.Epochs.Put(uint32(0), epoch); err != nil {
		return fmt.Errorf("write epoch: %w", err)
	}
	return nil
}
