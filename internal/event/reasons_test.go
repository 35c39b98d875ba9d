package event

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReasonsAreDocumented compares the codes of verdict.reason in the source with docs/protocol.md.
func TestReasonsAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## Codes of verdicts\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(section, -1) {
		documented = append(documented, row[1])
	}
	found := map[string]bool{}
	for path, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			for _, code := range reasonsOf(path, n) {
				found[code] = true
			}
			return true
		})
	}
	if len(found) < 60 {
		t.Errorf("only %d codes found in the source", len(found))
	}
	slices.Sort(documented)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(found)), documented); diff != "" {
		t.Errorf("source - docs/protocol.md +\n%s", diff)
	}
}

// TestSourcesAreDocumented compares Sources with the source, the schema and docs/metrics.md.
func TestSourcesAreDocumented(t *testing.T) {
	if diff := cmp.Diff(Sources(), schema(t).Defs["TaintChange"].Properties["source"].Enum); diff != "" {
		t.Errorf("sources - schema +\n%s", diff)
	}
	data, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(data), "\n| `weir_taints_total` |")
	row, _, _ = strings.Cut(row, "\n")
	for _, s := range Sources() {
		if !strings.Contains(row, "`"+s+"`") {
			t.Errorf("docs/metrics.md lacks the source %s", s)
		}
	}
	found := map[string]bool{}
	for _, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			if s := keyOf(n, "Source", "Change", "TaintChange"); s != "" {
				found[s] = true
			}
			return true
		})
	}
	want := Sources()
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(found))); diff != "" {
		t.Errorf("sources - what sets them +\n%s", diff)
	}
}

// sources are the files of all packages, parsed, by their path below internal.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	all := map[string]*ast.File{}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_bpfel.go") {
			return err
		}
		all[strings.TrimPrefix(path, "../")], err = parser.ParseFile(token.NewFileSet(), path, nil, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// reasonsOf are the codes that a part of a file at path brings in.
func reasonsOf(path string, n ast.Node) []string {
	codes := []string{keyOf(n, "Reason", "Decision")}
	switch n := n.(type) {
	case *ast.ValueSpec:
		typed := map[string]string{"gate/verdict.go": "Reason", "vault/errors.go": "Class", "modelproxy/refusal.go": "Code"}[path]
		if name(n.Type) == typed && typed != "" || path == "permission/check.go" && n.Type == nil && !strings.HasPrefix(n.Names[0].Name, "Mode") {
			for _, v := range n.Values {
				codes = append(codes, text(v))
			}
		}
	case *ast.KeyValueExpr:
		if strings.HasPrefix(name(n.Key), "egressReasonREASON_") {
			codes = append(codes, text(n.Value))
		}
	case *ast.CallExpr:
		at, ok := map[string]int{"refuse": 1, "builtIn": 2, "write": 0}[name(n.Fun)]
		within := map[string]string{"refuse": "bridge/", "write": "daemon/update.go"}[name(n.Fun)]
		if ok && at < len(n.Args) && strings.HasPrefix(path, within) {
			codes = append(codes, text(n.Args[at]))
		}
	}
	return slices.DeleteFunc(codes, func(s string) bool { return s == "" })
}

// keyOf is the literal value of a key in a composite literal of one of the types; empty: n is none.
func keyOf(n ast.Node, key string, types ...string) string {
	lit, ok := n.(*ast.CompositeLit)
	if !ok || !slices.Contains(types, name(lit.Type)) {
		return ""
	}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok && name(kv.Key) == key {
			return text(kv.Value)
		}
	}
	return ""
}

// name is an identifier, without its package.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// text is the value of a string literal.
func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}
