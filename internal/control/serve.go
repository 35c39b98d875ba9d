package control

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// ServeHTTP answers HTTP until ctx ends; requests that are being answered then have another second. It bounds how long a request may
// take and how large its head is. idle is how long a connection may wait for its next request; 0: it has only one. The listener
// is closed in any case; the error is nil when ctx has ended.
func ServeHTTP(ctx context.Context, l net.Listener, h http.Handler, idle time.Duration) error {
	return serveHTTP(ctx, newHTTPServer(h, idle), l)
}

func newHTTPServer(h http.Handler, idle time.Duration) *http.Server {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       idle,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // strangers must not write the sensor's log
	}
	server.SetKeepAlivesEnabled(idle > 0)
	return server
}

func serveHTTP(ctx context.Context, server *http.Server, l net.Listener) error {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		end, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(end) != nil {
			server.Close()
		}
	})
	defer stop()
	err := server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		<-ended // nobody is answered any more
		return nil
	}
	return err
}
