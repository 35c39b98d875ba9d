package daemon

import (
	"os"
	"strings"
	"sync"
	"time"

	"weir/internal/policy"
	"weir/internal/taint"
)

// recall takes up what an earlier daemon remembered: a seal outlives it.
func (d *daemon) recall() error {
	var said policy.Mode
	var err error
	if d.summaries, err = recallSummaries(d.memory); err != nil {
		return err
	}
	if err := d.memory.Get(keyMode, &said); err != nil || said == "" {
		return err
	}
	d.policies.Say(said)
	_, err = policy.ParseMode(string(said))
	return err
}

// boot names this boot, and tells the time since then.
func boot() (string, time.Duration) {
	id := bootID()
	if id == "" {
		return "", 0
	}
	return id, time.Duration(taint.Now())
}

var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})
