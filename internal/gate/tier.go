package gate

// Tier says which part of the cascade gives a verdict with this reason: taint, class, reviewer, person, earlier (a verdict on
// the same command), mode, or gate where none of them had a say. Empty: the code stands beside a verdict.
func (r Reason) Tier() string {
	switch r {
	case Untainted:
		return "taint"
	case LocalRun, SealedRun, ReviewExec:
		return "class"
	case Passed, Flagged:
		return "reviewer"
	case Approved, Denied, Timeout, NoApprover, UsedOnce:
		return "person"
	case Recognised:
		return "earlier"
	case Observe, Sealed:
		return "mode"
	case QUIC, QueueFull, Flood, StoreFailed, LogFailed, Malformed, Cancelled:
		return "gate"
	}
	return ""
}

// Decision is that of a verdict with this reason.
func (r Reason) Decision() Decision {
	switch r {
	case Untainted, Observe, LocalRun, SealedRun, ReviewExec, Passed, Approved, Recognised:
		return Allow
	}
	return Deny
}
