package exec

import (
	"container/list"
	"sync"

	"weir/internal/event"
	"weir/internal/linux"
)

// What the cache holds at most, and how many processes that still live are passed over to find one to forget.
const (
	maxCommands = 32768
	maxBytes    = 64 << 20
	maxPasses   = 8
)

// cache has the newest command of each process. It forgets the oldest first, those of ended processes before those of live ones.
type cache struct {
	commands, bytes int // limits
	alive           func(pid int, start uint64) bool

	mu     sync.Mutex
	byPID  map[int]*list.Element
	ages   *list.List // of known, oldest first
	used   int        // bytes
	lost   uint64     // executions, when that was last looked at
	doubts uint64     // how often a newer command of some process may have been lost
}

// known is what a process executed.
type known struct {
	event.Process
	doubts uint64 // by then
}

func newCache() *cache {
	return &cache{commands: maxCommands, bytes: maxBytes, alive: linux.Alive, byPID: map[int]*list.Element{}, ages: list.New()}
}

// put replaces what the process, or an earlier one with the same id, executed.
func (c *cache) put(p event.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.byPID[p.PID]; ok {
		c.drop(old)
	}
	c.byPID[p.PID] = c.ages.PushBack(known{p, c.doubts})
	c.used += cost(p)
	passes := 0
	for c.ages.Len() > c.commands || c.used > c.bytes {
		oldest := c.ages.Front()
		if q := oldest.Value.(known); passes < maxPasses && c.alive(q.PID, q.Start) {
			c.ages.MoveToBack(oldest)
			passes++
			continue
		}
		c.drop(oldest)
	}
}

// doubt says that what is there may be older than what its process runs.
func (c *cache) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubts++
}

// lose takes how many executions had been lost before some moment, up to which all others are there.
func (c *cache) lose(count uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if count > c.lost {
		c.lost = count
		c.doubts++
	}
}

// get takes an exact start or one from /proc. It is sure where nothing was lost since.
func (c *cache) get(pid int, start uint64) (p event.Process, sure, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byPID[pid]
	if !ok {
		return event.Process{}, false, false
	}
	k := e.Value.(known)
	if k.Start != start && !linux.SameStart(start, k.Start) {
		return event.Process{}, false, false
	}
	return k.Process, k.doubts == c.doubts, true
}

func (c *cache) drop(e *list.Element) {
	k := c.ages.Remove(e).(known)
	delete(c.byPID, k.PID)
	c.used -= cost(k.Process)
}

// cost is roughly what an entry takes.
func cost(p event.Process) int {
	n := 512 + len(p.Script) + len(p.Interp)
	if p.Exe != nil {
		n += len(p.Exe.Path)
	}
	for _, texts := range [][]string{p.Argv, p.Env} {
		for _, s := range texts {
			n += len(s) + 16
		}
	}
	for _, a := range p.Ancestry {
		n += len(a.Comm) + 32
	}
	return n
}
