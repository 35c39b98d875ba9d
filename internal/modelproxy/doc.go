// Package modelproxy is the one way of a guarded container to its model: it takes requests on the host, judges each strictly, and passes on, over TLS, those
// that carry the user's own credential. It knows nothing of the sensor, and writes nothing of a request anywhere.
package modelproxy
