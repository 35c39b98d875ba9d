package notify

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"
)

// setBody gives a request a body that can be read again for another connection.
func setBody(r *http.Request, body []byte) {
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody() // never fails
}

// retryAfter is what the receiver asks for, in bounds.
func retryAfter(r *http.Response) time.Duration {
	n, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, 5*time.Minute)
}
