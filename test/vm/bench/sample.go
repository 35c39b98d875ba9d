package bench

// SampleFile is what a guest leaves in its output directory.
const SampleFile = "samples.json"

// The states that a case is measured in.
const (
	Before   = "before"   // without the sensor, before it started
	After    = "after"    // without the sensor, after it was taken out of the kernel
	Idle     = "idle"     // the sensor runs, and guards nothing
	Outside  = "outside"  // the sensor guards others
	Guarded  = "guarded"  // guarded and untainted
	Tainted  = "tainted"  // guarded and tainted; the destination is allowed
	Terminal = "terminal" // guarded, in a session on a terminal: its system calls are filtered
	Observed = "observed" // guarded; the daemon's own work is counted beside it
)

// NoList are the same states, without a list of secret files: only opens are measured in them.
const NoList = "nolist "

// Cases are what is measured, in the order of measuring.
func Cases() []string { return []string{"exec", "connect", "udp", "bulk", "open"} }

// ContainerCase is the start of a container, which has a plan of its own.
const ContainerCase = "container"

// Samples is all that one guest measured.
type Samples struct {
	Kernel string               // release
	Cycles []Cycle              // each with a start of the sensor and its end
	Values map[string][]float64 // everything else, by the name of the result, in its unit
}

// Cycle has the cost of one operation in ns, each the median of several windows, by case and state.
type Cycle map[string]map[string]float64
