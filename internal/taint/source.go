package taint

import (
	"context"
	"errors"

	"github.com/cilium/ebpf"
)

func isNoKey(err error) bool { return errors.Is(err, ebpf.ErrKeyNotExist) }

// Source reports taint (G2). Watch calls set for each change that it sees,
// until ctx ends; set returns when the kernel denies.
type Source interface {
	Watch(ctx context.Context, set func(Change) (Status, error)) error
}

// Operator is the source that people on the host speak through.
type Operator struct {
	asked chan request
}

type request struct {
	change Change
	answer chan answer
}

type answer struct {
	status Status
	err    error
}

// NewOperator makes a source without anything to report yet.
func NewOperator() *Operator { return &Operator{asked: make(chan request)} }

// Set waits until the change is in force, or ctx ends.
func (o *Operator) Set(ctx context.Context, c Change) (Status, error) {
	r := request{c, make(chan answer, 1)}
	select {
	case o.asked <- r:
	case <-ctx.Done():
		return Status{}, ctx.Err()
	}
	select {
	case a := <-r.answer:
		return a.status, a.err
	case <-ctx.Done():
		return Status{}, ctx.Err()
	}
}

// Watch implements Source.
func (o *Operator) Watch(ctx context.Context, set func(Change) (Status, error)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-o.asked:
			status, err := set(r.change)
			r.answer <- answer{status, err}
		}
	}
}
