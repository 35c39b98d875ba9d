// Package figures collects what metrics show and probes ask: it reads the kernel's maps,
// the gate's and the log's counts when somebody asks, and says why a sensor does not
// enforce. It counts nothing itself, and changes nothing.
package figures
