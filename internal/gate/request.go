package gate

import "weir/internal/gate/verdict"

var asks = []verdict.Ask{verdict.Connect, verdict.Run, verdict.Command}

// The modes; an empty one is enforce.
const (
	modeObserve = "observe"
	modeEnforce = "enforce"
	modeSeal    = "seal"
)

// pointOf is where in the cascade a request stands.
func pointOf(r verdict.Request) Point {
	switch {
	case r.Ask == verdict.Connect:
		return Out
	case r.Ask == verdict.Run && !r.Held:
		return Seen
	}
	return Asked
}
