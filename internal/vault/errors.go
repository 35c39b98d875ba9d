package vault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Class is the kind of a failure, for machines.
type Class string

// The classes.
const (
	Invalid    Class = "invalid_request"
	NoSuchKey  Class = "unknown_key"
	Locked     Class = "vault_unavailable"
	Unusable   Class = "unusable_secret"
	NotBound   Class = "not_bound"
	Refused    Class = "refused_destination"
	Resolving  Class = "name_not_resolved"
	Connecting Class = "connection_failed"
	Untrusted  Class = "tls_failed"
	Timeout    Class = "timeout"
	Cancelled  Class = "cancelled"
	Broken     Class = "connection_broken"
	Protocol   Class = "protocol_error"
	Encoding   Class = "unknown_encoding"
)

// Error is a failure as an agent may read it (V6): its text is made here, of nothing that a server or a library said.
type Error struct {
	Class Class
	Text  string
}

// Error implements error.
func (e *Error) Error() string { return string(e.Class) + ": " + e.Text }

func refuse(c Class, text string) error { return &Error{c, text} }

// ClassOf is the class of an error of this package; empty: it is none of those.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ""
}

// afresh makes an error of what a transport said. The transport's own text is dropped: it may repeat what was sent.
func afresh(ctx context.Context, err error) error {
	var own *Error
	var name *net.DNSError
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var op *net.OpError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(Timeout, "the server did not answer in time")
	case ctx.Err() != nil || errors.Is(err, context.Canceled):
		return refuse(Cancelled, "the call was cancelled")
	case errors.As(err, &own):
		return &Error{own.Class, own.Text}
	case errors.As(err, &name):
		return refuse(Resolving, "the host's name was not resolved")
	case errors.As(err, &unknown):
		return refuse(Untrusted, "the server's certificate is of no authority that is trusted")
	case errors.As(err, &other):
		return refuse(Untrusted, "the server's certificate is for another host")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return refuse(Untrusted, "the server's certificate is not valid at this time")
	case errors.As(err, &invalid), errors.As(err, &verify), errors.As(err, &record), errors.As(err, &alert):
		return refuse(Untrusted, "no trusted TLS connection was possible")
	case errors.Is(err, syscall.ECONNREFUSED):
		return refuse(Connecting, "the server refused the connection")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(Broken, "the server broke the connection off")
	case errors.As(err, &op) && op.Op == "dial":
		return refuse(Connecting, "no connection to the server was possible")
	}
	return refuse(Protocol, "the server's answer could not be read")
}
