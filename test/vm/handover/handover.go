// Package handover has the files by which the host and the VM's init talk to each other. It owns their names and their form,
// and never does anything with them.
package handover

import "time"

const (
	// JobFile is read by init from the out share.
	JobFile = "job.json"
	// StatusFile is written by init to the out share, last.
	StatusFile = "status.json"
	// OutTag is the 9p tag of the share that the guest mounts read-write at OutDir.
	OutTag = "out"
	// OutDir is where the guest sees it.
	OutDir = "/out"
	// Port is the name of the virtio serial port that carries the command's output.
	Port = "weir.out"
	// InitName is the name of process 1 in the VM (comm), by which tests know that they run there.
	InitName = "weir-vm-init"
	// JobMode is init's argument when it is not process 1: systemd is, and init one of its services, which runs the job and powers off.
	JobMode = "job"
	// KernelFlag stands on the kernel's command line in each of our VMs.
	KernelFlag = "weir.vm=1"
	// ProbeFlag makes init power off at once: the boot itself was the question.
	ProbeFlag = "weir.probe=1"
)

// Job is the one command that a VM runs.
type Job struct {
	Args    []string      // program and arguments; the program is looked up in PATH
	Env     []string      // added to the guest's environment
	Dir     string        // working directory; empty means /
	Mounts  []Mount       // read-only 9p shares
	Timeout time.Duration // init kills the command after it; zero means never
	Systemd bool          // process 1 is systemd, where the root has it, and init one of its services
}

// Mount is a share that the guest sees at Path.
type Mount struct {
	Tag  string
	Path string
}

// Status tells how the command ended. A VM that leaves none died.
type Status struct {
	Exit  int    // exit status; 128 + number for a signal, as shells say it
	Error string // why init could not run or wait for the command; empty if it did
}
