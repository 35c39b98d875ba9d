// Command bypasses writes docs/bypasses.md: each way out that must not work, what stops it, and how its tests ended;
// and docs/requirements.md: what Weir must do, and the tests that show it.
//
//	bypasses FILE                  anew from the table; what the file says of kernels and results stays
//	bypasses FILE RESULTS          with the results in a file of go test -json
//	bypasses -packages             the packages whose tests name a way out and boot nothing
//	bypasses -groups               the same of VMs, as a pattern
//	bypasses -requirements REPO    REPO/docs/requirements.md, by the names of the tests in REPO
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const intro = `# Ways out that are tried

Each row is a way out of a tainted container, or past who decides, that the tests try. ` + "`make bypasses`" + ` runs them all on every kernel and writes
the last two columns; the others are the table in ` + "`scripts/bypasses`" + `. A test of the first column's id has it in its name. Whether something got out
is asked of the receiver. What does not hold, or only in part, is in [limits.md](limits.md).

- **kernels**: those that its tests ran on, in a VM; "no VM" if some of them need no kernel.
- **result**: how many tests there were, and which of them failed.

| id | the attempt | what stops it | kernels | result |
|---|---|---|---|---|
`

const guests = "test/vm/guest/"

// noVM stands in place of a kernel.
const noVM = "no VM"

// in finds ids in the name of a test, as TestB51Question and B24_B25_forged have them. None is B00, which is in keys of Slack.
var in = regexp.MustCompile(`B(?:0[1-9]|[1-9][0-9]{1,2})|[GKMPV][1-9][0-9]?`)

// begin finds the ids with which a string in a test begins, as the names of subtests do.
var begin = regexp.MustCompile(`^(?:(?:[BF][0-9]{2,3}|[GKMPV][1-9][0-9]?)(?:[^0-9A-Za-z]|$))+`)

// place is a test that names an id, in its folder. The test is "" where the name is in a table beside its function.
type place struct{ dir, test string }

// outcome is how the tests of one way out ended.
type outcome struct{ kernels, result string }

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bypasses:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "-requirements":
		named, err := sources(args[1])
		if err != nil {
			return err
		}
		return save(filepath.Join(args[1], "docs/requirements.md"), required(named))
	case len(args) == 1 && strings.HasPrefix(args[0], "-"):
		named, err := sources(".")
		if err != nil {
			return err
		}
		return list(out, args[0], named)
	case len(args) == 1:
		results, err := written(args[0])
		if err != nil {
			return err
		}
		return write(args[0], results)
	case len(args) == 2:
		f, err := os.Open(args[1])
		if err != nil {
			return fmt.Errorf("read results: %w", err)
		}
		defer f.Close()
		results, failed, err := read(f)
		if err != nil {
			return err
		}
		if err := write(args[0], results); err != nil {
			return err
		}
		if len(failed) > 0 {
			return fmt.Errorf("these failed: %s", strings.Join(failed, ", "))
		}
		return nil
	}
	return errors.New("read arguments: want FILE, FILE RESULTS, -packages, -groups or -requirements REPO")
}

func list(out io.Writer, what string, named map[string][]place) error {
	dirs := map[string]bool{}
	for id, places := range named {
		for _, p := range places {
			if id[0] == 'B' {
				dirs[p.dir] = true
			}
		}
	}
	var packages, groups []string
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		switch group, guest := strings.CutPrefix(dir, guests); {
		case !guest:
			packages = append(packages, "./"+dir)
		case group != "rig": // its table is the others'
			groups = append(groups, group)
		}
	}
	switch what {
	case "-packages":
		fmt.Fprintln(out, strings.Join(packages, " "))
	case "-groups":
		fmt.Fprintln(out, strings.Join(groups, "|"))
	default:
		return fmt.Errorf("read arguments: unknown flag %s", what)
	}
	return nil
}

// sources finds the tests that name each id: in a function's name, or at the beginning of a string, as tables and subtests do.
func sources(repo string) (map[string][]place, error) {
	named := map[string][]place{}
	for _, top := range []string{"cmd", "internal", "test"} {
		err := filepath.WalkDir(filepath.Join(repo, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || !strings.HasSuffix(path, "_test.go") && !strings.Contains(filepath.ToSlash(path), guests+"rig/") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			dir, err := filepath.Rel(repo, filepath.Dir(path))
			if err != nil {
				return err
			}
			add := func(ids, test string) {
				for _, id := range in.FindAllString(ids, -1) {
					if p := (place{filepath.ToSlash(dir), test}); !slices.Contains(named[id], p) {
						named[id] = append(named[id], p)
					}
				}
			}
			for _, decl := range file.Decls {
				test := ""
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
					test = f.Name.Name
					add(test, test)
				}
				ast.Inspect(decl, func(n ast.Node) bool {
					lit, ok := n.(*ast.BasicLit)
					if !ok || lit.Kind != token.STRING {
						return true
					}
					text, err := strconv.Unquote(lit.Value)
					if ids := begin.FindString(text); err == nil && ids != "" {
						sub := ""
						if test != "" {
							if sub = test + "/" + strings.ReplaceAll(text, " ", "_"); strings.HasSuffix(sub, "_") {
								sub += "…" // the rest is computed
							}
						}
						add(ids, sub)
					}
					return true
				})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read tests: %w", err)
		}
	}
	return named, nil
}

// event is one line of go test -json.
type event struct{ Action, Package, Test string }

// read tells how the tests of each id ended, and which tests and packages failed. A test with subtests counts for nothing but those.
func read(r io.Reader) (map[string]outcome, []string, error) {
	ended := map[string]string{} // action by test, in its package
	var failed []string
	for dec := json.NewDecoder(bufio.NewReader(r)); ; {
		var e event
		if err := dec.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			return nil, nil, fmt.Errorf("read results: %w", err)
		}
		switch e.Action {
		case "run":
			ended[e.Package+" "+e.Test] = "did not end"
		case "pass", "skip", "fail":
			if e.Test != "" {
				ended[e.Package+" "+e.Test] = e.Action
			}
			if e.Action == "fail" {
				failed = append(failed, strings.TrimSpace(e.Package+" "+e.Test))
			}
		}
	}
	parents := map[string]bool{}
	for name := range ended {
		for i, c := range name {
			if c == '/' {
				parents[name[:i]] = true
			}
		}
	}
	kernels, count, bad := map[string][]string{}, map[string]int{}, map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(ended)) {
		if parents[name] {
			continue
		}
		_, test, _ := strings.Cut(name, " ")
		kernel := noVM
		if rest, vm := strings.CutPrefix(test, "TestVM/"); vm {
			kernel, test, _ = strings.Cut(rest, "/")
		}
		for _, id := range slices.Compact(slices.Sorted(slices.Values(in.FindAllString(test, -1)))) {
			if kernels[id] = append(kernels[id], kernel); ended[name] != "pass" {
				bad[id] = append(bad[id], strings.TrimPrefix(kernel+" ", noVM+" ")+test)
			}
			count[id]++
		}
	}
	results := map[string]outcome{}
	for id, on := range kernels {
		result := "1 test passes"
		switch {
		case len(bad[id]) > 0:
			result = fmt.Sprintf("%d of %d fail: %s", len(bad[id]), count[id], strings.Join(bad[id], ", "))
		case count[id] > 1:
			result = fmt.Sprintf("%d tests pass", count[id])
		}
		results[id] = outcome{strings.Join(ordered(on), ", "), strings.ReplaceAll(result, "|", `\|`)}
	}
	return results, failed, nil
}

// ordered has the older kernel first, and what needs none last.
func ordered(kernels []string) []string {
	slices.SortFunc(kernels, func(a, b string) int {
		if len(a) != len(b) { // 6.1 is older than 6.12
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(kernels)
}

// written reads back what a file says of kernels and results.
func written(file string) (map[string]outcome, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the results so far: %w", err)
	}
	results := map[string]outcome{}
	for line := range strings.Lines(string(b)) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) == 5 {
			results[strings.TrimPrefix(cells[0], "| ")] = outcome{cells[3], strings.TrimSuffix(cells[4], " |")}
		}
	}
	return results, nil
}

func write(file string, results map[string]outcome) error {
	b := strings.Builder{}
	b.WriteString(intro)
	for _, row := range table {
		o, tried := results[row.id]
		if !tried {
			o = outcome{"–", "not run"}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.id, row.attempt, row.stops, o.kernels, o.result)
	}
	return save(file, b.String())
}

func save(file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return nil
}
