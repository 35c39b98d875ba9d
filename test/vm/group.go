package vm

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// GuestBin is where the guest sees the built programs; it is in its PATH, and so is its directory attack.
const GuestBin = "/opt/weir"

// Group is one package of tests below test/vm/guest. Zero values mean what Machine's mean.
type Group struct {
	Name    string
	Of      string // package whose tests it runs; empty: that of its name
	Root    string
	Systemd bool
	Timeout time.Duration
	CPUs    int
	MemMiB  int
	Shares  []Share // beside the repository and the programs
	Takes   int     // seconds of processor time, about: the longest group begins first; 0: less than a minute
	Once    bool    // takes long, and other groups ask each kernel what it stands on: make failures runs it on all, else the newest does
	Long    string  // as -skip has it: tests of it that are left to make failures and make load, or to who asks for some by name
	Newest  string  // the same, but for the newest kernel: they are about user space
}

// long is the long form: nothing that takes long, or was asked of another kernel, is left out.
func long() bool { return os.Getenv(failureEnv) != "" || os.Getenv(loadEnv) != "" }

// skip is what of a group's tests is left out, as -skip has it.
func (g Group) skip(newest bool) string {
	if long() {
		return ""
	}
	if newest {
		return g.Long
	}
	return strings.Trim(g.Newest+"|"+g.Long, "|") // -skip goes by the first that matches a name, be it in part
}

// Build compiles a package of the repository to a static file. goarch is amd64 or 386; a test binary is built if test is set.
func (h *Host) Build(ctx context.Context, file, pkg, goarch string, test bool, flags ...string) error {
	args := []string{"build", "-tags", "grpcnotrace,no_gogo"} // as make build does
	if test {
		args = []string{"test", "-c", "-tags", "vmguest"}
	}
	args = append(append(args, flags...), "-buildvcs=false", "-o", file, pkg)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = h.Repo
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+goarch)
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, b)
	}
	return nil
}

// RunGroup runs a group's test binary, bin/OF.test, in one VM and reports its tests as subtests of t. newest: k is the newest of the
// kernels that are run. A VM that dies, a test that never ends or is skipped, and a run without tests are failures.
func (h *Host) RunGroup(t *testing.T, k Kernel, newest bool, g Group, bin string) {
	t.Helper()
	if g.Of == "" {
		g.Of = g.Name
	}
	if g.Timeout == 0 {
		g.Timeout = 30 * time.Minute // in make test none takes four minutes, if the machine has nothing else to do
	}
	var output bytes.Buffer
	live := io.WriteCloser(nopCloser{io.Discard})
	if testing.Verbose() {
		live = prefixer(os.Stdout, k.Version+" "+g.Name)
	}
	args := []string{GuestBin + "/" + g.Of + ".test", "-test.v=test2json", "-test.timeout=" + g.Timeout.String()}
	asked := "first" // as rig.Some has it
	if newest {
		asked = "each"
	}
	if long() || guestRun() != "" {
		asked = "all"
	}
	if run := guestRun(); run != "" {
		args = append(args, "-test.run="+run)
	} else if skip := g.skip(newest); skip != "" {
		args = append(args, "-test.skip="+skip)
	}
	dir := "/" // which is no directory that sessions share (B127)
	if below := "test/vm/guest/" + g.Of; isDir(filepath.Join(h.Repo, below, "testdata")) {
		dir = "/weir/" + below
	}
	out := t.TempDir()
	exit, vmErr := h.Run(t.Context(), Machine{
		Kernel: k, Root: g.Root, Systemd: g.Systemd, CPUs: g.CPUs, MemMiB: g.MemMiB, Args: args, Out: out,
		Timeout: g.Timeout + 30*time.Second, // the binary's own limit comes first: it prints all goroutines
		Env: []string{
			"WEIR_KERNEL=" + k.Version, "WEIR_ASKED=" + asked, "WEIR_LOAD=" + os.Getenv(loadEnv), "WEIR_FAILURE=" + os.Getenv(failureEnv), "WEIR_SOAK=" + os.Getenv(soakEnv), "WEIR_UPDATE=" + os.Getenv(updateEnv), "WEIR_CLIENTS=" + os.Getenv(clientsEnv),
			"PATH=" + GuestBin + ":" + GuestBin + "/attack:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		},
		Dir:    dir,
		Shares: append([]Share{{h.Repo, "/weir"}, {bin, GuestBin}}, g.Shares...),
		Output: io.MultiWriter(&output, live),
	})
	live.Close()
	if os.Getenv(updateEnv) != "" {
		if err := h.update(out); err != nil {
			t.Error(err)
		}
	}
	root, err := parse(context.Background(), output.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	publish(t, root)
	switch {
	case vmErr != nil:
		t.Errorf("%v\noutput of no test:\n%s", vmErr, root.output.String())
	case exit != 0 && !t.Failed():
		t.Errorf("the test binary ended with status %d, but no test failed:\n%s", exit, root.output.String())
	case len(root.subs) == 0:
		t.Errorf("no test ran:\n%s", root.output.String())
	case t.Failed():
		t.Logf("output of no test:\n%s", root.output.String())
	}
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// updateEnv makes files of the repository anew that tests otherwise compare with what they saw.
const updateEnv = "VMTEST_UPDATE"

// clientsEnv is a regular expression of the clients to run, or core for some; without it the group clients is left to make clients.
const clientsEnv = "VMTEST_CLIENTS"

// loadEnv has the numbers of cgroups, grants and held commands for the group load; with it the group failure does more too. See make load.
const loadEnv = "VMTEST_LOAD"

// soakEnv is how long the group soak goes on, and its seed, 0 for any: 10m,0. See make soak.
const soakEnv = "VMTEST_SOAK"

// debsEnv is an absolute directory with packages; with it the group deb runs. See make release-test.
const debsEnv = "VMTEST_DEBS"

// failureEnv has the group failure run, those that run once on all kernels, and tests that take long. See make failures.
const failureEnv = "VMTEST_FAILURE"

// update copies what a guest left in /out/update into the repository.
func (h *Host) update(out string) error {
	from := filepath.Join(out, "update")
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) || err == nil && d.IsDir() {
			return nil
		}
		if err != nil {
			return fmt.Errorf("update the repository: %w", err)
		}
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(h.Repo, strings.TrimPrefix(path, from)), b, 0o644)
		}
		if err != nil {
			return fmt.Errorf("update the repository: %w", err)
		}
		return nil
	})
}

// guestRun is what -run says of the tests in the guest: TestVM/KERNEL/GROUP/this.
func guestRun() string {
	f := flag.Lookup("test.run")
	if f == nil {
		return ""
	}
	return below(f.Value.String(), 3)
}

// below leaves out the first n elements of a -run pattern. As testing has it, a slash in brackets or parentheses parts nothing.
func below(pattern string, n int) string {
	depth := 0
	for i, c := range pattern {
		switch c {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case '/':
			if depth == 0 {
				n--
			}
			if n == 0 {
				return pattern[i+1:]
			}
		}
	}
	return ""
}

// DependOnSources reads the directories of the repository, which tells go test that a cached result is void when a file changed:
// it cannot see what go build reads.
func (h *Host) DependOnSources() error {
	return filepath.WalkDir(h.Repo, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch d.Name() {
		case ".git", ".cache", "bin":
			return filepath.SkipDir
		}
		return nil
	})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
