package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf16"

	"golang.org/x/term"

	"weir/internal/event"
	"weir/internal/show"
)

// writeJSON writes v on one line of ASCII: what a container chose can do nothing
// to a terminal (B51).
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	var out []byte
	for _, r := range b.String() {
		switch {
		case r < 0x7f:
			out = append(out, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return written(w.Write(out))
}

func written(_ int, err error) error {
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// answer writes v as JSON when that is asked for, else what text writes.
func (s *system) answer(v any, text func(w io.Writer)) error {
	if s.json {
		return writeJSON(s.stdout, v)
	}
	var p page
	if width, _, err := term.GetSize(int(s.stdout.Fd())); err == nil {
		p.width = width
	}
	text(&p)
	return show.Put(s.stdout, p.String())
}

// page is text for a terminal of a width; 0: for none.
type page struct {
	bytes.Buffer
	width int
}

// table aligns rows of cells, each of them visible, under a head. Where a page is too narrow for that, each cell has a line of its own.
func table(w io.Writer, head []string, rows [][]string) {
	for _, row := range rows {
		for i := range row {
			row[i] = event.Visible(row[i])
		}
	}
	text := aligned(append([][]string{head}, rows...))
	if p, ok := w.(*page); ok && p.width > 0 && widest(text) > p.width {
		text = ""
		for i, row := range rows {
			if i > 0 {
				text += "\n"
			}
			var lines [][]string
			for j, cell := range row {
				lines = append(lines, []string{head[j], cell})
			}
			text += aligned(lines)
		}
	}
	io.WriteString(w, text)
}

func aligned(rows [][]string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush()
	return b.String()
}

func widest(text string) int {
	most := 0
	for line := range strings.Lines(text) {
		most = max(most, show.Columns(strings.TrimRight(line, " \n")))
	}
	return most
}

// rows writes lines of a name and what belongs to it, below what they are of.
func rows(w io.Writer) func(name, format string, args ...any) {
	return func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-12s %s\n", name, fmt.Sprintf(format, args...))
	}
}

// span writes a duration as people say it: 4m48s, 2h5m, 3d4h.
func span(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	switch {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}

// orNone stands for an empty list.
func orNone(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ",")
}
