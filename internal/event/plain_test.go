package event_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	osexec "os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"weir/internal/event"
)

// TestF44Plain: what the system, a parser or the library says is told in plain words, wherever it is wrapped.
func TestF44Plain(t *testing.T) {
	_, notThere := os.Open("/no/such")
	_, directory := os.ReadFile("/")
	_, number := strconv.Atoi("x1")
	_, program := osexec.LookPath("no-such-program")
	_, refused := net.Dial("unix", "/no/such")
	decode := func(text string, into any) error { return json.Unmarshal([]byte(text), into) }
	var fields struct {
		Name string `json:"name"`
		List []int  `json:"list"`
		Own  struct {
			On bool `json:"on"`
		} `json:"own"`
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("as it is"), "as it is"},
		{notThere, "/no/such: it does not exist: check the path"},
		{fmt.Errorf("open event log: %w", notThere), "open event log: /no/such: it does not exist: check the path"},
		{errors.Join(errors.New("one"), fmt.Errorf("two: %w", directory)), "one\ntwo: /: it is a directory: name a file"},
		{fmt.Errorf("a %w b %w", syscall.ENOSPC, syscall.EROFS), "a no space is left: make room on that disk b its file system is read-only: choose another place"},
		{&os.LinkError{Op: "rename", Old: "a", New: "b", Err: syscall.EEXIST}, "b: it is there already: remove it, or choose another name"},
		{os.NewSyscallError("open", syscall.ENOTDIR), "a part of the path is no directory: check it"},
		{number, `"x1" is not a number that is accepted`},
		{program, "no-such-program: no such program: check the name and PATH"},
		{refused, "/no/such: it does not exist: check the path"},
		{&url.Error{Op: "Get", URL: "http://secret@x/", Err: refused}, "/no/such: it does not exist: check the path"},
		{decode("nonsense", &fields), "not JSON from byte 2 on"},
		{decode("{", &fields), "not JSON from byte 1 on"},
		{decode(`{"name":1}`, &fields), "name is a JSON number: wanted is a text"},
		{decode(`{"list":{}}`, &fields), "list is a JSON object: wanted is a list"},
		{decode(`{"own":{"on":"x"}}`, &fields), "own.on is a JSON string: wanted is true or false"},
		{decode(`[]`, &fields), "it is a JSON array: wanted is an object"},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), "read: it ends in the middle"},
		{syscall.Errno(9999), "errno 9999"},
	} {
		if got := event.Plain(c.err); got != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.err, got, c.want)
		}
	}
	raw := regexp.MustCompile(`^(open|read|dial|json|strconv|exec|lookup)\b|no such file`)
	for _, err := range []error{notThere, directory, number, program, refused} {
		if !raw.MatchString(err.Error()) {
			t.Errorf("%v is plain already: the test tries nothing", err)
		}
	}
}
