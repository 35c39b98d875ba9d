package cop

import (
	"errors"
	"fmt"
)

// Code says how a review failed (G9). Codes are stable: counters and reason codes
// of the gate are made of them.
type Code string

const (
	Timeout     Code = "cop-timeout"      // no answer within the time limit
	Transport   Code = "cop-transport"    // not reached, or closed in the middle
	RateLimited Code = "cop-rate-limited" // 429
	Server      Code = "cop-server"       // 5xx
	Refused     Code = "cop-refused"      // any other status that is no success: a wrong key, an unknown model
	Malformed   Code = "cop-malformed"    // an answer, but not an opinion
	TooLarge    Code = "cop-too-large"    // the case is over the limit
	QueueFull   Code = "cop-queue-full"   // too many reviews wait
	Closed      Code = "cop-closed"       // Close was called
	Cancelled   Code = "cop-cancelled"    // who asked went away
	None        Code = "cop-none"         // the policy names no reviewer
	Failed      Code = "cop-failed"       // a reviewer failed in a way of its own
)

// Codes are all codes.
var Codes = []Code{Timeout, Transport, RateLimited, Server, Refused, Malformed, TooLarge, QueueFull, Closed, Cancelled, None, Failed}

// Error is a failed review. Its text names no key and nothing of the answer.
type Error struct {
	Code Code
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("review command: %s", e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Fail makes a failed review.
func Fail(code Code, format string, args ...any) *Error {
	return &Error{code, fmt.Errorf(format, args...)}
}

// CodeOf gives the code of a failed review.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Failed
}
