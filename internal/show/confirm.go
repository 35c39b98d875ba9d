package show

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Confirm asks for a yes, which is typed, until ctx ends. Anything else is an error.
func Confirm(ctx context.Context, in io.Reader, out io.Writer, question string) error {
	fmt.Fprint(out, question)
	typed := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil {
			line = ""
		}
		typed <- strings.TrimSpace(line)
	}()
	select {
	case word := <-typed:
		if word == "yes" || word == "y" {
			return nil
		}
	case <-ctx.Done():
	}
	return errors.New("nothing was answered")
}
