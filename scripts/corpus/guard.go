package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"weir/internal/toolguard"
)

// refusal is a row that the guard refused, by which rule.
type refusal struct {
	row row
	hit toolguard.Hit
}

func dialect(r row) toolguard.Dialect {
	switch r.Executor {
	case "powershell":
		return toolguard.PowerShell
	case "command_prompt":
		return toolguard.Cmd
	}
	return toolguard.POSIX
}

// guardSet is a number of rows with what the guard should do with them.
type guardSet struct {
	name, what string
	rows       []row
	refuse     bool
	goal       string
	met        func(refused, rows int) bool
}

func guardSets(dir string) ([]guardSet, error) {
	files := map[string][]row{}
	for _, name := range []string{"benign_powershell", "benign_shell", "attack_powershell", "attack_shell"} {
		rows, err := read(dir, name+".jsonl")
		if err != nil {
			return nil, err
		}
		files[name] = rows
	}
	for i := range files["benign_powershell"] {
		files["benign_powershell"][i].Executor = "powershell"
	}
	keep := func(rows []row, want func(row) bool) []row {
		return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !want(r) })
	}
	zero := func(refused, rows int) bool { return rows > 0 && refused == 0 }
	any := func(int, int) bool { return true }
	shell := files["benign_shell"]
	return []guardSet{
		{"guard-ps", "documentation of PowerShell, topics of the guard left out", keep(files["benign_powershell"], func(r row) bool { return !r.Topic }), false, "listed below", any},
		{"guard-agents", "agents' commands", keep(shell, func(r row) bool { return strings.HasPrefix(r.Source, "agent/") }), false, "listed below", any},
		{"guard-people", "people's commands", keep(shell, func(r row) bool { return !strings.HasPrefix(r.Source, "agent/") }), false, "listed below", any},
		{"guard-attack", "attack techniques on Windows that are topics of the guard", keep(files["attack_powershell"], func(r row) bool { return len(r.Category) > 0 }), true, "≥ 95 %",
			func(refused, rows int) bool { return rows > 0 && 100*refused >= 95*rows }},
		{"guard-other", "attack techniques on Windows that are none", keep(files["attack_powershell"], func(r row) bool { return len(r.Category) == 0 }), true, "", any},
		{"guard-dcg-traps", "false_positives of a destructive-command guard", keep(files["attack_shell"], func(r row) bool { return strings.HasPrefix(r.Technique, "false_positives/") }), false, "0", zero},
		{"guard-dcg-allow", "what that guard allows", keep(files["attack_shell"], func(r row) bool { return r.Source == "dcg" && r.Expected == "allow" }), false, "listed below", any},
		{"guard-dcg-deny", "what that guard denies; most is no topic of this one", keep(files["attack_shell"], func(r row) bool { return r.Source == "dcg" && r.Expected == "deny" }), true, "", any},
		{"guard-linux", "attack techniques on Linux", keep(files["attack_shell"], func(r row) bool { return r.Source == "atomic-red-team" }), true, "", any},
	}, nil
}

func judge(g *toolguard.Guard, rows []row) (refused []refusal, passed []row) {
	for _, r := range rows {
		if hit, ok := g.Script(dialect(r), r.Command); ok {
			refused = append(refused, refusal{r, hit})
		} else {
			passed = append(passed, r)
		}
	}
	return refused, passed
}

// otherwise counts the rows that the guard judges otherwise among other lines when it reads all of them (K2).
func otherwise(g *toolguard.Guard, sets []guardSet) (n int) {
	for _, s := range sets {
		for _, r := range s.rows {
			text := strings.Repeat("cd work\nmake all\n", 40) + r.Command + "\nls"
			part, _ := g.Script(dialect(r), text)
			if whole, _ := g.Whole(dialect(r), text); part.ID() != whole.ID() {
				n++
			}
		}
	}
	return n
}

// guard prints what the guard refuses of each set.
func guard(out io.Writer, dir string) error {
	sets, err := guardSets(dir)
	if err != nil {
		return err
	}
	g := toolguard.New(toolguard.Options{Names: toolguard.InstalledNames()})
	fmt.Fprintln(out, "\nThe guard of tool calls:")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SET\tROWS\tREFUSED\t\tWANTED\tWHAT")
	missed := false
	for _, s := range sets {
		refused, _ := judge(g, s.rows)
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f %%\t%s\t%s\n", s.name, len(s.rows), len(refused), 100*float64(len(refused))/float64(max(1, len(s.rows))), s.goal, s.what)
		missed = missed || !s.met(len(refused), len(s.rows))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n := otherwise(g, sets); n > 0 {
		fmt.Fprintf(out, "%d rows among other lines are judged otherwise when all is read\n", n)
		missed = true
	}
	tellRefused(out, g, sets)
	i := slices.IndexFunc(sets, func(s guardSet) bool { return s.name == "guard-attack" })
	if err := tellTechniques(out, g, sets[i]); err != nil {
		return err
	}
	tellDCG(out, g, sets)
	if !tellEvasion(out, g) || missed {
		return errMissed
	}
	return nil
}

// listGuard prints the rows of a set that are not judged as wanted; false if there is no such set.
func listGuard(out io.Writer, dir, name string) (bool, error) {
	if !strings.HasPrefix(name, "guard-") {
		return false, nil
	}
	sets, err := guardSets(dir)
	if err != nil {
		return true, err
	}
	i := slices.IndexFunc(sets, func(s guardSet) bool { return s.name == name })
	if i < 0 {
		return false, nil
	}
	refused, passed := judge(toolguard.New(toolguard.Options{Names: toolguard.InstalledNames()}), sets[i].rows)
	if sets[i].refuse {
		for _, r := range passed {
			fmt.Fprintf(out, "%s\t%q\n", r.Technique, r.Command)
		}
		return true, nil
	}
	for _, r := range refused {
		fmt.Fprintf(out, "%s\t%s\t%q\n", r.hit.ID(), r.row.Source, r.row.Command)
	}
	return true, nil
}
