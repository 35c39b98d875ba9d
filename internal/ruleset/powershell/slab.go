package powershell

import "weir/internal/ruleset/script"

// slab hands out commands from larger pieces: a script has thousands.
type slab struct{ commands []script.Command }

func (s *slab) command() *script.Command {
	if len(s.commands) == 0 {
		s.commands = make([]script.Command, 64)
	}
	c := &s.commands[0]
	s.commands = s.commands[1:]
	c.Dialect = script.PowerShell
	return c
}
