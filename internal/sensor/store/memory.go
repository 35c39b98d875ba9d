package store

import (
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"
)

// Memory is what the daemon itself has to know after a restart.
type Memory struct{ db *bbolt.DB }

// Key names one thing that is remembered.
type Key string

// What is remembered.
const (
	Mode      Key = "mode"      // what weir mode said
	Losses    Key = "losses"    // of the kernel's counters, those that were told
	Summaries Key = "summaries" // of sessions
	Parents   Key = "parents"   // that were guarded
)

var bucket = []byte("sensor")

// OpenMemory makes the daemon's bucket, unless it is there.
func OpenMemory(db *bbolt.DB) (Memory, error) {
	err := db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucket)
		return err
	})
	if err != nil {
		return Memory{}, fmt.Errorf("open the daemon's memory: %w", err)
	}
	return Memory{db}, nil
}

// Put stores a value that can be JSON.
func (m Memory) Put(key Key, value any) error {
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
func (m Memory) Get(key Key, value any) error {
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
