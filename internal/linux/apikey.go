package linux

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const maxKey = 8 << 10 // bytes

// ReadKey returns the key in a file, or in an environment variable; both empty: no
// key. A key is one word of printable ASCII; a file must not be open to everybody.
// No error repeats what was read.
func ReadKey(file, env string, getenv func(string) string) (string, error) {
	switch {
	case file != "" && env != "":
		return "", errors.New("read key: a file and an environment variable are named: name one")
	case file != "":
		text, err := ReadSecret(file)
		if err != nil {
			return "", err
		}
		return clean(text, file)
	case env != "":
		return clean(getenv(env), "environment variable "+env)
	}
	return "", nil
}

// ReadSecret returns a file that must not be open to everybody.
func ReadSecret(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would keep the start waiting
	if err != nil {
		return "", fmt.Errorf("read key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("read key: %s is not a file", path)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return "", fmt.Errorf("read key: %s is open to everybody: chmod 600 it, and make a new key if others could read it", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err != nil {
		return "", fmt.Errorf("read key: %w", err)
	}
	if len(data) > maxKey {
		return "", fmt.Errorf("read key: %s has more than %d bytes", path, maxKey)
	}
	return string(data), nil
}

func clean(key, where string) (string, error) {
	key = strings.TrimSpace(key)
	switch {
	case key == "":
		return "", fmt.Errorf("read key: %s is empty", where)
	case len(key) > maxKey:
		return "", fmt.Errorf("read key: %s has more than %d bytes", where, maxKey)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("read key: %s is not one word of ASCII letters", where)
	}
	return key, nil
}
