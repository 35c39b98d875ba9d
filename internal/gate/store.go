package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"go.etcd.io/bbolt"
)

const bucketName = "questions"

// store keeps records by id. Each write is on disk when it returns, unless the
// database was opened with NoSync.
type store struct {
	db      *bbolt.DB
	updates *atomic.Uint64 // that succeeded
}

func openStore(db *bbolt.DB) (store, error) {
	err := db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{bucketName, standingBucket} {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store{}, fmt.Errorf("open the store of questions: %w", err)
	}
	return store{db, new(atomic.Uint64)}, nil
}

func (s store) put(r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode question %s: %w", r.ID, err)
	}
	err = s.update(bucketName, func(b *bbolt.Bucket) error { return b.Put([]byte(r.ID), data) })
	if err != nil {
		return fmt.Errorf("store question %s: %w", r.ID, err)
	}
	return nil
}

func (s store) remove(ids ...string) error {
	err := s.update(bucketName, func(b *bbolt.Bucket) error {
		for _, id := range ids {
			if err := b.Delete([]byte(id)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove questions: %w", err)
	}
	return nil
}

// get returns the record with this id, and whether there is one.
func (s store) get(id string) (record, bool, error) {
	var r record
	var found bool
	err := s.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketName))
		if b == nil {
			return fmt.Errorf("bucket %s %w", bucketName, errNoBucket)
		}
		data := b.Get([]byte(id))
		if data == nil {
			return nil
		}
		found = true
		return json.Unmarshal(data, &r)
	})
	if err != nil {
		return record{}, false, fmt.Errorf("read question %q: %w", id, err)
	}
	return r, found, nil
}

// load returns every record, and the ids of those that cannot be read.
func (s store) load() ([]record, []string, error) {
	return loadAll(s, bucketName, "questions", func(id string, r record) bool { return r.ID == id && len(r.Asking) > 0 })
}

// loadAll returns all of a bucket, and the ids of what cannot be read or is not sound. what names them for people.
func loadAll[T any](s store, bucket, what string, sound func(id string, v T) bool) (all []T, bad []string, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		if b == nil {
			return fmt.Errorf("bucket %s %w", bucket, errNoBucket)
		}
		return b.ForEach(func(k, data []byte) error {
			var v T
			if json.Unmarshal(data, &v) != nil || !sound(string(k), v) {
				bad = append(bad, string(k))
				return nil
			}
			all = append(all, v)
			return nil
		})
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the stored %s: %w", what, err)
	}
	return all, bad, nil
}

var errNoBucket = errors.New("is missing")

func (s store) update(bucket string, f func(*bbolt.Bucket) error) error {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		if b == nil {
			return fmt.Errorf("bucket %s %w", bucket, errNoBucket)
		}
		return f(b)
	})
	if err == nil {
		s.updates.Add(1)
	}
	return err
}
