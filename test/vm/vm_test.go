package vm

import (
	"cmp"
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// groups has what is special about a group; those that are not named have the defaults.
var groups = map[string]Group{
	"agents": {MemMiB: 4096, Takes: 600},
	"answers": {Takes: 250, Long: "^TestAnswers$/^B70$|^TestAnswers$/^B145$/^(joined|taken-mapped)$",
		Newest: "^TestAnswers$/^(B69_listed|B81_B126_devices|B86_never_answers|B117_switch|B119_.*|B135_other_directory)$"},
	"bare":         {Takes: 150, CPUs: 1},
	"bridge":       {Once: true, Takes: 80},
	"cascade":      {Once: true},
	"cgroups":      {Once: true, Takes: 130, Long: "^TestCgroups$/^B90_full$"},
	"clients":      {Timeout: time.Hour, Root: "clients", MemMiB: 4096, Takes: 600},
	"containers":   {Root: "containers", Systemd: true, Once: true, Takes: 150, Long: "^(TestNoLeak|TestNoSensor|TestPods)$"},
	"containers13": {Of: "containers", Root: "containers13", Systemd: true, Once: true},
	"deb":          {Root: "containers", Systemd: true, Once: true, Takes: 150},
	"deb13":        {Of: "deb", Root: "containers13", Systemd: true, Once: true},
	"egress":       {Takes: 400, Long: "^TestHooks$/^(by_hand|last|lost|policy)$", Newest: "^TestHooks$|^Test$/^B67$/^own$"},
	"exec":         {Takes: 80},
	"failure":      {Timeout: time.Hour, Takes: 1000},
	"fleet":        {Once: true, Takes: 80},
	"load":         {Timeout: 2 * time.Hour, Takes: 1000},
	"monitoring":   {Once: true, Takes: 100},
	"names":        {Once: true, Takes: 80, Long: "^TestNames$/^runs_out$"},
	"operator":     {Once: true},
	"session": {Takes: 450, Long: "^TestAnnounced$/^webhook_down$|^TestSession$/^F07_approvals_that_go_on$/^(taint_.*|time)$|^TestSession$/^F45_twins$/^(denied|untainted)$" +
		"|^TestSession$/^F05_G24_B37_waits_to_begin$/^grant_expires$", Newest: "^(TestAnnounced|TestB43Model|TestMetrics)$|^TestSession$/^(F05_G24_B37_waits_to_begin|F07_approvals_that_go_on|F45_twins|F01_F05_G24_threads|G24_each_destination_has_its_own_time|G16_equal_askers" +
		"|F01_G16_G24_narrow|F01_G7_passed_by_the_reviewer|F01_F02_scope|F01_F02_scope_of_many|F01_G24_children_ask|F05_orphans_wait|B51_escapes" +
		"|F01_B15_B30_G16_an_approval_is_for_one|F05_nobody_sees_it|G15_interactive_shell|B27_.*|modes.*|B32_policy_of_a_session_that_is_gone|B95_floods_leave_room|B97_listed_no_more|F05_B38_signals|B38_storm|B36_B37_orphan_of_a_command_that_ended_meanwhile|G16_programs)$" +
		"|^TestSession$/^B30_B37_B38_siblings$/^comes_.*|^TestSession$/^B96_left_in_a_message$/^restart$"},
	"soak":    {Timeout: 3 * time.Hour, MemMiB: 2048, Takes: 1000},
	"sources": {Takes: 200, Long: "^(TestWithoutSensor|TestVolumesWithoutSensor)$"},
	"systemd": {Root: "containers", Systemd: true, Once: true, Long: "^TestSystemd$/^(watchdog|B32_killed_for_good)$"},
}

// needs names the groups that take long, or an image or packages of their own, and what asks for them: one of these in the environment.
var needs = map[string][]string{
	"agents":  {failureEnv}, // test/agents runs them elsewhere
	"bare":    {failureEnv},
	"clients": {clientsEnv},
	"deb":     {debsEnv},
	"failure": {failureEnv, loadEnv},
	"fleet":   {failureEnv},
	"load":    {loadEnv},
	"soak":    {soakEnv},

	"monitoring": {failureEnv},
}

// programs are those that one group alone needs, and their packages.
var programs = map[string]map[string]string{
	"fleet": {"weir-fleet": "./cmd/fleet", "nats-server": "github.com/nats-io/nats-server/v2"},

	"monitoring": {"weir-otel": "./cmd/otel"},
}

// attacks386 names the attack programs that are also built for 32 bits, as attack/NAME.386.
var attacks386 = []string{"egress", "execs"}

// TestVM runs each package below guest in a VM of its own on each kernel. Results are TestVM/KERNEL/GROUP/TEST.
func TestVM(t *testing.T) {
	host, err := NewHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := host.DependOnSources(); err != nil {
		t.Fatal(err)
	}
	kernels, err := Kernels(host.Repo)
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	buildPrograms(t, host, bin)
	build := map[string]func() error{} // once for all kernels, and only what -run names
	names := slices.DeleteFunc(packages(t, host, "guest"), func(name string) bool {
		if envs, left := needs[name]; left && !slices.ContainsFunc(envs, func(env string) bool { return os.Getenv(env) != "" }) {
			return true
		}
		tests, err := filepath.Glob(filepath.Join(host.Repo, "test/vm/guest", name, "*_test.go"))
		return err != nil || len(tests) == 0 // what tests share
	})
	for _, name := range names {
		build[name] = sync.OnceValue(func() error {
			for program, pkg := range programs[name] {
				if err := host.Build(context.Background(), filepath.Join(bin, program), pkg, "amd64", false); err != nil {
					return err
				}
			}
			return host.Build(context.Background(), filepath.Join(bin, name+".test"), "./test/vm/guest/"+name, "amd64", true)
		})
	}
	for name, g := range groups {
		if asks := cmp.Or(slices.Concat(needs[g.Of], []string{failureEnv})...); g.Of != "" && os.Getenv(asks) != "" { // their images and runs take long: make failures, make release-test
			names, build[name] = append(names, name), build[g.Of]
		}
	}
	slices.Sort(names)
	slices.SortStableFunc(names, func(a, b string) int { return groups[b].Takes - groups[a].Takes })
	var jobs []job
	for _, name := range names {
		for i := range kernels {
			if !groups[name].Once || i == len(kernels)-1 || os.Getenv(failureEnv) != "" {
				jobs = append(jobs, job{i, name})
			}
		}
	}
	inOrder(t, kernels, jobs, func(t *testing.T, j job) {
		if err := build[j.group](); err != nil {
			t.Fatal(err)
		}
		g := groups[j.group]
		g.Name = j.group
		switch cmp.Or(g.Of, g.Name) {
		case "agents":
			g.Shares = agentPrograms(t, host)
		case "monitoring":
			dir, err := filepath.EvalSymlinks(filepath.Join(host.Repo, ".cache/prometheus"))
			if err != nil {
				t.Fatalf("find Debian's prometheus: %v: run scripts/prometheus", err)
			}
			g.Shares = []Share{{dir, "/prometheus"}}
		case "deb":
			g.Shares = []Share{{os.Getenv(debsEnv), "/debs"}}
		}
		host.RunGroup(t, kernels[j.kernel], j.kernel == len(kernels)-1, g, bin)
	})
}

// job is a group on one of the kernels.
type job struct {
	kernel int
	group  string
}

// inOrder runs jobs as subtests of their kernels', in this order, as many at a time as -parallel says. With t.Parallel they would begin in
// any order, and a long one that comes last leaves the other processors idle.
func inOrder(t *testing.T, kernels []Kernel, jobs []job, run func(*testing.T, job)) {
	t.Helper()
	atATime, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	if err != nil {
		t.Fatal(err)
	}
	var open, busy sync.WaitGroup
	over, next := make(chan struct{}), make(chan job)
	tests := make([]*testing.T, len(kernels)) // nil: -run leaves it out
	for i, k := range kernels {
		begun := make(chan *testing.T, 1)
		open.Go(func() {
			t.Run(k.Version, func(t *testing.T) {
				begun <- t
				<-over
			})
			close(begun)
		})
		tests[i] = <-begun
	}
	for range atATime {
		busy.Go(func() {
			for j := range next {
				tests[j.kernel].Run(j.group, func(t *testing.T) { run(t, j) })
			}
		})
	}
	for _, j := range jobs {
		if tests[j.kernel] != nil {
			next <- j
		}
	}
	close(next)
	busy.Wait()
	close(over)
	open.Wait()
}

// agentPrograms is what scripts/agents has put there; nothing if it could not, which is told.
func agentPrograms(t *testing.T, host *Host) []Share {
	t.Helper()
	dir, err := filepath.EvalSymlinks(filepath.Join(host.Repo, ".cache/agents"))
	if err != nil {
		t.Logf("***** NO AGENT IS TESTED IN A VM: run scripts/agents, with npm *****")
		return nil
	}
	return []Share{{dir, "/agents"}}
}

// buildPrograms puts weir and the attack programs where every guest finds them.
func buildPrograms(t *testing.T, host *Host, bin string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(host.Repo, "cmd/sensor")); err == nil {
		if err := host.Build(t.Context(), filepath.Join(bin, "weir"), "./cmd/sensor", "amd64", false); err != nil {
			t.Fatal(err)
		}
		buildNext(t, host, filepath.Join(bin, "weir-next"))
	}
	if err := host.Build(t.Context(), filepath.Join(bin, "weir-hook"), "./cmd/hook", "amd64", false); err != nil {
		t.Fatal(err)
	}
	for _, name := range packages(t, host, "attack") {
		file, pkg := filepath.Join(bin, "attack", name), "./test/vm/attack/"+name
		if err := host.Build(t.Context(), file, pkg, "amd64", false); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(attacks386, name) {
			if err := host.Build(t.Context(), file+".386", pkg, "386", false); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// packages lists the directories in test/vm/DIR; there are none if it does not exist.
func packages(t *testing.T, host *Host, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(host.Repo, "test/vm", dir))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}
