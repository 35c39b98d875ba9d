package bridge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"weir/internal/vault"
)

// V4: a long answer is handed over in pages, from one request.
func TestPagesV4(t *testing.T) {
	r := newRig(t)
	r.bind(r.host())
	r.allow("allow: [VaultHttpFetch(gh)]", "")
	s := r.client()
	q := r.request("/long")
	text, res := r.announced(s, "", fetchName, q)
	if res.IsError || len(text) > pageSize+500 || !strings.Contains(text, "[Page 1 of 3.") {
		t.Fatalf("%d bytes, ending %q", len(text), text[max(0, len(text)-200):])
	}
	whole := text[:strings.LastIndex(text, "\n[Page")]
	for n := 2; n <= 3; n++ {
		q["page"] = n
		text, res := r.announced(s, "", fetchName, q)
		if res.IsError || !utf8.ValidString(text) {
			t.Fatal(n, text[:min(len(text), 200)])
		}
		whole += text[:strings.LastIndex(text, "\n[Page")]
	}
	if strings.Count(whole, "文") != 500<<10/3 || !strings.HasSuffix(whole, "the end") {
		t.Errorf("%d bytes, ending %q", len(whole), whole[len(whole)-20:])
	}
	if len(r.sent) != 1 {
		t.Errorf("%d requests were made", len(r.sent))
	}
	for _, n := range []int{4, 1000} {
		q["page"] = n
		if text, res := r.announced(s, "", fetchName, q); !res.IsError {
			t.Error(n, text)
		}
	}
	q["page"] = 2
	r.allow("deny: [VaultHttpFetch]", "") // what is denied is also read no further
	if text, res := r.announced(s, "", fetchName, q); !res.IsError {
		t.Error(text)
	}
	r.allow("allow: [VaultHttpFetch(gh)]", "")
	if text, res := r.call(s, fetchName, q); !res.IsError { // P6
		t.Error(text)
	}
}

// V10: a later page taints as the first did: the container may have been untainted between them.
func TestPagesTaintV10(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		r := newRig(t)
		r.bind(r.host())
		r.allow("allow: [VaultHttpFetch(gh)]", "")
		r.trusted = trusted
		s := r.client()
		q := r.request("/long")
		if text, res := r.announced(s, "", fetchName, q); res.IsError {
			t.Fatal(text)
		}
		tainted := func() []string {
			r.mu.Lock()
			defer r.mu.Unlock()
			got := r.tainted
			r.tainted = nil
			return got
		}
		first := tainted()
		q["page"] = 2
		text, res := r.announced(s, "", fetchName, q)
		if later := tainted(); res.IsError || (len(first) == 0) != trusted || !slices.Equal(later, first) {
			t.Errorf("trusted %v: first %q, later %q, %.100q", trusted, first, later, text)
		}
		r.mu.Lock()
		r.taint = errors.New("no")
		r.mu.Unlock()
		if text, res := r.announced(s, "", fetchName, q); res.IsError == trusted || strings.Contains(text, "文") != trusted {
			t.Errorf("trusted %v: handed over without its taint: %.100q", trusted, text)
		}
	}
}

func TestPagesAreBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	p := pages{now: func() time.Time { return now }}
	long := strings.Repeat("x", 1<<20)
	var first pageKey
	for i := range 50 {
		k, err := keyOf(fmt.Sprint(i), vault.Request{URL: "u"})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = k
		}
		p.keep(k, kept{text: long})
		if p.size > maxKept {
			t.Fatalf("%d bytes are kept", p.size)
		}
		if _, _, ok := p.read(k, 2); !ok {
			t.Fatal("what was kept last is gone")
		}
	}
	p.keep(first, kept{text: "short"})
	if _, _, ok := p.read(first, 1); ok {
		t.Error("a new answer left pages of the old one")
	}
	p.keep(first, kept{text: long})
	now = now.Add(pageTime)
	if _, _, ok := p.read(first, 2); ok {
		t.Error("it is kept for ever")
	}
}

// B164: a container's long answers push out its own, and of those that have most.
func TestB164OwnQuarter(t *testing.T) {
	now := time.Unix(1e9, 0)
	p := pages{now: func() time.Time { return now }}
	long := strings.Repeat("x", 1<<20)
	keep := func(container string, n int) pageKey {
		t.Helper()
		now = now.Add(time.Millisecond)
		k, err := keyOf(container, vault.Request{URL: fmt.Sprint(n)})
		if err != nil {
			t.Fatal(err)
		}
		p.keep(k, kept{text: long})
		return k
	}
	there := func(k pageKey) bool {
		_, _, ok := p.read(k, 2)
		return ok
	}
	calm := keep("calm", 0)
	var greedy []pageKey
	for i := range 100 {
		greedy = append(greedy, keep("greedy", i))
	}
	if !there(calm) || there(greedy[95]) || !there(greedy[96]) || p.size != 5<<20 {
		t.Errorf("calm has its answer: %v; %d bytes", there(calm), p.size)
	}
	for i := range 14 { // of one answer each, until all have no room
		keep(fmt.Sprint("other", i), 0)
	}
	if !there(calm) || there(greedy[98]) || !there(greedy[99]) || p.size != maxKept {
		t.Errorf("calm has its answer: %v; %d bytes", there(calm), p.size)
	}
}
