// Package eventtest checks lines of the event log against the schema that is
// documented in docs/events.schema.json. It is for tests only, also for those
// inside a virtual machine.
package eventtest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"weir/docs"
)

// Check fails the test if line is not an event as the schema says.
func Check(t testing.TB, line []byte) {
	t.Helper()
	if err := Validate(line); err != nil {
		t.Errorf("event against schema: %v\n%s", err, line)
	}
}

// CheckLines checks every line of a log and returns how many events it has.
// Blank lines are no events.
func CheckLines(t testing.TB, log []byte) int {
	t.Helper()
	n := 0
	for line := range bytes.Lines(log) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			Check(t, line)
			n++
		}
	}
	return n
}

// Validate says what is wrong with line, if anything.
func Validate(line []byte) error {
	s, err := compiled()
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	return s.Validate(value)
}

// compiled keeps the schema for the many lines of a log.
var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(docs.EventsSchema))
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	const name = "events.schema.json"
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	s, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return s, nil
})
