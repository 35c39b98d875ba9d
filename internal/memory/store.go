package memory

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"weir/internal/linux"
	"weir/internal/permission"
)

const (
	suffix = ".md"
	marks  = ".marks.json" // of a store; no key begins with a dot
)

// MaxEntry is how many bytes an entry may have.
const MaxEntry = 1 << 20

// Why nothing is recalled, or added.
var (
	ErrNoStore = errors.New("there is no such store")
	ErrNoEntry = errors.New("the store has no such entry")
	ErrExists  = errors.New("the store has this entry already")
)

// Marks say what recalling a store does to a container (M6).
type Marks struct {
	Secret  bool `json:"secret,omitempty"`  // it holds what must not leave
	Foreign bool `json:"foreign,omitempty"` // somebody else may have written it
}

// StoreInfo is what may be listed of a store.
type StoreInfo struct {
	Store   string `json:"store"`
	Entries int    `json:"entries"`
	Marks
}

// EntryInfo is what may be listed of an entry.
type EntryInfo struct {
	Key     string    `json:"key"`
	Bytes   int64     `json:"bytes"`
	Changed time.Time `json:"changed"`
}

// Memory is a folder of stores. Its methods may be called at the same time.
type Memory struct{ dir string }

// New names a folder; it is made by the first Import.
func New(dir string) *Memory { return &Memory{dir} }

// root opens the folder, out of which no link leads.
func (m *Memory) root() (*os.Root, error) {
	r, err := os.OpenRoot(m.dir)
	if err != nil {
		return nil, fmt.Errorf("open memory: %w", err)
	}
	return r, nil
}

// store opens one store.
func (m *Memory) store(name string) (*os.Root, error) {
	if err := permission.CheckKey(name); err != nil {
		return nil, fmt.Errorf("store %w", err)
	}
	root, err := m.root()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoStore
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	s, err := root.OpenRoot(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoStore
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", name, err)
	}
	return s, nil
}

// Stores lists the stores by name. Folders whose name is no key are left out.
func (m *Memory) Stores() ([]StoreInfo, error) {
	list := []StoreInfo{}
	names, err := os.ReadDir(m.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list stores: %w", err)
	}
	for _, n := range names {
		if !n.IsDir() || permission.CheckKey(n.Name()) != nil {
			continue
		}
		entries, err := m.Entries(n.Name())
		if err != nil {
			return nil, err
		}
		marks, err := m.Marks(n.Name())
		if err != nil {
			return nil, err
		}
		list = append(list, StoreInfo{n.Name(), len(entries), marks})
	}
	return list, nil
}

// Entries lists the entries of a store by key. Files that are none are left out.
func (m *Memory) Entries(store string) ([]EntryInfo, error) {
	s, err := m.store(store)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	files, err := fs.ReadDir(s.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list store %s: %w", store, err)
	}
	list := []EntryInfo{}
	for _, f := range files {
		key, ok := strings.CutSuffix(f.Name(), suffix)
		if !ok || !f.Type().IsRegular() || permission.CheckKey(key) != nil {
			continue
		}
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list store %s: %w", store, err)
		}
		list = append(list, EntryInfo{key, info.Size(), info.ModTime().UTC().Truncate(time.Second)})
	}
	slices.SortFunc(list, func(a, b EntryInfo) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}

// Marks tells the marks of a store. Marks that cannot be read are an error: nothing is recalled then.
func (m *Memory) Marks(store string) (Marks, error) {
	s, err := m.store(store)
	if err != nil {
		return Marks{}, err
	}
	defer s.Close()
	data, err := s.ReadFile(marks)
	if errors.Is(err, fs.ErrNotExist) {
		return Marks{}, nil
	}
	var got Marks
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil {
		return Marks{}, fmt.Errorf("read marks of store %s: %w", store, err)
	}
	return got, nil
}

// Text reads an entry as it is.
func (m *Memory) Text(store, key string) (string, error) {
	text, _, err := m.head(store, key, MaxEntry)
	return text, err
}

// head reads the beginning of an entry; more says that it goes on.
func (m *Memory) head(store, key string, most int) (text string, more bool, err error) {
	if err := permission.CheckKey(key); err != nil {
		return "", false, err
	}
	s, err := m.store(store)
	if err != nil {
		return "", false, err
	}
	defer s.Close()
	info, err := s.Lstat(key + suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, ErrNoEntry
	}
	if err != nil {
		return "", false, fmt.Errorf("read entry %s/%s: %w", store, key, err)
	}
	if !info.Mode().IsRegular() { // a pipe would keep the reader waiting
		return "", false, ErrNoEntry
	}
	f, err := s.Open(key + suffix)
	if err != nil {
		return "", false, fmt.Errorf("read entry %s/%s: %w", store, key, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+utf8.UTFMax))
	if err != nil {
		return "", false, fmt.Errorf("read entry %s/%s: %w", store, key, err)
	}
	text, more = cut(string(data), most)
	return text, more, nil
}

// Add writes an entry; one that is there already stays as it is: ErrExists.
func (m *Memory) Add(store, key, text string) error { return m.put(store, key, text, (*os.Root).Link) }

// Import writes an entry, in place of the one that was there.
func (m *Memory) Import(store, key, text string) error {
	return m.put(store, key, text, (*os.Root).Rename)
}

func (m *Memory) put(store, key, text string, place func(s *os.Root, from, to string) error) error {
	for _, k := range []string{store, key} {
		if err := permission.CheckKey(k); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	}
	switch {
	case len(text) > MaxEntry:
		return fmt.Errorf("import %s/%s: it has more than %d bytes: import it in parts", store, key, MaxEntry)
	case !utf8.ValidString(text):
		return fmt.Errorf("import %s/%s: it is not UTF-8", store, key)
	}
	err := m.write(store, key+suffix, []byte(text), place)
	if errors.Is(err, fs.ErrExist) {
		err = ErrExists
	}
	if err != nil {
		return fmt.Errorf("import %s/%s: %w", store, key, err)
	}
	return nil
}

// Mark sets the marks of a store, which is made if it is not there.
func (m *Memory) Mark(store string, to Marks) error {
	if err := permission.CheckKey(store); err != nil {
		return fmt.Errorf("mark store: %w", err)
	}
	data, err := json.Marshal(to)
	if err == nil {
		err = m.write(store, marks, data, (*os.Root).Rename)
	}
	if err != nil {
		return fmt.Errorf("mark store %s: %w", store, err)
	}
	return nil
}

// write puts a file in its place at once, by renaming or linking it. It is there after a power cut.
func (m *Memory) write(store, name string, data []byte, place func(s *os.Root, from, to string) error) error {
	dir := filepath.Join(m.dir, store)
	if err := linux.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	s, err := m.store(store)
	if err != nil {
		return err
	}
	defer s.Close()
	tmp := "." + rand.Text()
	f, err := s.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = place(s, tmp, name)
	}
	if gone := s.Remove(tmp); !errors.Is(gone, fs.ErrNotExist) { // it was renamed
		err = errors.Join(err, gone)
	}
	if err != nil {
		return err
	}
	return linux.SyncDir(dir)
}

// Remove deletes an entry; without a key, the store with all that is in it.
func (m *Memory) Remove(store, key string) error {
	s, err := m.store(store)
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	defer s.Close()
	if key == "" {
		root, err := m.root()
		if err != nil {
			return err
		}
		defer root.Close()
		names, err := fs.ReadDir(s.FS(), ".")
		if err != nil {
			return fmt.Errorf("remove: %w", err)
		}
		for _, n := range names {
			if n.Name() == marks { // last: who recalls meanwhile is told them
				continue
			}
			if err := s.RemoveAll(n.Name()); err != nil {
				return fmt.Errorf("remove: %w", err)
			}
		}
		return root.RemoveAll(store)
	}
	if err := permission.CheckKey(key); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	if err := s.Remove(key + suffix); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove: %w", ErrNoEntry)
	} else if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	return nil
}
