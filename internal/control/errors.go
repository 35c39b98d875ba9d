package control

import (
	"errors"
	"fmt"

	"weir/internal/event"
)

// Exit codes of the command line, as the wire carries them.
const (
	Failed = 1
	Usage  = 2 // the request itself is wrong
	Denied = 3 // the asker may not
)

var (
	// ErrNotRunning is returned by every call of a Client whose socket nobody serves.
	ErrNotRunning = errors.New("no sensor is running: start it with `sudo weir run`, or run a command with `sudo weir guard -- CMD`")
	// ErrRunning is returned by Listen when another sensor serves the directory.
	ErrRunning = errors.New("another weir is running")
)

// Error is a failure with its exit code.
type Error struct {
	Code int    `json:"code"`
	Text string `json:"error"`
}

// Errorf makes an Error of code, with the plain words of what it wraps.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Text: event.Plain(fmt.Errorf(format, args...))}
}

// Error returns the text alone.
func (e *Error) Error() string { return e.Text }

// ExitCode returns the code.
func (e *Error) ExitCode() int { return e.Code }

// Code is the exit code of err: 0 for nil, its own if it has one, else Failed.
func Code(err error) int {
	if err == nil {
		return 0
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		if c := coded.ExitCode(); c > 0 && c < 256 {
			return c
		}
	}
	return Failed
}
