package bpfobj

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cilium/ebpf"
)

// ProgramStat is what the kernel measured of a program.
type ProgramStat struct {
	Name  string
	Count uint64
	Time  time.Duration
}

// Measured says whether the kernel measures how long programs run. That costs time, and is for the operator to switch on.
func Measured() (bool, error) {
	data, err := os.ReadFile("/proc/sys/kernel/bpf_stats_enabled")
	if err != nil {
		return false, fmt.Errorf("read whether programs are measured: %w", err)
	}
	return strings.TrimSpace(string(data)) == "1", nil
}

// Runs tells of each program that is attached by these links, once.
func (k *Links) Runs() ([]ProgramStat, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []ProgramStat
	seen := map[ebpf.ProgramID]bool{}
	for name, l := range k.held {
		info, err := l.Info()
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", name, err)
		}
		if seen[info.Program] {
			continue
		}
		seen[info.Program] = true
		run, err := ran(info.Program)
		if err != nil {
			return nil, fmt.Errorf("look at the program of %s: %w", name, err)
		}
		all = append(all, run)
	}
	return all, nil
}

func ran(id ebpf.ProgramID) (ProgramStat, error) {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return ProgramStat{}, err
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return ProgramStat{}, err
	}
	stats, err := p.Stats()
	if err != nil {
		return ProgramStat{}, err
	}
	return ProgramStat{info.Name, stats.RunCount, stats.Runtime}, nil
}

// Check says what is wrong with the links: nothing is attached, the kernel does not have one any more, or one is not pinned.
func (k *Links) Check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.held) == 0 {
		return errors.New("no program is attached")
	}
	var errs []error
	for name, l := range k.held {
		if _, err := l.Info(); err != nil {
			errs = append(errs, fmt.Errorf("%s is not attached: %w", name, err))
		} else if _, err := os.Stat(filepath.Join(k.dir, name)); err != nil {
			errs = append(errs, fmt.Errorf("%s is not pinned: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
