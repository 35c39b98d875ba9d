package vault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"filippo.io/age"
	"golang.org/x/sys/unix"

	"weir/internal/permission"
	"weir/internal/redact"
)

const (
	format  = 1        // of what is encrypted
	maxFile = 16 << 20 // bytes
	maxKeys = 1000
	maxUser = 128
)

// Why a vault does not do what it is asked to.
var (
	ErrLocked  = errors.New("it does not open with this key or passphrase")
	ErrDamaged = errors.New("it is damaged")
	ErrNoKey   = errors.New("the vault has no such key: see weir vault list")
	ErrExists  = errors.New("the vault has this key already: use weir vault rotate to replace its secret")
)

// Info is what may be shown of a secret.
type Info struct {
	Key     string    `json:"key"`
	User    string    `json:"user,omitempty"` // of basic authorization; empty: it stands in the secret, before a colon
	Binding Binding   `json:"binding"`
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"` // the secret itself
}

type content struct {
	Version int              `json:"version"`
	Entries map[string]entry `json:"entries"`
}

type entry struct {
	Info
	Secret []byte `json:"secret"`
}

func (c *content) wipe() {
	for _, e := range c.Entries {
		clear(e.Secret)
	}
}

// Vault is one file. Its methods may be called at the same time, also by several processes.
type Vault struct {
	path string
	keys Keys
	now  func() time.Time
}

// New names a vault; the file is read with each use, and made by the first Set.
func New(path string, k Keys) *Vault { return &Vault{path, k, time.Now} }

// List gives all keys in order, without their secrets.
func (v *Vault) List() ([]Info, error) {
	c, err := v.read()
	if err != nil {
		return nil, err
	}
	defer c.wipe()
	list := []Info{}
	for _, key := range slices.Sorted(maps.Keys(c.Entries)) {
		list = append(list, c.Entries[key].Info)
	}
	return list, nil
}

// Set adds a secret. The caller wipes it.
func (v *Vault) Set(key, user string, secret []byte, b Binding) error {
	if err := permission.CheckKey(key); err != nil {
		return fmt.Errorf("set secret: %w", err)
	}
	if err := checkSecret(secret, user); err != nil {
		return fmt.Errorf("set secret: %w", err)
	}
	b, err := b.clean()
	if err != nil {
		return fmt.Errorf("set secret: %w", err)
	}
	return v.change("set secret", func(c *content) error {
		if _, there := c.Entries[key]; there {
			return ErrExists
		}
		if len(c.Entries) >= maxKeys {
			return fmt.Errorf("the vault has %d keys: that is the most", maxKeys)
		}
		now := v.now().UTC().Truncate(time.Second)
		c.Entries[key] = entry{Info{key, user, b, now, now}, bytes.Clone(secret)}
		return nil
	})
}

func checkSecret(secret []byte, user string) error {
	if len(user) > maxUser || bytes.ContainsFunc([]byte(user), func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) {
		return errors.New("the user's name is not a word of ASCII letters without a colon")
	}
	if len(bytes.Trim(secret, " \t\r\n")) != len(secret) {
		return errors.New("the secret begins or ends with white space, which headers lose on their way: give it without")
	}
	return redact.Check(secret)
}

// Rotate replaces a secret.
func (v *Vault) Rotate(key string, secret []byte) error {
	return v.edit("rotate secret", key, func(e *entry) error {
		if err := checkSecret(secret, e.User); err != nil {
			return err
		}
		clear(e.Secret)
		e.Secret, e.Changed = bytes.Clone(secret), v.now().UTC().Truncate(time.Second)
		return nil
	})
}

// Bind says where a secret may go (V7).
func (v *Vault) Bind(key string, b Binding) error {
	b, err := b.clean()
	if err != nil {
		return fmt.Errorf("bind secret: %w", err)
	}
	return v.edit("bind secret", key, func(e *entry) error {
		e.Binding = b
		return nil
	})
}

// BindFirst binds a secret that is bound to no host yet to one (V7). One that is bound stays as it is.
func (v *Vault) BindFirst(key, host string) error {
	return v.edit("bind secret", key, func(e *entry) error {
		if len(e.Binding.Hosts) > 0 {
			return nil
		}
		b := e.Binding
		b.Hosts = []string{host}
		b, err := b.clean()
		e.Binding = b
		return err
	})
}

// Remove deletes a secret. The generation before still has it.
func (v *Vault) Remove(key string) error {
	return v.change("remove secret", func(c *content) error {
		e, there := c.Entries[key]
		if !there {
			return ErrNoKey
		}
		clear(e.Secret)
		delete(c.Entries, key)
		return nil
	})
}

func (v *Vault) edit(doing, key string, f func(*entry) error) error {
	return v.change(doing, func(c *content) error {
		e, there := c.Entries[key]
		if !there {
			return ErrNoKey
		}
		if err := f(&e); err != nil {
			return err
		}
		c.Entries[key] = e
		return nil
	})
}

// entry reads one secret. The caller clears it.
func (v *Vault) entry(key string) (entry, error) {
	c, err := v.read()
	if err != nil {
		return entry{}, err
	}
	defer c.wipe()
	e, there := c.Entries[key]
	if !there {
		return entry{}, ErrNoKey
	}
	e.Secret = bytes.Clone(e.Secret)
	return e, nil
}

// Lend hands out a secret for a program of the host that sends it to one host only; the binding must be to that host, and say nothing that the program does not know
// of. The caller wipes the secret. ca is the binding's, or empty.
func (v *Vault) Lend(key, host string) (secret []byte, ca string, err error) {
	e, err := v.entry(key)
	if err != nil {
		return nil, "", fmt.Errorf("take secret: %w", err)
	}
	b := e.Binding
	switch {
	case !slices.Contains(b.Hosts, host):
		err = fmt.Errorf("take secret: the key %s is not bound to %s: say so with weir vault bind", key, host)
	case len(b.Methods)+len(b.Paths) > 0 || e.User+b.Scheme != "":
		err = fmt.Errorf("take secret: the key %s is for some methods or paths only, one scheme, or a user's name: make one for the whole host", key)
	}
	if err != nil {
		clear(e.Secret)
		return nil, "", err
	}
	return e.Secret, b.CA, nil
}

// read decrypts the file; one that is not there is empty.
func (v *Vault) read() (content, error) {
	c := content{Version: format, Entries: map[string]entry{}}
	f, err := os.OpenFile(v.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return content{}, fmt.Errorf("open vault: %w", err)
	}
	defer f.Close()
	if err := private(f); err != nil {
		return content{}, fmt.Errorf("open vault: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return content{}, fmt.Errorf("read vault: %w", err)
	}
	c, err = v.decrypt(data)
	if errors.Is(err, ErrDamaged) {
		return content{}, fmt.Errorf("read vault %s: %w; it stays as it is: look at it, and copy %s over it if that is what you want", v.path, err, v.backup())
	}
	if err != nil {
		return content{}, fmt.Errorf("read vault %s: %w", v.path, err)
	}
	return c, nil
}

func (v *Vault) decrypt(data []byte) (content, error) {
	damaged := func(why string) (content, error) { return content{}, fmt.Errorf("%w: %s", ErrDamaged, why) }
	if len(data) == 0 {
		return damaged("it is empty")
	}
	if len(data) > maxFile {
		return damaged("it is too long")
	}
	r, err := age.Decrypt(bytes.NewReader(data), v.keys.identity)
	if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return content{}, ErrLocked
	}
	if err != nil {
		return damaged("it is no age file, or its head was changed")
	}
	plain := make([]byte, len(data))
	defer clear(plain)
	n, err := io.ReadFull(r, plain)
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("it was changed or cut")
	}
	var c content
	if err := json.Unmarshal(plain[:n], &c); err != nil {
		return damaged("what it holds is no vault")
	}
	if c.Version != format {
		c.wipe()
		return content{}, fmt.Errorf("it has version %d, this program knows %d: use a newer weir", c.Version, format)
	}
	if c.Entries == nil {
		c.Entries = map[string]entry{}
	}
	return c, nil
}

func (v *Vault) encrypt(c content) ([]byte, error) {
	plain, err := json.Marshal(c)
	if err != nil {
		return nil, errors.New("encode vault")
	}
	defer clear(plain)
	var out bytes.Buffer
	w, err := age.Encrypt(&out, v.keys.recipient)
	if err != nil {
		return nil, fmt.Errorf("encrypt vault: %w", err)
	}
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("encrypt vault: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encrypt vault: %w", err)
	}
	return out.Bytes(), nil
}

// private refuses what others than the owner may read.
func private(f *os.File) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", f.Name())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others than its owner: run chmod 600 on it, and rotate what it holds if others could read it", f.Name())
	}
	return nil
}
