package vm

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
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

// So does every other one: whatever has tests in a guest, and the benchmark's program.
func TestGuestsRefuseHost(t *testing.T) {
	guarded := map[string]bool{"bench/guest": calls(t, "bench/guest/main.go", "run", "Check")}
	err := filepath.WalkDir("guest", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			dir := filepath.Dir(path)
			guarded[dir] = calls(t, path, "TestMain", "Main") || guarded[dir]
		}
		return err
	})
	if err != nil || len(guarded) < 10 {
		t.Fatalf("%d programs: %v", len(guarded), err)
	}
	for dir, ok := range guarded {
		if !ok {
			t.Errorf("what is in %s would run on a host", dir)
		}
	}
}

// calls says whether a file has a function that calls one of package inside.
func calls(t *testing.T, file, function, guard string) bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == function {
			ast.Inspect(fn, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				found = found || ok && types.ExprString(call.Fun) == "inside."+guard
				return true
			})
		}
	}
	return found
}
