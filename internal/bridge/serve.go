package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"weir/internal/bridge/wire"
)

// Limits on what a container may take.
const (
	maxEntries      = 4096     // entries of a folder that are looked at
	maxFolderFlight = 16       // requests of one folder that wait for their answers
	maxAnswers      = 256      // answers in a folder that nobody has taken: then no request is
	maxFolderShort  = 16 << 10 // bytes of a request that needs no room of its own
	maxFolderOwn    = 4        // longer requests of one folder at once: what the host keeps of it while people are asked
	maxFolderLong   = 16       // of all folders, until people are asked
)

const (
	keepAnswer  = time.Minute // an answer, or a file that is not whole, that nobody takes
	keepRequest = time.Hour + time.Minute
	idleShare   = 9 // of the time that one look takes, before the next: what fills its folder costs the host a tenth of a processor
)

const (
	textForm       = "Denied: the request is not a plain file of the folder's owner, or it has a second name. Write it as a new file, then rename it to ID.request."
	folderTextLong = "Denied: the request is longer than 2 MiB. Write long content to a file in smaller steps, and run a short command."
	textRead       = "Denied: the request could not be read. Write it as a new file, then rename it to ID.request."
	folderTextID   = "Denied: request_id is not the name of the request's file, so the command could not be checked."
)

// Answer decides on one request of a container.
type Answer func(ctx context.Context, container string, request []byte) wire.Answer

// judged is the key of what a context calls before somebody is asked: it gives back the room that all share.
type judged struct{}

// box is a folder that is served.
type box struct {
	*Folder
	container string
	answer    Answer
	logger    logrus.FieldLogger
	long      []chan struct{} // its own and, last, what all share: taken by each long request
	alone     func() bool     // nobody else has this folder

	waiting []string // ids that were found and have not begun

	mu      sync.Mutex
	left    map[string]bool // ids of answers that lie there, as far as is known
	flight  map[string]context.CancelFunc
	running sync.WaitGroup
}

// serve answers until ctx ends. changed says that something may be there.
func (b *box) serve(ctx context.Context, changed <-chan struct{}) {
	b.flight, b.left = map[string]context.CancelFunc{}, map[string]bool{}
	tick := time.NewTicker(wire.AliveEvery)
	defer tick.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer b.running.Wait()
	defer cancel()
	again := make(chan struct{}, 1) // a request is done: another may have waited for its place
	done := func() {
		select {
		case again <- struct{}{}:
		default:
		}
	}
	b.greet()
	dirty, all, pause := true, true, (<-chan time.Time)(nil)
	for {
		if dirty && pause == nil {
			start := time.Now()
			if all || len(b.waiting) == 0 {
				b.scan()
			} else {
				b.count() // there is enough to do: only whether there is room for it
			}
			dirty, all, pause = false, false, time.After(idleShare*time.Since(start))
		}
		b.take(ctx, done)
		select {
		case <-ctx.Done():
			return
		case <-pause:
			pause = nil
		case <-changed:
			dirty = true
		case <-again:
			dirty = dirty || len(b.waiting) == 0
		case <-tick.C:
			b.greet()
			b.tidy()
			dirty, all = true, true
		}
	}
}

// sleep says whether d is over before ctx.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// greet tells clients that somebody answers here.
func (b *box) greet() {
	if !b.alone() {
		return
	}
	if err := b.put(wire.Alive, nil); err != nil {
		b.logger.WithError(err).Debug("mark a folder as answered")
	}
}

// scan finds requests, and gives up those that were withdrawn.
func (b *box) scan() {
	b.mu.Lock() // first: what ends meanwhile is counted after this
	defer b.mu.Unlock()
	names, all, err := b.names(maxEntries)
	if err != nil {
		b.logger.WithError(err).Debug("look into a folder")
		return
	}
	here := map[string]bool{}
	b.waiting = b.waiting[:0]
	b.forget()
	for _, name := range names {
		if id := wire.FolderID(name, wire.AnswerSuffix); id != "" {
			b.left[id] = true
		}
		if id := wire.FolderID(name, wire.RequestSuffix); id != "" {
			here[id] = true
			if b.flight[id] == nil {
				b.waiting = append(b.waiting, id)
			}
		}
	}
	for id, cancel := range b.flight {
		if all && !here[id] {
			cancel()
		}
	}
}

// count looks which answers were taken.
func (b *box) count() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
}

// forget forgets answers that were taken. A list of names may lack those that are there.
func (b *box) forget() {
	for id := range b.left {
		if b.changed(id+wire.AnswerSuffix) == 0 {
			delete(b.left, id)
		}
	}
}

// take begins with requests, as far as there is room.
func (b *box) take(ctx context.Context, done func()) {
	if !b.alone() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.waiting) > 0 && len(b.flight) < maxFolderFlight && len(b.left)+len(b.flight) < maxAnswers {
		id := b.waiting[0]
		if b.waiting = b.waiting[1:]; b.flight[id] != nil {
			continue
		}
		asking, cancel := context.WithCancel(ctx)
		b.flight[id] = cancel
		b.running.Go(func() {
			b.decide(asking, id)
			cancel()
			b.mu.Lock()
			b.left[id] = true
			delete(b.flight, id)
			b.mu.Unlock()
			done()
		})
	}
}

// decide answers one request, and then removes it: a sensor that starts anew finds it otherwise.
func (b *box) decide(ctx context.Context, id string) {
	name := id + wire.RequestSuffix
	a, err := b.read(ctx, id)
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, errDirectory) || ctx.Err() != nil:
		return
	case errors.Is(err, errForm):
		a = folderDeny(textForm)
	case errors.Is(err, errFolderLong):
		a = folderDeny(folderTextLong)
	case err != nil:
		a = folderDeny(textRead)
	}
	a.RequestID = id
	data, err := json.Marshal(a)
	if err == nil && b.alone() {
		err = b.put(id+wire.AnswerSuffix, data)
	}
	if err := errors.Join(err, b.remove(name)); err != nil {
		b.logger.WithError(err).Debug("answer in a folder")
	}
}

func folderDeny(reason string) wire.Answer { return wire.Answer{Decision: wire.Deny, Reason: reason} }

// read reads a request and has it decided.
func (b *box) read(ctx context.Context, id string) (wire.Answer, error) {
	file, size, err := b.look(id + wire.RequestSuffix)
	if err != nil {
		return wire.Answer{}, err
	}
	defer file.Close()
	if size > maxFolderShort {
		for _, room := range b.long {
			select {
			case room <- struct{}{}:
				free := sync.OnceFunc(func() { <-room })
				defer free()
				ctx = context.WithValue(ctx, judged{}, free) // what all share, in the end
			case <-ctx.Done():
				return wire.Answer{}, ctx.Err()
			}
		}
	}
	data, err := read(file, max(size, maxFolderShort))
	if err != nil {
		return wire.Answer{}, err
	}
	var r struct {
		RequestID string `json:"request_id"`
	}
	if json.Unmarshal(data, &r) == nil && r.RequestID != "" && r.RequestID != id {
		return folderDeny(folderTextID), nil
	}
	return b.answer(ctx, b.container, data), nil
}

// tidy removes what nobody took.
func (b *box) tidy() {
	names, _, err := b.names(maxEntries)
	if err != nil {
		return
	}
	now := time.Now()
	for _, name := range names {
		keep := time.Duration(0)
		switch {
		case wire.FolderID(name, wire.AnswerSuffix) != "" || strings.HasPrefix(name, wire.TempPrefix):
			keep = keepAnswer
		case wire.FolderID(name, wire.RequestSuffix) != "":
			keep = keepRequest
		default:
			continue // the user's own
		}
		if at := b.changed(name); at == 0 || now.Sub(time.Unix(at, 0)) < keep {
			continue
		}
		if err := b.remove(name); err != nil {
			b.logger.WithError(err).Debug("tidy a folder")
		}
	}
}
