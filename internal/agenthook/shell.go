package agenthook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// denied is the exit code of a shell that did not run its command, as for a program that may not be executed.
const denied = 126

// shellPath is what runs what was let run.
const shellPath = "/bin/bash"

// Shell stands in for bash -c TEXT: it asks, and then becomes bash, or prints the denial where the command's output would be. It returns
// only when nothing was run.
func (w World) Shell(ctx context.Context, args []string, exec func(path string, argv, environ []string) error) int {
	text, err := shellText(args)
	if err != nil {
		w.say("weir shell: %v", err)
		return block
	}
	dir, _ := os.Getwd() // unknown is fine
	raw, err := json.Marshal(map[string]string{"command": text})
	if err != nil {
		w.say("weir shell: %v", err)
		return denied
	}
	if reason := w.asker().check(ctx, call{ToolName: "Bash", Input: raw, Dir: dir}); reason != "" {
		if _, err := io.WriteString(w.Stdout, reason+"\n"); err != nil {
			w.say("%s", reason)
		}
		return denied
	}
	err = exec(shellPath, append([]string{"bash"}, args...), w.Environ)
	w.say("weir shell: run %s: %v", shellPath, err)
	if errors.Is(err, syscall.ENOENT) {
		return 127
	}
	return denied
}

// shellText is TEXT of [-l] -c TEXT [NAME [ARG…]]. An option that would make bash run something else beforehand is refused.
func shellText(args []string) (string, error) {
	command := false
	for _, a := range args {
		switch {
		case a == "--norc" || a == "--noprofile" || a == "--login" || a == "--posix":
		case len(a) > 1 && a[0] == '-':
			if strings.Trim(a[1:], "lceux") != "" {
				return "", fmt.Errorf("unknown option %s: give -c 'COMMAND', with -l, -e, -u or -x", a)
			}
			command = command || strings.Contains(a, "c")
		case !command:
			return "", errors.New("it runs one command, no script: give -c 'COMMAND'")
		default:
			return a, nil
		}
	}
	return "", errors.New("no command given: give -c 'COMMAND'")
}
