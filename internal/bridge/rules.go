package bridge

import (
	"weir/internal/bridge/wire"
	"weir/internal/permission"
	"weir/internal/toolguard"
)

// Rules are what calls are held against before any hook.
type Rules struct {
	Guard       Guard
	Permissions Permissions
	Killed      func() bool // the kill switch is on; asked for each call
}

// Use takes other rules from now on. There is no way to have none: what is missing stays as it was.
func (s *Server) Use(r Rules) {
	now := *s.rules.Load()
	if r.Guard != nil {
		now.Guard = r.Guard
	}
	if r.Permissions != nil {
		now.Permissions = r.Permissions
	}
	if r.Killed != nil {
		now.Killed = r.Killed
	}
	s.rules.Store(&now)
}

// Killed says whether the kill switch is on now, and turns a tool off (K10).
func (s *Server) Killed(tool string) bool { return toolguard.Changes(tool) && s.rules.Load().Killed() }

// Permissions are the permission rules in force.
func (s *Server) Permissions() Permissions { return s.rules.Load().Permissions }

// standing are the rules of a server that was told of none.
func standing() *Rules {
	return &Rules{
		Guard:       toolguard.New(toolguard.Options{Names: toolguard.InstalledNames()}),
		Permissions: (*permission.Set)(nil),
		Killed:      func() bool { return toolguard.KillSwitchOn(wire.KillSwitch) },
	}
}
