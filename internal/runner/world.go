package runner

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"weir/internal/control"
)

// self is this very program, also when its file was replaced meanwhile.
const self = "/proc/self/exe"

// World is what processes are started with.
type World struct {
	Stdin, Stdout, Stderr *os.File
	Environ               []string
	RunDir                string                           // of the control socket
	Say                   func(format string, args ...any) // a line for the operator
	Outlive               func(sensor int) error           // what Supervise does against a shortage of memory, if not nil
}

func (w World) client() *control.Client { return control.NewClient(w.RunDir) }

func (w World) getenv(name string) string { return Getenv(w.Environ, name) }

// Getenv is the value of name in environ, or empty.
func Getenv(environ []string, name string) string {
	for _, kv := range environ {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// Status is an exit status that needs no words: who ended with it has said why.
type Status int

// Error gives the number.
func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ExitCode returns it.
func (s Status) ExitCode() int { return int(s) }

// exitOf turns the end of a child into an exit status: 128+n for signal n.
func exitOf(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Status(128 + int(ws.Signal()))
	}
	return Status(exit.ExitCode())
}

// without is environ without some names.
func without(environ []string, names ...string) []string {
	var kept []string
next:
	for _, kv := range environ {
		for _, name := range names {
			if strings.HasPrefix(kv, name+"=") {
				continue next
			}
		}
		kept = append(kept, kv)
	}
	return kept
}
