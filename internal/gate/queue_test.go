package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"weir/internal/event"
)

// silent stands for a log that takes everything.
type silent struct{}

func (silent) Write(event.Event) error { return nil }

// queueBubble runs f with a queue on a real database, inside a bubble whose time stands
// still while anything runs.
func queueBubble(t *testing.T, f func(t *testing.T, d *queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db, err := bbolt.Open(filepath.Join(t.TempDir(), "weir.db"), 0o600, &bbolt.Options{NoSync: true, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		g, err := Open(Options{DB: db, Log: silent{}, Approver: true})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		f(t, g.queue)
	})
}

// queueCurl is a held connect of a tainted container.
func queueCurl(change ...func(*Request)) Request {
	r := Request{
		Container: event.Container{ID: "c1", Name: "agent", Taint: []string{"corruption"}},
		Process: event.Process{
			PID: 100, Start: 5000, UID: 1000, Comm: "curl",
			Exe:  &event.File{Path: "/usr/bin/curl", Device: 8, Inode: 42},
			Argv: []string{"curl", "https://example.org"}, ArgvHash: 7,
		},
		Destination: event.Destination{Address: "203.0.113.9", Port: 443, Protocol: "tcp"},
		Held:        true,
		Mode:        "enforce",
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

func checked(t *testing.T, r Request) CheckedRequest {
	t.Helper()
	a, err := CheckRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// An approval that meets the end of its asker is open to a claim.
func TestAnswerAndCancelTogether(t *testing.T) {
	for range 40 { // which of the two Ask sees first is chance
		queueBubble(t, func(t *testing.T, d *queue) {
			w, _ := d.enter(checked(t, queueCurl()))
			if _, err := d.Answer(d.Pending()[0].ID, Reply{Allow: true, By: "alice"}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if v := d.await(ctx, w); v.Decision != Deny || v.Reason != Cancelled {
				t.Fatalf("verdict: %+v", v)
			}
			again := queueCurl(func(r *Request) { r.Process.PID, r.Process.Start = 101, 6000 })
			if v := d.ask(context.Background(), checked(t, again)); v.Decision != Allow || v.Reason != Approved {
				t.Errorf("claimed: %+v", v)
			}
		})
	}
}

// F05: the event of a call that is not held does not say that it waits.
func TestAnnouncementSaysWhetherItWaits(t *testing.T) {
	q := &question{}
	if text := q.holdText(checked(t, queueCurl())); !strings.HasPrefix(text, "waits for an answer") {
		t.Errorf("held: %s", text)
	}
	if text := q.holdText(checked(t, queueCurl(func(r *Request) { r.Held = false }))); !strings.HasPrefix(text, "was refused") {
		t.Errorf("not held: %s", text)
	}
}

// What people answered is bounded too.
func TestPruneAnswered(t *testing.T) {
	queueBubble(t, func(t *testing.T, d *queue) {
		now := time.Now()
		for i := range maxAnswered + 2*pruneAtLeast {
			d.ended = append(d.ended, ended{fmt.Sprint(i), now, true})
		}
		d.prune(now, pruneAtLeast)
		if len(d.ended) != maxAnswered || d.ended[0].id != fmt.Sprint(2*pruneAtLeast) {
			t.Errorf("%d are left, from %v", len(d.ended), d.ended[0])
		}
	})
}

// Who has asked nothing for a while takes no memory (B38).
func TestPacesAreForgotten(t *testing.T) {
	queueBubble(t, func(t *testing.T, d *queue) {
		ask := func(container string) {
			t.Helper()
			if w, v := d.enter(checked(t, queueCurl(func(r *Request) { r.Container.ID = container }))); w == nil {
				t.Fatalf("%+v", v)
			}
		}
		ask("one")
		ask("two")
		if len(d.paces) != 2 {
			t.Errorf("%d containers are remembered", len(d.paces))
		}
		time.Sleep(2 * burst * refill)
		ask("three")
		if len(d.paces) != 1 {
			t.Errorf("%d containers are remembered", len(d.paces))
		}
	})
}

func TestIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	var letters []byte
	for range 2000 {
		id := newID()
		if seen[id] {
			t.Fatalf("id %s came twice in %d", id, len(seen))
		}
		seen[id] = true
		letters = append(letters, id...)
	}
	slices.Sort(letters)
	if got := string(slices.Compact(letters)); len(got) != len(idLetters) {
		t.Errorf("letters used: %s", got)
	}
}

// FuzzMatch: two requests share a question only if what a person sees of them is
// the same, or they are the same image in the same process (G16).
func FuzzMatch(f *testing.F) {
	f.Add("curl", "x", "curl", "x", uint64(7), uint64(7), 1, 2, "203.0.113.9", "203.0.113.9")
	f.Add("curl", "x", "curlx", "", uint64(7), uint64(7), 1, 1, "203.0.113.9", "::ffff:203.0.113.9")
	f.Add("", "", "", "", uint64(0), uint64(0), 1, 1, "fe80::1%eth0", "fe80::1")
	f.Fuzz(func(t *testing.T, a0, a1, b0, b1 string, ha, hb uint64, pa, pb int, da, db string) {
		make := func(x, y string, h uint64, pid int, addr string) (CheckedRequest, error) {
			return CheckRequest(queueCurl(func(r *Request) {
				r.Process.Argv, r.Process.ArgvHash, r.Process.PID, r.Destination.Address = []string{x, y}, h, pid, addr
			}))
		}
		a, err := make(a0, a1, ha, pa, da)
		if err != nil {
			return
		}
		b, err := make(b0, b1, hb, pb, db)
		if err != nil {
			return
		}
		q := &question{record: record{
			Question: Question{Container: a.Container, Process: a.Process, Destination: a.Destination},
			Command:  a.command, Bound: a.bound, Asking: []process{a.self},
		}}
		if !q.matches(a) {
			t.Fatal("a question does not match its own asker")
		}
		if q.matches(b) && (a0 != b0 || a1 != b1 || ha != hb || a.Destination != b.Destination || ha == 0 && pa != pb) {
			t.Fatalf("%q %q matches %q %q", a0, a1, b0, b1)
		}
	})
}

// What is kept of the text that was shown is bounded; its hash is of all.
func TestShownIsCut(t *testing.T) {
	text := strings.Repeat("é", maxShown)
	got := shown(text)
	sum := sha256.Sum256([]byte(text))
	if !got.Cut || len(got.Text) > maxShown || !strings.HasPrefix(text, got.Text) || got.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("%d bytes, cut %v, %s", len(got.Text), got.Cut, got.SHA256)
	}
	if shown("") != nil {
		t.Error("nothing was shown, and that is stored")
	}
}
