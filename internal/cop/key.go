package cop

import (
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// readKey reads the key of a service from a file or an environment variable; both empty: no key.
func readKey(file, env string, getenv func(string) string) (string, error) {
	switch {
	case file != "" && env != "":
		return "", fmt.Errorf("read key: a file and an environment variable are named: name one")
	case file != "":
		return keyFile(file)
	case env != "":
		return cleanKey(getenv(env), "environment variable "+env)
	}
	return "", nil
}

const maxKey = 8 << 10

func keyFile(path string) (string, error) {
	f, err := os.Open(path)
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
	return cleanKey(string(data), path)
}

// cleanKey never repeats what it was given.
func cleanKey(key, where string) (string, error) {
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

// checkURL refuses a base URL with which a key could leak.
func checkURL(base string, key bool) error {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("read base URL: not an http or https URL")
	case u.User != nil:
		return fmt.Errorf("read base URL: it holds a user: put the key in a file")
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("read base URL: it has a query or a fragment")
	case u.Scheme == "http" && key && !loopback(u.Hostname()):
		return fmt.Errorf("read base URL: a key would go to %s in the clear: use https", u.Hostname())
	}
	return nil
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || host == "localhost"
}
