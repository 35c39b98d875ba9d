package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"weir/internal/linux"
	"weir/internal/toolguard"

	"weir/internal/bridge/wire"
)

func (s *system) toolcheckCommand() *cobra.Command {
	var jsonl bool
	var server, rules, killed string
	cmd := &cobra.Command{
		Use:   "toolcheck --jsonl",
		Short: "check each tool call on standard input against the guard",
		Long: `Each line of standard input is {"v":"0.5","id":"…","tool":"…","args":{…}}. For each, in order, a line {"id":"…","ok":true,"result":{"decision":"allow"}}
or {"id":"…","ok":false,"error":{"code":"…","message":"…"}} is written. Nothing is carried out.`,
		Example: `  echo '{"v":"0.5","id":"1","tool":"bash","args":{"command":"rm -rf /"}}' | weir toolcheck --jsonl`,
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !jsonl {
				return usage(cmd, "give --jsonl and JSON lines")
			}
			if err := s.ofSensor("kill-switch", filepath.Base(wire.KillSwitch))(cmd, nil); err != nil {
				return err
			}
			o := toolguard.Options{Server: server}
			if rules != "" {
				data, err := linux.ReadInput(rules, 1<<20)
				if err != nil {
					return fmt.Errorf("read rules: %w", err)
				}
				var problems []toolguard.Problem
				if o.Appended, problems = toolguard.Appended(rules, data); len(problems) > 0 {
					for _, p := range problems {
						s.note("weir toolcheck: %s", p)
					}
				}
			}
			return toolcheckLines(s.stdin, s.stdout, toolguard.New(o), func() bool { return toolguard.KillSwitchOn(killed) })
		},
	}
	cmd.Flags().BoolVar(&jsonl, "jsonl", false, "read and write JSON lines")
	cmd.Flags().StringVar(&server, "server", "", "`host` that updates of agents may come from besides GitHub")
	cmd.Flags().StringVar(&rules, "rules", "", "`file` of the operator's own rules")
	cmd.Flags().StringVar(&killed, "kill-switch", wire.KillSwitch, "`file` that turns tools off while it is there, if not the sensor's own")
	return cmd
}

// toolcheckLines answers each line of r, in order.
func toolcheckLines(r io.Reader, w io.Writer, g *toolguard.Guard, killed func() bool) error {
	in, out := bufio.NewReaderSize(r, 64<<10), bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for {
		line, err := readCall(in)
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return out.Flush()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(fmt.Errorf("read standard input: %w", err), out.Flush())
		}
		if err := enc.Encode(g.Answer(line, killed)); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return fmt.Errorf("write: %w", err)
			}
		}
	}
}

// readCall reads a line; of one that is too long it keeps just enough to be refused.
func readCall(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line) <= toolguard.MaxLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
