package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"weir/internal/bpfobj"
	"weir/internal/taint"
)

// Result is how a check came out.
type Result string

// The results. With Warn the sensor runs and lacks something; with Fail it does
// not enforce.
const (
	OK   Result = "ok"
	Warn Result = "warn"
	Fail Result = "fail"
)

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Found  string `json:"found"`          // what is there
	Lost   string `json:"lost,omitempty"` // without it; empty when OK
	Do     string `json:"do,omitempty"`   // about it; empty when OK
}

// Report is all checks in order.
type Report []Check

// Worst is the worst result of all.
func (r Report) Worst() Result {
	worst := OK
	for _, c := range r {
		switch {
		case c.Result == Fail:
			return Fail
		case c.Result == Warn:
			worst = Warn
		}
	}
	return worst
}

// Options say where to look.
type Options struct {
	Root   string // of the file system; "/" but in tests
	EUID   int
	PinDir string              // where a sensor pins what is in force
	Sensor func() (int, error) // the running sensor's pid, 0: none runs
}

// String is c on one line: what was found, what is lost, what to do.
func (c Check) String() string {
	s := c.Name + ": " + c.Found
	for _, more := range []string{c.Lost, c.Do} {
		if more != "" {
			s += ": " + more
		}
	}
	return s
}

// Examine looks at everything.
func Examine(o Options) Report {
	m := at(o.Root, o.PinDir)
	r := append(Report{rootUser(o.EUID)}, m.kernel()...)
	return append(r, m.diag(), m.gateways(), m.inForce(), running(o.Sensor))
}

// Kernel looks at what enforcing needs of the kernel, for a sensor that pins at
// pinDir and will use types.
func Kernel(pinDir string, types *taint.Types) Report {
	m := at("/", pinDir)
	m.cache = types
	return m.kernel()
}

func at(root, pins string) machine {
	m := machine{root: cmp.Or(root, "/"), pins: pins}
	m.release = m.line("proc/sys/kernel/osrelease")
	return m
}

// machine is a file system to look at.
type machine struct {
	root, pins string
	release    string       // of the kernel
	cache      *taint.Types // of the kernel's types; nil: they are read from root
}

func (m machine) kernel() Report {
	r := Report{m.version(), m.cgroup(), m.bpffs(), m.jit(), m.tracing(), m.lockdown(), m.preemption(), m.config()}
	return append(r, m.hooks()...)
}

func (m machine) path(name string) string { return filepath.Join(m.root, name) }

// line reads a file of one line; empty when it cannot be read.
func (m machine) line(name string) string {
	data, err := os.ReadFile(m.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func rootUser(euid int) Check {
	c := Check{Name: "root", Result: OK, Found: "this is root"}
	if euid != 0 {
		c = Check{Name: "root", Result: Fail, Found: fmt.Sprintf("this is uid %d", euid), Lost: "only root loads the sensor's programs", Do: "use sudo"}
	}
	return c
}

func running(sensor func() (int, error)) Check {
	c := Check{Name: "sensor", Result: OK, Found: "none runs"}
	if sensor == nil {
		return c
	}
	pid, err := sensor()
	switch {
	case err != nil:
		return Check{Name: "sensor", Result: Warn, Found: err.Error(), Lost: "what runs here is unknown", Do: "look at the sensor's log"}
	case pid > 0:
		c.Found = fmt.Sprintf("runs, pid %d", pid)
	}
	return c
}

// inForce finds what an earlier sensor left in the kernel.
func (m machine) inForce() Check {
	c := Check{Name: "pins", Result: OK, Found: "nothing is in force"}
	entries, err := os.ReadDir(m.path(m.pins))
	switch {
	case os.IsNotExist(err):
	case err != nil:
		return Check{Name: "pins", Result: Warn, Found: err.Error(), Lost: "what is in force is unknown", Do: "use sudo"}
	case len(entries) > 0 && m.root == "/" && errors.Is(taint.CheckPins(m.pins), bpfobj.ErrPins):
		return Check{
			Name: "pins", Result: Fail, Found: "another version's are in force from " + m.pins, Lost: "this build cannot adopt them",
			Do: "run the build that made them, or `weir detach` when nothing guarded is left",
		}
	case len(entries) > 0:
		c.Found = fmt.Sprintf("in force from %s; the next sensor adopts it, `weir detach` removes it", m.pins)
	}
	return c
}
