package sensor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"weir/internal/control"
	"weir/internal/policy"
	"weir/internal/taint"
)

// memory is what the daemon itself has to know after a restart.
type memory struct{ db *bbolt.DB }

// What is remembered, by key.
const (
	modeKey    = "mode"      // what weir mode said
	lossesKey  = "losses"    // of the kernel's counters, those that were told
	countsKey  = "summaries" // of sessions
	parentsKey = "parents"   // that were guarded
)

var memoryBucket = []byte("sensor")

func openMemory(db *bbolt.DB) (memory, error) {
	err := db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(memoryBucket)
		return err
	})
	if err != nil {
		return memory{}, fmt.Errorf("open the daemon's memory: %w", err)
	}
	return memory{db}, nil
}

func (m memory) put(key string, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		err = m.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(memoryBucket).Put([]byte(key), data) })
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return nil
}

// get leaves value as it is when nothing is stored.
func (m memory) get(key string, value any) error {
	err := m.db.View(func(tx *bbolt.Tx) error {
		data := tx.Bucket(memoryBucket).Get([]byte(key))
		if data == nil {
			return nil
		}
		return json.Unmarshal(data, value)
	})
	if err != nil {
		return fmt.Errorf("read stored %s: %w", key, err)
	}
	return nil
}

// recall takes up what an earlier daemon remembered: a seal outlives it.
func (d *daemon) recall() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	counts := map[string]*control.Summary{}
	if err := errors.Join(d.memory.get(modeKey, &d.sealed), d.memory.get(countsKey, &counts)); err != nil {
		return err
	}
	d.counts = counts
	if d.sealed == "" {
		return nil
	}
	_, err := policy.ParseMode(string(d.sealed))
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
