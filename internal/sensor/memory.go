package sensor

import (
	"errors"
	"os"
	"strings"
	"time"

	"weir/internal/control"
	"weir/internal/policy"
	"weir/internal/sensor/store"
	"weir/internal/taint"
)

// recall takes up what an earlier daemon remembered: a seal outlives it.
func (d *daemon) recall() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var said policy.Mode
	counts := map[string]*control.Summary{}
	if err := errors.Join(d.memory.Get(store.Mode, &said), d.memory.Get(store.Summaries, &counts)); err != nil {
		return err
	}
	d.counts = counts
	if said == "" {
		return nil
	}
	d.policies.Say(said)
	_, err := policy.ParseMode(string(said))
	return err
}

// boot names this boot, and tells the time since then.
func boot() (string, time.Duration) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0
	}
	return strings.TrimSpace(string(id)), time.Duration(taint.Now())
}
