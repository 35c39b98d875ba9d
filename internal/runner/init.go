package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"weir/internal/control"
)

// waitFD is where Init is told to go on.
const waitFD = 3

// Init is the stub that Guard starts: it waits until the sensor knows it, gives
// up typing into its terminal, root for uid (0: stays root), gid and groups, and
// the right to change files outside write (if that has any), and becomes argv. It returns only when it
// cannot, with the exit codes of shells.
func Init(uid, gid uint32, groups []uint, write Write, argv, environ []string) error {
	wait := os.NewFile(waitFD, "wait")
	if _, err := io.ReadFull(wait, make([]byte, 1)); err != nil {
		return Status(control.Failed) // Guard has said why
	}
	said, err := keepHands()
	if err != nil {
		return control.Errorf(126, "%w", err)
	}
	if said != "" {
		fmt.Fprintln(os.Stderr, "weir guard:", said)
	}
	if err := dropTo(uid, gid, groups); err != nil {
		return control.Errorf(126, "%w", err)
	}
	if write.any() {
		write.prepare()
		if err := write.enforce(); err != nil {
			return control.Errorf(126, "%w", err)
		}
	}
	return replace(argv, environ)
}

// dropTo gives up root for good, in all threads.
func dropTo(uid, gid uint32, groups []uint) error {
	if uid == 0 {
		return nil
	}
	var ids []int
	for _, g := range groups {
		ids = append(ids, int(g))
	}
	if err := syscall.Setgroups(ids); err != nil {
		return fmt.Errorf("set groups: %w", err)
	}
	if err := syscall.Setresgid(int(gid), int(gid), int(gid)); err != nil {
		return fmt.Errorf("set gid %d: %w", gid, err)
	}
	if err := syscall.Setresuid(int(uid), int(uid), int(uid)); err != nil {
		return fmt.Errorf("set uid %d: %w", uid, err)
	}
	return nil
}

// replace replaces this process by argv. Only standard input, output and error
// stay open in it.
func replace(argv, environ []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return cannotRun(argv[0], err)
	}
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return control.Errorf(126, "close descriptors: %w", err)
	}
	return cannotRun(argv[0], syscall.Exec(path, argv, environ))
}

// FindProgram finds a slip before anything is started for it. What only the
// user's own rights would show is found when it is executed.
func FindProgram(name string) error {
	if _, err := exec.LookPath(name); err != nil && !errors.Is(err, exec.ErrDot) {
		return cannotRun(name, err)
	}
	return nil
}

// cannotRun is why name was not executed, with the exit codes of shells.
func cannotRun(name string, err error) error {
	switch {
	case name == "":
		return control.Errorf(127, `"": no such program: give its name`)
	case errors.Is(err, exec.ErrNotFound):
		return control.Errorf(127, "%s: no such program: check the name and PATH", name)
	case errors.Is(err, fs.ErrNotExist):
		return control.Errorf(127, "%s: it, or the interpreter that its first line names, does not exist: check the path", name)
	case errors.Is(err, fs.ErrPermission):
		return control.Errorf(126, "%s: this user may not run it: check its permissions, or use --user", name)
	case errors.Is(err, syscall.ENOEXEC):
		return control.Errorf(126, "%s: no program: give it a first line such as #!/bin/sh, or run it with its interpreter", name)
	}
	if search, ok := errors.AsType[*exec.Error](err); ok {
		err = search.Err
	}
	return control.Errorf(126, "%s: cannot be run: %w", name, err)
}
