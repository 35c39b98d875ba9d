package gate

var asks = []Ask{Connect, Run, Command}

// The modes; an empty one is enforce.
const (
	modeObserve = "observe"
	modeEnforce = "enforce"
	modeSeal    = "seal"
)

// pointOf is where in the cascade a request stands.
func pointOf(r Request) Point {
	switch {
	case r.Ask == Connect:
		return Out
	case r.Ask == Run && !r.Held:
		return Seen
	}
	return Asked
}
