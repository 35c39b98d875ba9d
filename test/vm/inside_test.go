package vm

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A guest's tests must never touch the kernel of a host, so their binary refuses there.
func TestGuestRefusesHost(t *testing.T) {
	repo, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "boot.test")
	if err := (&Host{Repo: repo}).Build(context.Background(), file, "./test/vm/guest/boot", "amd64", true); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(file, "-test.v").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("err = %v, want exit status 1", err)
	}
	if !strings.Contains(string(out), "refuse to run: this is not a test VM") {
		t.Errorf("output = %q", out)
	}
}
