package cop

import (
	"context"
	"net/netip"

	"weir/internal/classify"
)

// Reviewer gives an opinion of a case, or fails. Review honours ctx and is safe
// for concurrent use. What is not a well-formed opinion is an error, an *Error
// where its kind is known.
type Reviewer interface {
	Review(ctx context.Context, c Case) (Opinion, error)
}

// Opinion is what a reviewer thinks of a case. Reason may come from a model: show
// it as text of a stranger.
type Opinion struct {
	Flagged bool   // suspicious
	Reason  string // 1 to 1,000 bytes
}

// Case is what is asked: a command, seen before it runs or when it wants out. All
// texts are the container's, and data only.
type Case struct {
	Command     string   // as asked for over the bridge; empty if it was only observed
	Argv        []string // as observed; empty if it was only asked for
	Truncated   bool     // Argv is not whole
	Taint       Taint
	Dir         string // working directory
	ID          string // of the container, which has a share of the reviews; no reviewer is shown it
	Container   string // its name
	Image       string
	Destination Destination     // where it wants to go; zero: not known yet
	Ancestry    []Process       // from the parent up, those inside the container
	Judged      classify.Result // of Command, or of Argv
	Policy      string          // version of the policy: part of a cached verdict's key
}

// Taint are the bits of the container (G1).
type Taint struct {
	Corruption, Secret bool
}

// Destination is where a command wants to go.
type Destination struct {
	Address  netip.Addr
	Port     uint16
	Protocol string // tcp, udp
	Name     string // what the program asked for, when known
}

// Process is an ancestor.
type Process struct {
	Comm string
	Argv []string
}

// Bounds on what is shown to a reviewer, in bytes of all its texts, and on an opinion.
const (
	MaxCase   = 128 << 10
	MaxReason = 1000
)

// Size counts the bytes of the texts of a case.
func Size(c Case) int {
	n := len(c.Command) + len(c.Dir) + len(c.Container) + len(c.Image) + len(c.Destination.Name) + len(c.Destination.Protocol) + list(c.Argv)
	for _, p := range c.Ancestry {
		n += len(p.Comm) + list(p.Argv)
	}
	return n
}

func list(texts []string) int {
	n := len(texts)
	for _, t := range texts {
		n += len(t)
	}
	return n
}
