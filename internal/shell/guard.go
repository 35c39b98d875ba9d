package shell

import (
	"errors"
	"io"
	"runtime"
)

// ErrDeep stops the parser, which recurses, before it uses up the stack.
var ErrDeep = errors.New("nested too deep")

// Guard hands out a text to a parser in pieces. Each piece is ErrDeep once the
// parser has recursed for more than frames function calls.
func Guard(text string, frames int) io.Reader { return &guard{text: text, frames: frames} }

type guard struct {
	text   string
	frames int
	pcs    [1]uintptr
}

func (g *guard) Read(p []byte) (int, error) {
	if g.text == "" {
		return 0, io.EOF
	}
	if runtime.Callers(g.frames, g.pcs[:]) > 0 {
		return 0, ErrDeep
	}
	n := copy(p, g.text)
	g.text = g.text[n:]
	return n, nil
}
