package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"weir/internal/permission"
	"weir/internal/strict"
)

// The budgets, in bytes (M5).
const (
	BudgetStores  = 4 << 10
	BudgetEntries = 8 << 10
	BudgetPreview = 2 << 10
	BudgetEntry   = 50 << 10
	BudgetTurn    = 100 << 10
)

// raw is how many times a budget is read of a file: what is stripped counts against nobody.
const raw = 4

// The actions (M1).
const (
	ListStores  = "list_stores"
	ListEntries = "list_entries"
	Fetch       = "fetch"
)

// Request is what an agent asks for. One of ParseRequest is checked.
type Request struct {
	Action  string `json:"action"`
	Store   string `json:"store,omitempty"`
	Key     string `json:"key,omitempty"`
	Preview *bool  `json:"preview_only,omitempty"` // absent: true
}

// ErrMissing is a required field that is not there.
var ErrMissing = errors.New(permission.MissingField)

// ParseRequest reads and checks the input of the tool (M1): unknown fields are errors.
func ParseRequest(data []byte) (Request, error) {
	var r Request
	if err := strict.Decode(data, &r); err != nil {
		return Request{}, err
	}
	need := func(fields ...[2]string) error {
		for _, f := range fields {
			if f[1] == "" {
				return fmt.Errorf("%w: the field %s is missing", ErrMissing, f[0])
			}
			if err := permission.CheckKey(f[1]); err != nil {
				return fmt.Errorf("%s: %w", f[0], err)
			}
		}
		return nil
	}
	store, key := [2]string{"store", r.Store}, [2]string{"key", r.Key}
	switch r.Action {
	case "":
		return Request{}, fmt.Errorf("%w: the field action is missing", ErrMissing)
	case ListStores:
		return r, nil
	case ListEntries:
		return r, need(store)
	case Fetch:
		return r, need(store, key)
	}
	return Request{}, fmt.Errorf("action %s is unknown: known are list_stores, list_entries and fetch", strict.Quote(r.Action))
}

// IsPreview says whether only the beginning of an entry is asked for.
func (r Request) IsPreview() bool { return r.Preview == nil || *r.Preview }

// Result is what an agent gets.
type Result struct {
	Text      string // JSON for lists, a wrapped text for fetches
	Truncated bool
	Marks     Marks // of the store: taint before Text is handed over (M6)
}

// Recall answers a request. turns counts what a caller gets of texts within one turn; container and caller name whose turn it is.
func (m *Memory) Recall(r Request, turns *Turns, container, caller string) (Result, error) {
	switch r.Action {
	case ListStores:
		stores, err := m.Stores()
		if err != nil {
			return Result{}, err
		}
		return list("stores", stores, BudgetStores)
	case ListEntries, Fetch:
	default:
		return Result{}, errors.New("recall: the request was not checked")
	}
	res, err := m.marked(r.Store, func() (Result, error) { return m.within(r, turns, container, caller) })
	switch {
	case errors.Is(err, ErrNoStore):
		err = fmt.Errorf("%w: see list_stores", err)
	case errors.Is(err, ErrNoEntry):
		err = fmt.Errorf("%w: see list_entries", err)
	}
	return res, err
}

// marked reads from a store, and tells the marks that it had before or after: somebody may mark it, or remove it, meanwhile (M6).
func (m *Memory) marked(store string, read func() (Result, error)) (Result, error) {
	before, err := m.Marks(store)
	if err != nil {
		return Result{}, err
	}
	res, err := read()
	if err != nil {
		return Result{}, err
	}
	after, err := m.Marks(store)
	if err != nil {
		return Result{}, err
	}
	res.Marks = Marks{Secret: before.Secret || after.Secret, Foreign: before.Foreign || after.Foreign}
	return res, nil
}

func (m *Memory) within(r Request, turns *Turns, container, caller string) (Result, error) {
	if r.Action == ListEntries {
		entries, err := m.Entries(r.Store)
		if err != nil {
			return Result{}, err
		}
		return list("entries", entries, BudgetEntries)
	}
	most := BudgetEntry
	if r.IsPreview() {
		most = BudgetPreview
	}
	text, more, err := m.head(r.Store, r.Key, raw*most)
	if err != nil {
		return Result{}, err
	}
	text, truncated := cut(inert(Strip(text)), most)
	truncated = truncated || more
	text, less, err := turns.take(container, caller, text)
	if err != nil {
		return Result{}, err
	}
	truncated = truncated || less
	return Result{Text: wrap(r.Store, r.Key, text, truncated), Truncated: truncated}, nil
}

// list writes items as JSON, as many of them as fit.
func list[T any](name string, items []T, budget int) (Result, error) {
	const frame = 64
	room, kept := budget-frame, 0
	for _, item := range items {
		data, err := json.Marshal(item)
		if err != nil {
			return Result{}, fmt.Errorf("list %s: %w", name, err)
		}
		if room -= len(data) + 1; room < 0 {
			break
		}
		kept++
	}
	out := map[string]any{name: items[:kept], "truncated": kept < len(items)}
	data, err := json.Marshal(out)
	if err != nil {
		return Result{}, fmt.Errorf("list %s: %w", name, err)
	}
	return Result{Text: string(data), Truncated: kept < len(items)}, nil
}

// TurnTime is how long a turn lasts: agents do not say when theirs end.
const TurnTime = 5 * time.Minute

// maxTurns is how many turns of a container are kept: its callers name themselves, and the oldest is forgotten (B153).
const maxTurns = 64

// ErrTurn tells that a turn's budget is used up.
var ErrTurn = errors.New("the 100 KiB of memory for this turn are used up: go on with what was recalled, or recall the rest in some minutes")

// Turns counts the bytes of texts that callers got (M5). Its zero value is ready.
type Turns struct {
	Now func() time.Time // nil: time.Now

	mu    sync.Mutex
	turns map[string][]*turn // by container, oldest first
}

type turn struct {
	caller string
	began  time.Time
	used   int
}

// take gives as much of a text as the caller's turn has left.
func (t *Turns) take(container, caller, text string) (part string, less bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.Now != nil {
		now = t.Now()
	}
	if t.turns == nil {
		t.turns = map[string][]*turn{}
	}
	over := func(one *turn) bool { return now.Sub(one.began) >= TurnTime }
	maps.DeleteFunc(t.turns, func(_ string, all []*turn) bool { return over(all[len(all)-1]) })
	all := slices.DeleteFunc(t.turns[container], over)
	i := slices.IndexFunc(all, func(one *turn) bool { return one.caller == caller })
	if i < 0 {
		all = append(all[max(0, len(all)+1-maxTurns):], &turn{caller: caller, began: now})
		i = len(all) - 1
	}
	t.turns[container] = all
	own := all[i]
	left := BudgetTurn - own.used
	if left <= 0 {
		return "", false, ErrTurn
	}
	part, less = cut(text, left)
	own.used += len(part)
	if less {
		own.used = BudgetTurn
	}
	return part, less, nil
}
