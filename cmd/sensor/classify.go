package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"weir/internal/classify"
	"weir/internal/event"
)

// maxLine bounds a line of weir classify: a text at its limit, with every byte escaped.
const maxLine = 6*classify.MaxText + 4096

func (s *system) classifyCommand() *cobra.Command {
	var jsonl bool
	cmd := &cobra.Command{
		Use:   "classify --jsonl",
		Short: "judge each command on standard input: local, network or grey",
		Long: `Each line of standard input is {"id":any,"command":"…"} for a shell text, or
{"id":any,"argv":["…"],"env":["NAME=…"]} for an observed command line, with "file" and "truncated" when they are known.
For each, in order, a line {"id":…,"class":"local"|"network"|"grey","reasons":[{"rule","offset","length","text"}]} is written.
A line that cannot be read is grey and has an "error"; then the exit code is 1.`,
		Example: `  echo '{"id":1,"command":"ls | wc -l"}' | weir classify --jsonl`,
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !jsonl {
				return usage(cmd, "give --jsonl and JSON lines, or use weir explain for one command")
			}
			return classifyLines(s.stdin, s.stdout)
		},
	}
	cmd.Flags().BoolVar(&jsonl, "jsonl", false, "read and write JSON lines")
	return cmd
}

type judged struct {
	ID        json.RawMessage `json:"id"`
	Command   *string         `json:"command"`
	Argv      []string        `json:"argv"`
	Env       []string        `json:"env"`
	File      string          `json:"file"`
	Dir       string          `json:"cwd"`
	Truncated bool            `json:"truncated"`
}

type answer struct {
	ID      json.RawMessage   `json:"id"`
	Class   string            `json:"class"`
	Reasons []classify.Reason `json:"reasons"`
	Error   string            `json:"error,omitempty"`
}

// classifyLines answers each line of r, in order, and fails at the end when one could
// not be read.
func classifyLines(r io.Reader, w io.Writer) error {
	in, out := bufio.NewReaderSize(r, 64<<10), bufio.NewWriter(w)
	bad, first := 0, ""
	for n := 1; ; n++ {
		line, err := readLine(in)
		if err != nil && !errors.Is(err, errLong) && len(line) == 0 {
			if !errors.Is(err, io.EOF) {
				return errors.Join(fmt.Errorf("read commands: %w", err), out.Flush())
			}
			break
		}
		if len(bytes.TrimSpace(line)) == 0 && err == nil {
			continue
		}
		a := answerTo(line, err)
		if a.Error != "" {
			a.Error = fmt.Sprintf("line %d: %s", n, a.Error)
			if bad++; bad == 1 {
				first = a.Error
			}
		}
		if err := writeJSON(out, a); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := written(0, out.Flush()); err != nil {
				return err
			}
		}
	}
	if err := written(0, out.Flush()); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of the lines cannot be read: %s", bad, first)
	}
	return nil
}

var errLong = errors.New("line is too long")

// readLine reads a line without its end; one that is too long is read to its end.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long:
			return nil, errLong
		}
		return bytes.TrimSuffix(line, []byte("\n")), err
	}
}

func answerTo(line []byte, err error) answer {
	var q judged
	var r classify.Result
	a := answer{ID: json.RawMessage("null")}
	switch {
	case errors.Is(err, errLong):
		a.Error = fmt.Sprintf("is longer than %d bytes", maxLine)
	case !utf8.Valid(line):
		a.Error = "is not UTF-8"
	default:
		err := json.Unmarshal(line, &q)
		if len(q.ID) > 0 {
			a.ID = q.ID
		}
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &kind) && kind.Field != "":
			a.Error = fmt.Sprintf("has a %s as %s", kind.Value, kind.Field)
		case err != nil:
			a.Error = fmt.Sprintf(`is not an object like {"id":1,"command":"ls"}: %s`, event.Plain(err))
		}
		if err != nil {
			break
		}
		switch {
		case q.Command != nil && q.Argv != nil:
			a.Error = "has both command and argv: give one"
		case q.Command != nil:
			r = classify.Shell(*q.Command, q.Dir)
		case q.Argv != nil:
			r = classify.Argv(classify.Observed{Argv: q.Argv, Env: q.Env, File: q.File, Dir: q.Dir, Truncated: q.Truncated})
		default:
			a.Error = "has neither command nor argv"
		}
	}
	a.Class, a.Reasons = r.Class.String(), r.Reasons
	if a.Reasons == nil {
		a.Reasons = []classify.Reason{}
	}
	if a.Error != "" {
		a.Reasons = []classify.Reason{{Rule: "input", Text: "the line " + a.Error}}
	}
	return a
}
