package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/classify"
)

// set is a number of commands that one figure is about.
type set struct {
	name, what string
	rows       []string
	// wantLocal says which rows -list shows: those that are not local, or those that are.
	wantLocal bool
	goal      goal
	git       classify.Git // nil: the text alone is judged
}

func (s set) judge(text string) classify.Result { return classify.ShellWith(text, workspace, s.git) }

// quiet is a repository without a setting that runs anything, as most are.
func quiet(string) string { return "" }

// goal is what is wanted of a set; must makes a miss a failure.
type goal struct {
	text string
	must bool
	met  func(local, rows int) bool
}

var (
	anyShare = goal{}
	none     = goal{"0", true, func(local, rows int) bool { return rows > 0 && local == 0 }}
)

func atLeast(percent int, must bool) goal {
	return goal{fmt.Sprintf("≥ %d %%", percent), must, func(local, rows int) bool { return rows > 0 && 100*local >= percent*rows }}
}

// row has the fields of all files.
type row struct {
	Command, Code, Expect, Function, Source, Technique, Executor, Expected string

	Category []string `json:"guard_category"`
	Topic    bool     `json:"guard_topic"`
}

// runs are the functions of GTFOBins that run code or use the network.
var runs = []string{"shell", "command", "reverse-shell", "bind-shell", "upload", "download", "library-load", "inherit", "privilege-escalation"}

// listed is the list of commands of G5.
const listed = " awk base64 basename bc cal cat column comm cut date df diff dirname du echo expand expr fd file find fmt fold free grep head hexdump" +
	" id iconv jq less locale ls lscpu md5sum mktemp nl nproc od paste pwd readelf realpath rev rg sed seq sha256sum sort stat strings tac tail tr" +
	" tree type uname unexpand uniq uptime wc which whoami xargs xxd "

// load reads the files and makes the sets, in the order in which they are printed.
func load(dir string) ([]set, error) {
	curated, err := read(dir, "curated_shell.jsonl")
	if err != nil {
		return nil, err
	}
	bins, err := read(dir, "gtfobins.jsonl")
	if err != nil {
		return nil, err
	}
	attack, err := read(dir, "attack_shell.jsonl")
	if err != nil {
		return nil, err
	}
	benign, err := read(dir, "benign_shell.jsonl")
	if err != nil {
		return nil, err
	}
	agent := func(r row) bool { return strings.HasPrefix(r.Source, "agent/") }
	expect := func(e string) func(row) bool { return func(r row) bool { return r.Expect == e } }
	bin := func(runsCode bool) func(row) bool {
		return func(r row) bool { return slices.Contains(runs, r.Function) == runsCode }
	}
	return []set{
		{"not_local", "curated vectors that are not local", pick(curated, expect("not_local")), false, none, nil},
		{"local", "curated vectors that are local", pick(curated, expect("local")), true, atLeast(95, true), nil},
		{"write", "curated vectors that write; some are harmless", pick(curated, expect("write")), true, anyShare, nil},
		{"gtfobins", "GTFOBins rows that run code or use the network", pick(bins, bin(true)), false, none, nil},
		{"gtfofiles", "GTFOBins rows that read or write files", pick(bins, bin(false)), false, anyShare, nil},
		{"attack", "attack techniques; some rows are harmless alone", pick(attack, func(row) bool { return true }), false, anyShare, nil},
		{"words", "agents' commands made only of listed words, without writing redirections",
			pick(benign, func(r row) bool { return agent(r) && onlyListed(r.Command) }), true, atLeast(97, true), nil},
		{"agent", "agents' commands", pick(benign, agent), true, atLeast(55, false), nil},
		{"agentgit", "agents' commands in a repository that runs nothing", pick(benign, agent), true, atLeast(67, true), quiet},
		{"nl2bash", "people's commands", pick(benign, func(r row) bool { return r.Source == "nl2bash" }), true, anyShare, nil},
	}, nil
}

func read(dir, name string) ([]row, error) {
	file := filepath.Join(dir, name)
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: say where the data is, as in make corpus CORPORA=DIR", file, unwrapPath(err))
	}
	defer f.Close()
	var rows []row
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for n := 1; lines.Scan(); n++ {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("read %s: line %d: %w", file, n, err)
		}
		rows = append(rows, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("read %s: no rows", file)
	}
	return rows, nil
}

// unwrapPath takes the path out of an error that names it once already.
func unwrapPath(err error) error {
	if pathErr, ok := err.(*os.PathError); ok {
		return pathErr.Err
	}
	return err
}

func pick(rows []row, want func(row) bool) []string {
	var out []string
	for _, r := range rows {
		if want(r) {
			out = append(out, r.Command+r.Code)
		}
	}
	return out
}

// onlyListed tells whether each simple command of a text is one of G5's list by its literal first word, with no declaration, bare
// assignment, function or redirection to a file among them. /dev/null is no file.
func onlyListed(text string) bool {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return false
	}
	calls, ok := 0, true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			calls++
			ok = ok && len(n.Args) > 0 && strings.Contains(listed, " "+path.Base(n.Args[0].Lit())+" ")
		case *syntax.DeclClause, *syntax.FuncDecl, *syntax.LetClause, *syntax.CoprocClause, *syntax.ArithmCmd, *syntax.TestClause:
			ok = false
		case *syntax.Redirect:
			ok = ok && !writes(n)
		}
		return ok
	})
	return ok && calls > 0
}

func writes(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrIn, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return false
	case syntax.DplOut:
		return !strings.ContainsAny(r.Word.Lit(), "0123456789-")
	}
	return r.Word.Lit() != "/dev/null"
}
