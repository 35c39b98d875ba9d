package event

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// errnos are the numbers that operators meet, in words, with what to do.
var errnos = map[unix.Errno]string{
	unix.ENOENT:       "it does not exist: check the path",
	unix.ENOTDIR:      "a part of the path is no directory: check it",
	unix.EISDIR:       "it is a directory: name a file",
	unix.EEXIST:       "it is there already: remove it, or choose another name",
	unix.EACCES:       "not permitted: run it as root, with sudo",
	unix.EPERM:        "not permitted: run it as root, with sudo",
	unix.EROFS:        "its file system is read-only: choose another place",
	unix.ENOSPC:       "no space is left: make room on that disk",
	unix.EDQUOT:       "no space is left in the quota: make room",
	unix.EFBIG:        "the file became too large: raise the limit, or make it smaller",
	unix.EIO:          "the disk cannot be read or written: look at the kernel's log",
	unix.ENAMETOOLONG: "the name is too long: choose a shorter one",
	unix.ELOOP:        "its symbolic links lead in a circle, or are not followed here: name the file itself",
	unix.EMFILE:       "too many files are open: raise the limit",
	unix.ENFILE:       "too many files are open on this machine: raise the limit",
	unix.ENOMEM:       "memory is short: free some",
	unix.EPIPE:        "nobody reads that any more",
	unix.ECONNREFUSED: "nobody listens there: check the address, and that the server runs",
	unix.ECONNRESET:   "the other side closed the connection: try again",
	unix.ETIMEDOUT:    "no answer came: check the address",
	unix.EHOSTUNREACH: "there is no way to that address: check it",
	unix.ENETUNREACH:  "there is no way to that network: check the address",
	unix.EADDRINUSE:   "the address is taken: stop what listens there, or choose another",
	unix.ETXTBSY:      "the program runs: stop it first",
	unix.EINVAL:       "the system does not accept it",
	unix.EBUSY:        "it is in use: try again",
	unix.ENXIO:        "it is a socket, or a device that is not there: name a file",
	unix.ENODEV:       "there is no such device: check the path",
	unix.ENOEXEC:      "it is no program that this machine can run: check the file",
	unix.E2BIG:        "the arguments are too long: give fewer",
	unix.EAGAIN:       "the system has no room for it now: try again",
	unix.ENOTEMPTY:    "the directory is not empty: empty it, or name another",
	unix.EXDEV:        "it is on another file system: choose a place on the same one",
	unix.ENOTSUP:      "its file system does not support that: choose another place",
	unix.ENOTCONN:     "nobody is connected to it: try again",
	unix.ESTALE:       "its file system has forgotten it: mount it anew",
	unix.EPROTO:       "the other side does not speak this protocol: check the address",
}

// Plain is the text of err as people are told it: what the system, a parser or Go's library says in words of its own is said in plain ones.
func Plain(err error) string {
	if err == nil {
		return ""
	}
	switch e := err.(type) {
	case *fs.PathError:
		if e.Path == "" {
			return `"": ` + Plain(e.Err)
		}
		return Visible(e.Path) + ": " + Plain(e.Err)
	case *os.LinkError:
		return e.New + ": " + Plain(e.Err)
	case *os.SyscallError:
		return Plain(e.Err)
	case unix.Errno:
		words, ok := errnos[e]
		switch {
		case !ok:
			return e.Error()
		case os.Geteuid() == 0 && (e == unix.EACCES || e == unix.EPERM):
			return "not permitted, though you are root: look at its mode, its owner and its file system"
		}
		return words
	case *net.OpError:
		if e.Addr == nil {
			return Plain(e.Err)
		}
		return e.Addr.String() + ": " + Plain(e.Err)
	case *net.DNSError:
		return "the name " + strconv.Quote(e.Name) + " leads to no address: check it"
	case *url.Error:
		return Plain(e.Err)
	case *exec.Error:
		if errors.Is(e.Err, exec.ErrNotFound) {
			return e.Name + ": no such program: check the name and PATH"
		}
		return e.Name + ": " + Plain(e.Err)
	case *strconv.NumError:
		return strconv.Quote(e.Num) + " is not a number that is accepted"
	case *json.SyntaxError:
		return fmt.Sprintf("not JSON from byte %d on", max(e.Offset, 1))
	case *json.UnmarshalTypeError:
		return fmt.Sprintf("%s is a JSON %s: wanted is %s", cmp.Or(e.Field, "it"), e.Value, jsonKind(e.Type))
	}
	if err == io.ErrUnexpectedEOF {
		return "it ends in the middle"
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	for _, inner := range unwrap(err) {
		if inner != nil {
			text = strings.Replace(text, inner.Error(), Plain(inner), 1)
		}
	}
	return text
}

// jsonKind is what JSON calls a value for t.
func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Pointer:
		return jsonKind(t.Elem())
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

func unwrap(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}
