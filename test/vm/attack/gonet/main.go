// Gonet is a client as Go programs are: its resolver and its HTTP are Go's own.
//
//	gonet get URL [LIMIT]   fetches URL; the connect may take LIMIT
//	gonet resolve NAME      looks NAME up
//
// It trusts the certificates in the file SSL_CERT_FILE.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gonet:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "resolve":
		found, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip4", args[1])
		fmt.Println("found", found)
		return err
	case len(args) == 2 && args[0] == "get":
		return get(args[1], 0)
	case len(args) == 3 && args[0] == "get":
		limit, err := time.ParseDuration(args[2])
		if err != nil {
			return err
		}
		return get(args[1], limit)
	}
	return errors.New("usage: gonet get URL [LIMIT] | gonet resolve NAME")
}

func get(url string, limit time.Duration) error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSHandshakeTimeout = time.Hour // a VM may be slow
	if limit > 0 {
		transport.DialContext = (&net.Dialer{Timeout: limit}).DialContext
	}
	answer, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}
