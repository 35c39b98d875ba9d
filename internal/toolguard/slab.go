package toolguard

// slab hands out commands from larger pieces: a script has thousands.
type slab struct {
	commands []Command
	values   []Value
}

// more makes room for a command's words.
func (s *slab) more(args []Value, v Value) []Value {
	if args == nil {
		if len(s.values) < 8 {
			s.values = make([]Value, 512)
		}
		args = s.values[:0:8]
		s.values = s.values[8:]
	}
	return append(args, v)
}

func (s *slab) command() *Command {
	if len(s.commands) == 0 {
		s.commands = make([]Command, 64)
	}
	c := &s.commands[0]
	s.commands = s.commands[1:]
	c.Dialect = PowerShell
	return c
}
