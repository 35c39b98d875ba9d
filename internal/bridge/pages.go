package bridge

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"weir/internal/vault"
)

const (
	pageSize = 200 << 10 // bytes: below what agents cut results at, as the tool's metadata asks them to
	pageTime = 5 * time.Minute
	maxKept  = 16 << 20 // bytes of answers that wait to be read on; a quarter of one container
)

// pages keeps long answers, freed of their secrets, until they are read to their end or their time is over (V4).
type pages struct {
	now func() time.Time

	mu   sync.Mutex
	kept map[pageKey]kept
	size int
}

// pageKey is who asked for what.
type pageKey struct {
	container string
	request   [sha256.Size]byte
}

type kept struct {
	text    string
	host    string
	trusted bool // what comes from there taints nobody
	until   time.Time
}

func keyOf(container string, r vault.Request) (pageKey, error) {
	r.Page = 0
	data, err := json.Marshal(r)
	return pageKey{container, sha256.Sum256(data)}, err
}

// keep stores an answer and gives its first page.
func (p *pages) keep(k pageKey, a kept) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(k)
	if len(a.text) <= pageSize {
		return a.text
	}
	for old, one := range p.kept {
		if !p.now().Before(one.until) {
			p.drop(old)
		}
	}
	for p.makesRoom(k.container, len(a.text)) {
	}
	if p.kept == nil {
		p.kept = map[pageKey]kept{}
	}
	a.until = p.now().Add(pageTime)
	p.kept[k] = a
	p.size += len(a.text)
	part, _ := page(a.text, 1)
	return part
}

// makesRoom drops the oldest answer of the container that has most, if n more bytes of another have no room: its own where it has a quarter (B164).
func (p *pages) makesRoom(container string, n int) bool {
	has, most := map[string]int{}, container
	for k, one := range p.kept {
		if has[k.container] += len(one.text); has[k.container] > has[most] {
			most = k.container
		}
	}
	if has[container]+n > maxKept/4 {
		most = container
	} else if p.size+n <= maxKept {
		return false
	}
	var oldest pageKey
	for k, one := range p.kept {
		if k.container == most && (oldest.container == "" || one.until.Before(p.kept[oldest].until)) {
			oldest = k
		}
	}
	p.drop(oldest)
	return has[most] > 0
}

func (p *pages) drop(k pageKey) {
	p.size -= len(p.kept[k].text)
	delete(p.kept, k)
}

// read gives a later page of an answer that is kept, and whose answer it is.
func (p *pages) read(k pageKey, n int) (part string, of kept, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, ok = p.kept[k]
	if !ok || !p.now().Before(of.until) {
		return "", kept{}, false
	}
	part, ok = page(of.text, n)
	return part, of, ok
}

// page cuts one page out of a text, between characters, and says how to go on.
func page(text string, n int) (string, bool) {
	all := (len(text) + pageSize - 1) / pageSize
	if n < 1 || n > all {
		return "", false
	}
	from, to := boundary(text, (n-1)*pageSize), boundary(text, n*pageSize)
	part := text[from:to]
	if n < all {
		return part + fmt.Sprintf("\n[Page %d of %d. For the next make the same call with page: %d, within 5 minutes; no new request is made.]", n, all, n+1), true
	}
	return part + fmt.Sprintf("\n[Page %d of %d, the last.]", n, all), true
}

func boundary(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}
