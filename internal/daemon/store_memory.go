package daemon

import (
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"
)

// stateMemory is what the daemon itself has to know after a restart.
type stateMemory struct{ db *bbolt.DB }

// memoryKey names one thing that is remembered.
type memoryKey string

// What is remembered.
const (
	keyForgotten memoryKey = "forgotten" // since when what other nodes told of identities counts
	keyMode      memoryKey = "mode"      // what weir mode said
	keyOrdered   memoryKey = "ordered"   // when that was ordered: no older order counts
	keyPolicy    memoryKey = "policy"    // which policy file is in force, and since when: no older policy counts
	keyLosses    memoryKey = "losses"    // of the kernel's counters, those that were told
	keySummaries memoryKey = "summaries" // of sessions
	keyParents   memoryKey = "parents"   // that were guarded
)

var bucket = []byte("sensor")

// openMemory makes the daemon's bucket, unless it is there.
func openMemory(db *bbolt.DB) (stateMemory, error) {
	err := db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucket)
		return err
	})
	if err != nil {
		return stateMemory{}, fmt.Errorf("open the daemon's memory: %w", err)
	}
	return stateMemory{db}, nil
}

// Put stores a value that can be JSON.
func (m stateMemory) Put(key memoryKey, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		err = m.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(key), data) })
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return nil
}

// Get reads what is stored into value, and leaves that as it is when there is nothing.
func (m stateMemory) Get(key memoryKey, value any) error {
	err := m.db.View(func(tx *bbolt.Tx) error {
		data := tx.Bucket(bucket).Get([]byte(key))
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
