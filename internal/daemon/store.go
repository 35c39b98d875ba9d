package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

// stateFormat is the version of what state.db holds.
const stateFormat = 1

var formatKey = []byte("format")

// OpenStore opens the database of what must outlive a reboot in dir, and makes one
// where there is none. What is there is never replaced: a file that is locked, cut,
// empty, damaged or of another version is an error of one line that says what to do.
func OpenStore(dir string) (*bbolt.DB, error) {
	path := filepath.Join(dir, "state.db")
	if err := ours(dir); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := makeState(path); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open %s: it is not a file: remove it", path)
	default:
		if err := ours(path); err != nil {
			return nil, fmt.Errorf("open %s: %w", path, err)
		}
	}
	db, err := openWhole(path)
	var of unix.Errno // the disk's or the system's: what it holds may be whole
	switch {
	case err == nil:
		return db, nil
	case errors.As(err, &of):
		return nil, fmt.Errorf("open %s: %w", path, of)
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("open %s: it is locked: is another sensor using it?", path)
	case errors.Is(err, errVersion):
		return nil, fmt.Errorf("open %s: %w", path, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return nil, fmt.Errorf("open %s: %w: put a copy back, or remove it and so forget all taint, questions and the mode", path, err)
}

// ours fails if another user owns a file or directory, or may write to it: then nobody knows who wrote what is in there.
func ours(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if int(st.Uid) == os.Geteuid() && st.Mode&0o022 == 0 {
		return nil
	}
	return fmt.Errorf("others than the sensor could write to %s (uid %d, mode %04o): see what they did, then give it to uid %d and take their write permission away (chmod go-w)",
		path, st.Uid, st.Mode&0o7777, os.Geteuid())
}

// makeState makes an empty database. It gets its name when it is whole: a start
// that was broken off leaves none.
func makeState(path string) (err error) {
	next := path + ".new"
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("make %s: %w", path, err), ignoreGone(os.Remove(next)))
		}
	}()
	if err := ignoreGone(os.Remove(next)); err != nil {
		return err
	}
	db, err := bbolt.Open(next, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucket)
		if err != nil {
			return err
		}
		return b.Put(formatKey, []byte(strconv.Itoa(stateFormat)))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return linux.SyncDir(filepath.Dir(path))
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// openWhole opens a database after it was read from end to end. A damaged one can
// make the library panic, or read past the end of the file.
func openWhole(path string) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, errors.New("it is damaged")
		}
	}()
	if err := readWhole(path); err != nil {
		return nil, err
	}
	return bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
}

var errVersion = errors.New("it was written by another version of weir")

func readWhole(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return errors.New("it is empty")
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: true})
	if err != nil {
		if errors.Is(err, berrors.ErrTimeout) || errors.As(err, new(unix.Errno)) {
			return err
		}
		return fmt.Errorf("it is damaged, or no database of weir (%w)", err)
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() {
			return fmt.Errorf("it is cut: %d of %d bytes are left", info.Size(), tx.Size())
		}
		if err := tx.ForEach(readBucket); err != nil {
			return fmt.Errorf("it is damaged (%w)", err)
		}
		return checkFormat(tx)
	})
}

// readBucket reads every byte of a bucket. The library's own check runs in a
// goroutine of its own, where a fault could not be recovered from.
func readBucket(name []byte, b *bbolt.Bucket) error {
	var last []byte
	return b.ForEach(func(k, v []byte) error {
		if last != nil && bytes.Compare(last, k) >= 0 {
			return fmt.Errorf("the keys of %q are out of order", name)
		}
		last = bytes.Clone(k)
		crc32.ChecksumIEEE(v)
		return nil
	})
}

func checkFormat(tx *bbolt.Tx) error {
	b := tx.Bucket(bucket)
	if b == nil {
		return nil // from before there was one
	}
	format := b.Get(formatKey)
	if format == nil || string(format) == strconv.Itoa(stateFormat) {
		return nil
	}
	return fmt.Errorf("%w: its format is %.20q, this one knows %d: run the build that wrote it", errVersion, format, stateFormat)
}
