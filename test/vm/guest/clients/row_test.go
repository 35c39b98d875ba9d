//go:build vmguest

package clients

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/test/vm/guest/rig"
)

// row is what was seen of a client.
type row struct{ Call, Approved, Denied, Unanswered, Late string }

func (f *fixture) put(name string, r row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows[name] = r
	fmt.Printf("row: %s: %+v\n", name, r) // also when another client fails
}

var saysEPERM = regexp.MustCompile(`(?i)operation not permitted|EPERM|permission denied`)

// ended tells how a command ended, and whether it says why.
func ended(r rig.Result) string {
	text := fmt.Sprintf("exit %d", r.Exit)
	if saysEPERM.MatchString(r.Stdout + r.Stderr) {
		text += ", says EPERM"
	}
	return text
}

const header = `# Clients

What programs see when a tainted session runs them. The table is what the tests in test/vm/guest/clients saw, on every kernel of the
matrix; they fail when it does not agree, and ` + "`make clients`" + ` writes it anew. The programs are those of Debian 13.

- **call**: *held* means that the process is frozen inside its call and notices nothing.
- **approved**: what a held command does when the answer is yes. A client with a limit of its own for connecting gives up when the answer
  comes later than that; the approval then stays for the next try.
- **denied**, **nobody answers**: how it ends, and whether its output names the reason.
- **approved late**: what the same command does when it is run again, after it was killed or had given up and the answer was yes.
  It does so once: the run after that is asked about.

| client | call | approved | denied | nobody answers | approved late, run again |
|---|---|---|---|---|---|
`

// committed reads the rows of a table that was written before.
func committed(text string) map[string]row {
	rows := map[string]row{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) == 6 {
			rows[strings.TrimPrefix(cells[0], "| ")] = row{cells[1], cells[2], cells[3], cells[4], strings.TrimSuffix(cells[5], " |")}
		}
	}
	return rows
}

// fill takes from old what was not seen this time.
func (r row) fill(old row) row {
	for to, from := range map[*string]string{
		&r.Call: old.Call, &r.Approved: old.Approved, &r.Denied: old.Denied, &r.Unanswered: old.Unanswered, &r.Late: old.Late,
	} {
		if *to == "" {
			*to = from
		}
	}
	return r
}

// document compares docs/clients.md with what was seen, and leaves what it should be in /out/update for who wants it.
func (f *fixture) document(t *testing.T) {
	t.Helper()
	have, err := os.ReadFile("/weir/docs/clients.md")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	old := committed(string(have))
	var b strings.Builder
	b.WriteString(header)
	names := []string{}
	for _, c := range clients {
		names = append(names, c.name)
	}
	for _, name := range append(names, http3only) {
		r := f.rows[name].fill(old[name])
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", name, r.Call, r.Approved, r.Denied, r.Unanswered, r.Late)
	}
	if err := os.MkdirAll("/out/update/docs", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/out/update/docs/clients.md", []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(have), b.String()); d != "" && os.Getenv("WEIR_UPDATE") == "" {
		t.Errorf("docs/clients.md does not agree with what was seen: look at it, then run make clients:\n%s", d)
	}
}
