package cop

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// cacheKey stands for all that a reviewer is shown: a verdict never serves for a case
// that a reviewer could have told apart, but for the layout of the command's text (normal).
type cacheKey [sha256.Size]byte

func keyOf(c Case) cacheKey {
	w := keyWriter{h: sha256.New()}
	w.text(c.Policy)
	w.text(c.Command)
	w.list(c.Argv)
	w.flags(c.Truncated, c.Taint.Corruption, c.Taint.Secret)
	w.text(c.Dir)
	w.text(c.Container)
	w.text(c.Image)
	w.text(c.Destination.Address.String())
	w.number(int(c.Destination.Port))
	w.text(c.Destination.Protocol)
	w.text(c.Destination.Name)
	w.number(len(c.Ancestry))
	for _, p := range c.Ancestry {
		w.text(p.Comm)
		w.list(p.Argv)
	}
	f := c.Judged.Facts
	w.number(int(c.Judged.Class))
	for _, list := range [][]string{f.Programs, f.URLs, f.Hosts, f.Reads, f.Writes, f.Listens, f.Encoders} {
		w.list(list)
	}
	w.flags(f.Install, f.Runtime, f.Upload, f.Download)
	w.number(len(c.Judged.Reasons))
	for _, r := range c.Judged.Reasons {
		w.text(r.Rule)
	}
	var key cacheKey
	w.h.Sum(key[:0])
	return key
}

// keyWriter writes lengths before texts, so that no two cases write the same.
type keyWriter struct{ h hash.Hash }

func (w keyWriter) number(n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	w.h.Write(b[:])
}

func (w keyWriter) text(s string) {
	w.number(len(s))
	io.WriteString(w.h, s)
}

func (w keyWriter) list(texts []string) {
	w.number(len(texts))
	for _, t := range texts {
		w.text(t)
	}
}

func (w keyWriter) flags(flags ...bool) {
	n := 0
	for i, f := range flags {
		if f {
			n |= 1 << i
		}
	}
	w.number(n)
}

// maxNormal bounds the text that is brought into a common layout.
const maxNormal = 4 << 10

// normal writes a command in one layout: blanks, line ends and indentation as the parser
// knows them to be without meaning. Comments stay: a model reads them too.
func normal(command string) string {
	if len(command) > maxNormal {
		return command
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(command), "")
	if err != nil {
		return command
	}
	var b strings.Builder
	if err := syntax.NewPrinter().Print(&b, f); err != nil {
		return command
	}
	return b.String()
}
