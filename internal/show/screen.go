package show

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen writes lines as Put does.
type Screen struct{ io.Writer }

func (s Screen) Write(lines []byte) (int, error) {
	if err := Put(s.Writer, string(lines)); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// Put writes lines. On a terminal none is wider than that: what goes on in the next line begins with blanks, so that it cannot pose as
// another (B51), however a container has measured it.
func Put(w io.Writer, lines string) error {
	if width, _ := size(w); width > 0 {
		lines = fold(lines, width)
	}
	if _, err := io.WriteString(w, lines); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// Above says whether lines that are put on w scroll away at once.
func Above(w io.Writer, lines string) bool {
	width, height := size(w)
	return width > 0 && strings.Count(fold(lines, width), "\n") >= height
}

// Approve is what a person is asked below lines that were put on w.
func Approve(w io.Writer, lines string) string {
	if Above(w, lines) {
		return "\napprove this, also what is above the screen? Type yes: "
	}
	return "\napprove this? Type yes: "
}

// size is that of a terminal; 0: it is none.
func size(w io.Writer) (width, height int) {
	if s, ok := w.(Screen); ok {
		w = s.Writer
	}
	if f, ok := w.(*os.File); ok {
		width, height, _ = term.GetSize(int(f.Fd()))
	}
	return width, height
}

func fold(lines string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		text, ended := strings.CutSuffix(line, "\n")
		b.WriteString(strings.Join(Wrap(text, width, 17), "\n"))
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
