package powershell

import "weir/internal/ruleset/script"

// slab hands out commands from larger pieces: a script has thousands.
type slab struct {
	commands []script.Command
	values   []script.Value
}

// more makes room for a command's words.
func (s *slab) more(args []script.Value, v script.Value) []script.Value {
	if args == nil {
		if len(s.values) < 8 {
			s.values = make([]script.Value, 512)
		}
		args = s.values[:0:8]
		s.values = s.values[8:]
	}
	return append(args, v)
}

func (s *slab) command() *script.Command {
	if len(s.commands) == 0 {
		s.commands = make([]script.Command, 64)
	}
	c := &s.commands[0]
	s.commands = s.commands[1:]
	c.Dialect = script.PowerShell
	return c
}
