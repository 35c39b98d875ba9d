package model

import (
	"fmt"
	"net/netip"
	"net/url"
)

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
