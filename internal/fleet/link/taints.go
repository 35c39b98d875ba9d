package link

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir/internal/control"
)

const (
	taintAge   = 7 * 24 * time.Hour // that a bucket keeps what was not told again
	taintAgain = 24 * time.Hour
	maxNodes   = 4 // that are named for an identity
)

// taints tells what the containers of a node are tainted with, by their identity, and finds what others told of those that begin on it. Each node
// has entries of its own, so none takes away what another told.
type taints struct {
	*Servers
	Node
	told  map[string]told // by identity, of what the node has
	found []control.Elsewhere
}

// told is an entry as the bucket has it.
type told struct {
	bits  string
	since time.Time // of the newest change of a tainted container: what an order to forget came before is told anew
	at    time.Time
}

func (s *Servers) taint() string { return s.prefix + "_taint" } // a bucket

// taintOf is the start of the keys of an identity, which a node's name ends.
func taintOf(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:16]) + "."
}

// tell brings what has changed to the bucket. That a container is clean is told only of one that was seen tainted: what this node does not know
// of takes nothing away.
func (t *taints) tell(ctx context.Context) error {
	list, err := t.Sensor.Containers(ctx)
	if err != nil {
		return err
	}
	now, since := map[string]map[string]bool{}, map[string]time.Time{}
	for _, c := range list {
		if c.Identity == "" {
			continue
		}
		if now[c.Identity] == nil {
			now[c.Identity] = map[string]bool{}
		}
		for _, bit := range c.Taint {
			now[c.Identity][bit] = true
			if c.Since.After(since[c.Identity]) {
				since[c.Identity] = c.Since
			}
		}
	}
	maps.DeleteFunc(t.told, func(identity string, _ told) bool { return now[identity] == nil })
	var bucket jetstream.KeyValue // once there is something to tell
	for identity, bits := range now {
		names := slices.Sorted(maps.Keys(bits))
		is, was := strings.Join(names, " "), t.told[identity]
		if is == was.bits && (is == "" || !since[identity].After(was.since) && time.Since(was.at) < taintAgain) {
			continue
		}
		if bucket == nil {
			if bucket, err = t.js.KeyValue(ctx, t.taint()); err != nil {
				return fmt.Errorf("find the bucket %s, which weir-fleet init makes: %w", t.taint(), err)
			}
		}
		data, err := json.Marshal(control.Elsewhere{Identity: identity, Taint: names})
		if err == nil {
			_, err = bucket.Put(ctx, taintOf(identity)+t.Name, data)
		}
		if err != nil {
			return fmt.Errorf("tell taint: %w", err)
		}
		t.told[identity] = told{is, since[identity], time.Now()}
	}
	return nil
}

// ask gives the sensor what was found, and finds what it wants next.
func (t *taints) ask(ctx context.Context) error {
	wanted, err := t.Sensor.Moved(ctx, t.found)
	if err == nil || control.Code(err) == control.Usage { // what the sensor does not take now it never takes
		t.found = nil
	}
	if err != nil {
		return err
	}
	var failed error // of the first: the sensor asks for it again
	for _, w := range wanted {
		if one, err := t.find(ctx, w); err == nil {
			t.found = append(t.found, one)
		} else if failed == nil {
			failed = err
		}
	}
	return failed
}

// find joins what the other nodes told of an identity, and nobody has had forgotten since; of an agent, which a sensor forgets before the bucket
// does, also what this node told.
func (t *taints) find(ctx context.Context, w control.Wanted) (control.Elsewhere, error) {
	all := control.Elsewhere{Identity: w.Identity}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	stream, err := t.js.Stream(ctx, "KV_"+t.taint())
	if err != nil {
		return all, fmt.Errorf("find the bucket %s, which weir-fleet init makes: %w", t.taint(), err)
	}
	start := "$KV." + t.taint() + "." + taintOf(w.Identity)
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(start+">"))
	if err != nil {
		return all, fmt.Errorf("look for taint: %w", err)
	}
	for subject := range info.State.Subjects {
		node := subject[len(start):]
		if node == t.Name && !strings.HasPrefix(w.Identity, "agent ") {
			continue // the sensor knows
		}
		m, err := stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return all, fmt.Errorf("look for taint: %w", err)
		}
		var one control.Elsewhere
		if json.Unmarshal(m.Data, &one) != nil || one.Identity != w.Identity || !m.Time.After(w.Forgotten) {
			continue // it is none of a link's, or is forgotten
		}
		for _, bit := range one.Taint {
			if bit != "corruption" && bit != "secret" {
				continue
			}
			if !slices.Contains(all.Taint, bit) {
				all.Taint = append(all.Taint, bit)
			}
			if len(all.Nodes) < maxNodes && !slices.Contains(all.Nodes, node) {
				all.Nodes = append(all.Nodes, node)
			}
		}
	}
	slices.Sort(all.Nodes)
	return all, nil
}
