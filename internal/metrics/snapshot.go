package metrics

import "time"

// Source gives what is shown. Its methods are called at the same time.
type Source interface {
	Snapshot() Snapshot // may wait, for a disk that holds up the gate
	Health() Health     // never waits for long
}

// Snapshot is the sensor's figures at one moment. Counts begin when the daemon does, but for those of the kernel, which go on
// while its maps are pinned. A nil map, slice or pointer leaves its series out.
type Snapshot struct {
	Version    string
	Started    time.Time
	Containers map[string]uint64 // with live processes, by taint: none, corruption, secret, both
	Goroutines int

	Verdicts []Verdict
	Failures map[string]uint64 // what went wrong on the way to a verdict, by code
	Holds    *uint64           // calls that were stopped for an answer
	Denials  map[string]uint64 // by hook
	Dropped  *uint64           // packets
	Waiting  *uint64           // questions
	Grants   map[string]uint64 // changes of grants, by state
	Open     *uint64           // grants now
	Taints   map[string]uint64 // by source
	Events   map[string]uint64 // by kind
	Losses   []Loss
	Refusals map[string]uint64 // by rule of the guard
	Broken   map[string]uint64 // rules that always hold, by name
	Models   map[string]uint64 // requests that models' proxies refused, by code
	Maps     []Use             // entries
	Rings    []Use             // bytes that are not read yet
	Programs []Program         // nil: the kernel does not measure them
	Cop      *Cop
	Refused  bool     // the policy file is, and an older policy in force
	Faulty   uint64   // files of rules for tools that are not in force as they stand there
	Missing  []string // parts that could not be read: their series are left out
}

// Verdict counts verdicts of the gate.
type Verdict struct {
	Tier, Result, Reason string
	Count                uint64
}

// Loss counts what did not arrive.
type Loss struct {
	Stage, What string
	Count       uint64
}

// Use is how full something of the kernel's is.
type Use struct {
	Name        string
	Used, Limit uint64
}

// Program is what the kernel measured of a program: all that are loaded under this name together.
type Program struct {
	Name string
	Runs uint64
	Time time.Duration
}

// Cop is the reviewer's figures. They begin anew when the policy is loaded.
type Cop struct {
	Reviews  map[string]uint64 // by result: flagged, passed, failed
	Cached   uint64            // reviews that were answered from the cache
	Failures map[string]uint64 // by code
	Waiting  int64             // now
	Bounds   []time.Duration   // of Latency, upper ones
	Latency  []uint64          // requests to the model by how long they took; one more than Bounds, for longer ones
	Took     time.Duration     // by all of them together
}

// Health is what probes are told.
type Health struct {
	Version  string   `json:"version"`
	Mode     string   `json:"mode"`           // observe, enforce or seal
	Uptime   int64    `json:"uptime_seconds"` // of the daemon
	Ready    bool     `json:"ready"`          // it enforces: Faults is empty
	Faults   []string `json:"faults"`         // why it does not
	Degraded []string `json:"degraded"`       // what does not work here, though it enforces
}
