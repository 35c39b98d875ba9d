package vault

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"

	"filippo.io/age"
	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

// The names of systemd's credentials that open a vault.
const (
	CredentialKey        = "weir-vault-key"
	CredentialPassphrase = "weir-vault-passphrase"
)

// Keys open and close a vault.
type Keys struct {
	identity  age.Identity
	recipient age.Recipient
}

// workFactor makes a passphrase take about a second to try.
const workFactor = 18

// FromPassphrase makes keys of a passphrase.
func FromPassphrase(passphrase []byte) (Keys, error) { return fromPassphrase(passphrase, workFactor) }

func fromPassphrase(passphrase []byte, work int) (Keys, error) {
	if len(passphrase) < 8 {
		return Keys{}, errors.New("open vault: the passphrase has less than 8 characters")
	}
	id, err := age.NewScryptIdentity(string(passphrase))
	if err != nil {
		return Keys{}, fmt.Errorf("open vault: %w", err)
	}
	rcpt, err := age.NewScryptRecipient(string(passphrase))
	if err != nil {
		return Keys{}, fmt.Errorf("open vault: %w", err)
	}
	rcpt.SetWorkFactor(work)
	o := &once{inner: id}
	return Keys{o, &closer{rcpt, o}}, nil
}

// FromFile reads an age key, as age-keygen writes it.
func FromFile(path string) (Keys, error) {
	data, err := readPrivate(path)
	if err != nil {
		return Keys{}, fmt.Errorf("open vault: read its key: %w", err)
	}
	defer clear(data)
	ids, err := age.ParseIdentities(bytes.NewReader(data))
	if err != nil || len(ids) != 1 {
		return Keys{}, fmt.Errorf("open vault: %s is not one age key: make one with weir vault set, or with age-keygen", path)
	}
	switch id := ids[0].(type) {
	case *age.X25519Identity:
		return Keys{id, id.Recipient()}, nil
	case *age.HybridIdentity:
		return Keys{id, id.Recipient()}, nil
	}
	return Keys{}, fmt.Errorf("open vault: %s is a kind of key that is not known", path)
}

// MakeFile writes a new key, which only its owner may read. A file that is there stays.
func MakeFile(path string) error {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return fmt.Errorf("make vault key: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("make vault key: %w", err)
	}
	_, err = fmt.Fprintf(f, "# opens the vault of weir: who has it has all secrets\n%s\n", id)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("make vault key: %w", err), os.Remove(path))
	}
	return linux.SyncDir(filepath.Dir(path))
}

// FromCredentials takes the credential that systemd handed over, if there is one in its directory.
func FromCredentials(dir string) (k Keys, found bool, err error) {
	if dir == "" {
		return Keys{}, false, nil
	}
	key := filepath.Join(dir, CredentialKey)
	if _, err := os.Stat(key); err == nil {
		k, err := FromFile(key)
		return k, true, err
	}
	data, err := readPrivate(filepath.Join(dir, CredentialPassphrase))
	if errors.Is(err, fs.ErrNotExist) {
		return Keys{}, false, nil
	}
	if err != nil {
		return Keys{}, true, fmt.Errorf("open vault: read its passphrase: %w", err)
	}
	defer clear(data)
	k, err = FromPassphrase(bytes.TrimRight(data, "\r\n"))
	return k, true, err
}

func readPrivate(path string) ([]byte, error) {
	const most = 64 << 10
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Mode().Perm()&0o037 != 0: // systemd lets a service's group read
		return nil, fmt.Errorf("%s is open to others than its owner: run chmod 600 on it, and make a new one if others could read it", path)
	}
	data := make([]byte, most)
	n, err := io.ReadFull(f, data)
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		clear(data)
		return nil, fmt.Errorf("%s cannot be read, or is too long", path)
	}
	return data[:n], nil
}

// once remembers what a passphrase opened: trying it takes a second and a quarter of a GiB.
type once struct {
	inner age.Identity

	mu   sync.Mutex
	head [sha256.Size]byte
	key  []byte
}

// Unwrap implements age.Identity.
func (o *once) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if head := headOf(stanzas); o.key != nil && head == o.head {
		return slices.Clone(o.key), nil
	}
	defer debug.FreeOSMemory() // else the next one takes its quarter beside this one's
	key, err := o.inner.Unwrap(stanzas)
	if err != nil {
		return nil, err
	}
	o.keep(stanzas, key)
	return key, nil
}

func (o *once) keep(stanzas []*age.Stanza, key []byte) {
	clear(o.key)
	o.head, o.key = headOf(stanzas), slices.Clone(key)
}

func headOf(stanzas []*age.Stanza) (head [sha256.Size]byte) {
	h := sha256.New()
	for _, s := range stanzas {
		fmt.Fprintf(h, "%q %q %d\n", s.Type, s.Args, len(s.Body))
		h.Write(s.Body)
	}
	h.Sum(head[:0])
	return head
}

// closer closes a vault with a passphrase, and has what it closed opened again without trying.
type closer struct {
	*age.ScryptRecipient
	opens *once
}

// WrapWithLabels implements age.RecipientWithLabels.
func (c *closer) WrapWithLabels(key []byte) ([]*age.Stanza, []string, error) {
	c.opens.mu.Lock()
	defer c.opens.mu.Unlock()
	defer debug.FreeOSMemory()
	stanzas, labels, err := c.ScryptRecipient.WrapWithLabels(key)
	if err == nil {
		c.opens.keep(stanzas, key)
	}
	return stanzas, labels, err
}
