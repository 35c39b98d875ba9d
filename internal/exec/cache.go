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

	mu    sync.Mutex
	byPID map[int]*list.Element
	ages  *list.List // of event.Process, oldest first
	used  int        // bytes
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
	c.byPID[p.PID] = c.ages.PushBack(p)
	c.used += cost(p)
	passes := 0
	for c.ages.Len() > c.commands || c.used > c.bytes {
		oldest := c.ages.Front()
		if q := oldest.Value.(event.Process); passes < maxPasses && c.alive(q.PID, q.Start) {
			c.ages.MoveToBack(oldest)
			passes++
			continue
		}
		c.drop(oldest)
	}
}

// get takes an exact start or one from /proc.
func (c *cache) get(pid int, start uint64) (event.Process, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byPID[pid]
	if !ok {
		return event.Process{}, false
	}
	p := e.Value.(event.Process)
	if p.Start != start && !linux.SameStart(start, p.Start) {
		return event.Process{}, false
	}
	return p, true
}

func (c *cache) drop(e *list.Element) {
	p := c.ages.Remove(e).(event.Process)
	delete(c.byPID, p.PID)
	c.used -= cost(p)
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
