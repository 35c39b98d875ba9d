package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/event"
)

// maxFiles bounds how many files of the log are handed over: the kernel takes no more than 253 at once.
const maxFiles = 200

// handed is the answer to log. The files come with it, oldest first.
type handed struct {
	Files int `json:"files"`
	Left  int `json:"left,omitempty"` // older ones that are not handed over
}

// handLog hands over the log's open files: who may read every event of it reads and searches it in a process of their own.
func handLog(w http.ResponseWriter, r *http.Request, b Backend) {
	var q nothing
	if err := decode(w, r, &q); err != nil {
		reply(w, nil, err)
		return
	}
	log, err := b.Log(r.Context())
	if err != nil {
		reply(w, nil, err)
		return
	}
	defer log.Close()
	files := log.Files()
	left := max(len(files)-maxFiles, 0)
	var fds []int
	for _, file := range files[left:] {
		if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
			reply(w, nil, errors.New("hand over event log: it is no regular file"))
			return
		}
		fds = append(fds, int(file.Fd()))
	}
	body, err := json.Marshal(handed{len(fds), left})
	if err != nil {
		reply(w, nil, err)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		reply(w, nil, err)
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(answerTime)) // of a connection that is there: it cannot fail
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", len(body))
	conn.(*net.UnixConn).WriteMsgUnix(append([]byte(head), body...), unix.UnixRights(fds...), nil) // a client that has gone needs none
}

// Log calls Backend.Log. The files are open for reading only.
func (c *Client) Log(ctx context.Context) (*event.Stored, error) {
	limited, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	conn, err := c.dial(limited)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(limited, func() { conn.Close() })()
	files, err := takeLog(conn.(*net.UnixConn))
	if err != nil {
		event.NewStored(files).Close()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case limited.Err() != nil:
			return nil, errSilent
		}
		return nil, err
	}
	return event.NewStored(files), nil
}

func takeLog(conn *net.UnixConn) (files []*os.File, err error) {
	r, err := http.NewRequest(http.MethodPost, "http://weir/log", strings.NewReader("{}"))
	if err == nil {
		err = r.Write(conn)
	}
	if err != nil {
		return nil, fmt.Errorf("ask the sensor: %w", err)
	}
	data, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(maxFiles*4))
	n, have, _, _, err := conn.ReadMsgUnix(data, rights) // the files come with the first byte
	if err != nil {
		return nil, unread(err)
	}
	if files, err = received(rights[:have]); err != nil {
		return files, unread(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(data[:n]), conn)), r)
	if err != nil {
		return files, unread(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return files, failed(answer)
	}
	var h handed
	if err := json.NewDecoder(answer.Body).Decode(&h); err != nil {
		return files, unread(err)
	}
	if h.Files != len(files) {
		return files, fmt.Errorf("ask the sensor: %d of %d files of its event log have come: raise the limit of open files", len(files), h.Files)
	}
	return files, nil
}

// received are the files that came with a message, also where that is cut.
func received(rights []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), fmt.Sprintf("event log %d", len(files)+1)))
		}
	}
	return files, err
}
