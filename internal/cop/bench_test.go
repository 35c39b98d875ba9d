package cop

import (
	"context"
	"testing"
	"time"
)

var benchTexts = map[string]string{
	"short": "git status && go test ./...",
	"usual": "cd /work && curl -fsSL https://example.com/a.tgz -o /tmp/a.tgz && tar xzf /tmp/a.tgz -C /tmp && ls -la /tmp | head -20",
	"long":  "cat > x.py <<'E'\nimport json\nfor i in range(10):\n    print(json.dumps({'a': i, 'b': [1, 2, 3]}))\nE\npython3 x.py && for f in *.go; do gofmt -l \"$f\"; grep -n 'func ' \"$f\" | sort | uniq -c | sort -rn | head -5; done",
}

// BenchmarkCached: a verdict that is there already; the aim is at most 50 µs.
func BenchmarkCached(b *testing.B) {
	for name, text := range benchTexts {
		b.Run(name, func(b *testing.B) {
			c := build(b, Options{CacheFor: time.Hour, Model: reviewer(func(context.Context, Case) (Opinion, error) { return Opinion{false, "r"}, nil })})
			k := plain(text)
			k.Ancestry = []Process{{"bash", []string{"bash", "-c", text}}, {"node", []string{"node", "/opt/agent.js"}}}
			if _, err := c.Review(context.Background(), k); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				c.Review(context.Background(), k)
			}
			if s := c.Stats(); s.Asked > 1 {
				b.Fatalf("asked %d times", s.Asked)
			}
		})
	}
}

// BenchmarkStatic: a review by static facts, with facts that are there already.
func BenchmarkStatic(b *testing.B) {
	for name, text := range benchTexts {
		b.Run(name, func(b *testing.B) {
			k := plain(text)
			b.ReportAllocs()
			for b.Loop() {
				static(k)
			}
		})
	}
}
