package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code    = regexp.MustCompile("(?s)```.*?```")
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the targets in a document, as GitHub names them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return code.ReplaceAllString(string(b), "")
}

func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, p := range patterns {
		files, err := filepath.Glob(p)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", p, files, err)
		}
		all = append(all, files...)
	}
	return all
}

// TestLinks: no document links to a file or a section that is not there.
func TestLinks(t *testing.T) {
	for _, file := range glob(t, "../*.md", "*.md", "decisions/*.md") {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: there is no such file", file, m[1])
			} else if anchor != "" && !anchors(read(t, target))[anchor] {
				t.Errorf("%s links to %s: there is no such section", file, m[1])
			}
		}
	}
}

// TestIndex: docs/README.md links to every document.
func TestIndex(t *testing.T) {
	linked := map[string]bool{}
	for _, m := range link.FindAllStringSubmatch(read(t, "README.md"), -1) {
		linked[m[1]] = true
	}
	for _, file := range glob(t, "*.md", "*.json", "decisions") {
		if file != "README.md" && !linked[file] {
			t.Errorf("docs/README.md does not link to %s", file)
		}
	}
}

var second = regexp.MustCompile(`[.!?…] +\p{Lu}`)

// TestLimits: each cell of the tables in docs/limits.md is one sentence of at most 30 words.
func TestLimits(t *testing.T) {
	rows := 0
	for i, line := range strings.Split(read(t, "limits.md"), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what ") {
			continue
		}
		rows++
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		if len(cells) != 3 {
			t.Errorf("line %d has %d cells, want 3", i+1, len(cells))
		}
		for _, cell := range cells {
			if n := len(strings.Fields(cell)); n > 30 {
				t.Errorf("line %d: %d words, want at most 30: %s", i+1, n, cell)
			}
			if !strings.HasSuffix(cell, ".") || second.MatchString(cell) {
				t.Errorf("line %d is not one sentence: %s", i+1, cell)
			}
		}
	}
	if rows < 100 {
		t.Errorf("docs/limits.md has %d rows: want the whole list", rows)
	}
}

var (
	place   = regexp.MustCompile("`([\\w./]+\\.(?:go|c|h)):(\\w+)`")
	quoted  = regexp.MustCompile("`([^`]+)`")
	mapped  = regexp.MustCompile(`\} (\w+) SEC\("\.maps"\)`)
	program = regexp.MustCompile(`(?:BPF_PROG\(|\nint )(weir_\w+)`)
)

// section gives the text below a heading of architecture.md.
func section(t *testing.T, title string) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, "architecture.md"), "\n## "+title+"\n")
	if !found {
		t.Fatalf("architecture.md has no section %q", title)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// firsts are the quoted words of the first cells of a section's table.
func firsts(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") {
			for _, m := range quoted.FindAllStringSubmatch(cells[0], -1) {
				all[m[1]] = true
			}
		}
	}
	return all
}

// same compares what a table names with what there is.
func same(t *testing.T, what string, named, there map[string]bool) {
	t.Helper()
	for name := range there {
		if !named[name] {
			t.Errorf("architecture.md does not name the %s %s", what, name)
		}
	}
	for name := range named {
		if !there[name] {
			t.Errorf("architecture.md names the %s %s, which is not there", what, name)
		}
	}
}

// TestFunctions: each function that architecture.md names is in the file that it names.
func TestFunctions(t *testing.T) {
	named := place.FindAllStringSubmatch(read(t, "architecture.md"), -1)
	for _, m := range named {
		declared := `(?m)^(?:func (?:\([^)]*\) )?` + m[2] + `[\[(]|.*\bint ` + m[2] + `\(|int BPF_PROG\(` + m[2] + `\b)`
		data, err := os.ReadFile(filepath.Join("..", m[1]))
		if err != nil || !regexp.MustCompile(declared).Match(data) {
			t.Errorf("architecture.md names %s in %s: it is not there (%v)", m[2], m[1], err)
		}
	}
	if len(named) < 50 {
		t.Errorf("architecture.md names %d functions, want both walks", len(named))
	}
}

var path = regexp.MustCompile("`((?:bpf|cmd|deploy|docs|internal|scripts|test)/[\\w./-]+)(?::\\w+)?`")

// TestPaths: each file and folder of the repository that a document names is there.
func TestPaths(t *testing.T) {
	for _, file := range glob(t, "../*.md", "*.md", "decisions/*.md") {
		for _, m := range path.FindAllStringSubmatch(read(t, file), -1) {
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s names %s: there is no such file", file, m[1])
			}
		}
	}
}

// TestTables: architecture.md names every map, program and package, and no other.
func TestTables(t *testing.T) {
	maps, programs, packages := map[string]bool{}, map[string]bool{}, map[string]bool{"cmd/sensor": true, "cmd/hook": true, "cmd/fleet": true, "cmd/otel": true}
	for _, file := range glob(t, "../bpf/*.c", "../bpf/*.h") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mapped.FindAllSubmatch(data, -1) {
			maps[string(m[1])] = true
		}
		for _, m := range program.FindAllSubmatch(data, -1) {
			programs[string(m[1])] = true
		}
	}
	for _, file := range glob(t, "../internal/*/*.go", "../internal/*/*/*.go") {
		packages[strings.TrimPrefix(filepath.Dir(file), "../")] = true
	}
	same(t, "map", firsts(section(t, "State in the kernel")), maps)
	same(t, "program", firsts(section(t, "Programs")), programs)
	same(t, "package", firsts(section(t, "Packages")), packages)
}

var id = regexp.MustCompile(`\b[BFGKMPV]\d{1,3}\b`)

// TestNoIDs: the ids of ways out and requirements are for the code; no text that a user reads on the command line has one.
func TestNoIDs(t *testing.T) {
	for _, file := range glob(t, "../cmd/*/*.go", "../internal/*/*.go", "../internal/*/*/*.go") {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "_bpfel.go") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING && id.MatchString(text.Value) {
				t.Errorf("%s has an id: %s", set.Position(text.Pos()), text.Value)
			}
			return true
		})
	}
}
