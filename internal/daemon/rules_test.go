package daemon

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"weir/internal/bridge"
	"weir/internal/event"
	"weir/internal/permission"
)

// told keeps the texts of events.
type told []string

func (l *told) Write(e event.Event) error { *l = append(*l, e.Message); return nil }

// TestRulesThatCannotBeReadP3: each file of permission rules counts by itself. A broken one counts as it last could be read; if that never was, what it
// may deny is denied.
func TestRulesThatCannotBeReadP3(t *testing.T) {
	const broken, gone = "deny: [", "-"
	type files struct{ own, managed string }
	curl, ls, mail, web, read := call(`Bash`, `{"command":"curl https://example.com"}`), call(`Bash`, `{"command":"ls -l"}`), call(`mcp__mail__send`, `{}`), call(`WebSearch`, `{}`), call(`Read`, `{"file_path":"/work/a"}`)
	for name, c := range map[string]struct {
		steps   []files
		denied  []permission.Call
		allowed []permission.Call
		says    []string
	}{
		"both are good":             {[]files{{"deny: [WebSearch]", "deny: [mcp__mail__send]"}}, []permission.Call{web, mail}, []permission.Call{curl, ls, read}, nil},
		"none is there":             {[]files{{gone, gone}}, nil, []permission.Call{web, mail, curl, ls, read}, nil},
		"ours is broken":            {[]files{{broken, "deny: [mcp__mail__send, Read]"}}, []permission.Call{web, mail, curl, read}, []permission.Call{ls}, []string{"permissions.yaml are not known"}},
		"the managed one is broken": {[]files{{"deny: ['Bash(ls -l)']", broken}}, []permission.Call{web, mail, curl, ls}, []permission.Call{read}, []string{"managed-permissions.yaml are not known"}},
		"both are broken":           {[]files{{broken, broken}}, []permission.Call{web, mail, curl}, []permission.Call{ls, read}, []string{"permissions.yaml are not known", "managed-permissions.yaml are not known"}},
		"argv":                      {[]files{{broken, gone}}, []permission.Call{call("container.exec", `{"command":["curl","x"]}`)}, nil, []string{"permissions.yaml are not known"}},
		"ours was good before":      {[]files{{"deny: [WebSearch]", "deny: [mcp__mail__send]"}, {broken, "deny: [mcp__mail__send, Read]"}}, []permission.Call{web, mail, read}, []permission.Call{curl, ls}, []string{"permissions.yaml stay as they were"}},
		"theirs was good before":    {[]files{{gone, "deny: [mcp__mail__send]"}, {"deny: [WebSearch]", broken}}, []permission.Call{web, mail}, []permission.Call{curl, ls, read}, []string{"managed-permissions.yaml stay as they were"}},
		"ours was not there before": {[]files{{gone, gone}, {broken, "deny: [WebSearch]"}}, []permission.Call{web}, []permission.Call{curl, mail}, []string{"permissions.yaml stay as they were"}},
		"it was mended":             {[]files{{broken, "deny: [mcp__mail__send]"}, {"deny: [WebSearch]", "deny: [mcp__mail__send]"}}, []permission.Call{web, mail}, []permission.Call{curl, ls}, []string{"permissions.yaml are known now"}},
		"one was removed, one not":  {[]files{{broken, broken}, {gone, broken}}, []permission.Call{web, mail}, []permission.Call{ls}, []string{"permissions.yaml are known now", "managed-permissions.yaml are not known"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log told
			a := withRules(t, &log)
			for _, step := range c.steps {
				a.d.log.Flush()
				log = nil
				for file, data := range map[string]string{"permissions.yaml": step.own, "managed-permissions.yaml": step.managed} {
					path := filepath.Join(a.permissions, file)
					if data == gone {
						os.Remove(path) // it may not have been there
					} else if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				a.LoadRules()
			}
			for _, one := range c.denied {
				if got := a.bridge.Permissions().Check(one, permission.ModeBypass); got.Decision != permission.Denied || got.Reason.Type == "" {
					t.Errorf("%v: %v", one, got)
				}
			}
			for _, one := range c.allowed {
				if got := a.bridge.Permissions().Check(one, ""); got.Decision != permission.Allowed {
					t.Errorf("%v: %v", one, got)
				}
			}
			a.d.log.Flush()
			var says []string
			for _, line := range log {
				at, _, _ := strings.Cut(strings.TrimPrefix(line, "the permission rules of "+a.permissions+"/"), ":")
				says = append(says, at)
			}
			if diff := cmp.Diff(c.says, says); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// F40: rules for tools that are not in force as they stand in a file are told as long as they are not. What is no file holds nothing up.
func TestF40FaultyRules(t *testing.T) {
	var log told
	a := withRules(t, &log)
	a.d.agents = a
	a.d.opts.RulesPath = filepath.Join(t.TempDir(), "guard-rules")
	ours, theirs := filepath.Join(a.permissions, "permissions.yaml"), filepath.Join(a.permissions, "managed-permissions.yaml")
	fifo := func(path string) error { return unix.Mkfifo(path, 0o600) }
	for _, step := range []struct {
		name, path string
		make       func(path string) error
		faulty     bool
	}{
		{"a good rule", ours, text("deny: [WebSearch]"), false}, {"a dropped rule", ours, text("deny: [WebSearch, 'Read(']"), true}, {"a rule that is reported and in force", ours, text("deny: [Frobnicate]"), false}, {"no YAML", ours, text("deny: ["), true},
		{"no UTF-8", ours, text("deny: [\xff]"), true}, {"too long", theirs, text(strings.Repeat("#", maxRules+1)), true}, {"a folder", theirs, func(path string) error { return os.Mkdir(path, 0o700) }, true}, {"a device", theirs, func(path string) error { return os.Symlink("/dev/zero", path) }, true},
		{"a FIFO", theirs, fifo, false}, {"a link to nothing", ours, func(path string) error { return os.Symlink("/no/such/file", path) }, false}, {"empty", ours, text(""), false},
		{"a good rule of the guard", a.d.opts.RulesPath, text("command rm -- no"), false}, {"a bad one", a.d.opts.RulesPath, text("comand rm -- no"), true}, {"a folder of the guard", a.d.opts.RulesPath, func(path string) error { return os.Mkdir(path, 0o700) }, true}, {"a FIFO of the guard", a.d.opts.RulesPath, fifo, false},
	} {
		if err := step.make(step.path); err != nil {
			t.Fatal(err)
		}
		a.LoadRules()
		if got := a.d.degradations(); (len(got) == 1 && strings.Contains(got[0], step.path)) != step.faulty || len(got) > 1 {
			t.Errorf("%s: %q", step.name, got)
		}
		if err := os.Remove(step.path); err != nil {
			t.Fatal(err)
		}
		if a.LoadRules(); len(a.d.degradations()) > 0 {
			t.Errorf("%s, removed: %q", step.name, a.d.degradations())
		}
	}
}

// text writes a file.
func text(data string) func(path string) error {
	return func(path string) error { return os.WriteFile(path, []byte(data), 0o600) }
}

// withRules are agents whose permission rules stand in a folder of the test's.
func withRules(t testing.TB, log *told) *bridgeHost {
	t.Helper()
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	a := &bridgeHost{d: &daemon{opts: Options{Logger: logger}, log: newEventLog(log)}, permissions: t.TempDir(), read: map[string][]byte{}, unread: map[string]unread{}}
	a.bridge = bridge.New(&asksPerson{}, logger)
	t.Cleanup(func() { a.bridge.Close(time.Minute) })
	return a
}

// TestRulesMendedP3: a file that could not be read since the start is looked at again by itself until it can be, and taken when it is whole: when two
// looks found the same and nobody writes it. What could be read is not looked at.
func TestRulesMendedP3(t *testing.T) {
	var log told
	a := withRules(t, &log)
	ours, theirs := filepath.Join(a.permissions, "permissions.yaml"), filepath.Join(a.permissions, "managed-permissions.yaml")
	write := func(path, data string) func() {
		return func() {
			if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(ours, "deny: [")()
	write(theirs, "deny: [WebSearch]")()
	a.LoadRules()
	curl, mail, web := call(`Bash`, `{"command":"curl https://example.com"}`), call(`mcp__mail__send`, `{}`), call(`WebSearch`, `{}`)
	var writer *os.File
	nothing := func() {}
	for i, step := range []struct {
		do      func()
		denied  []permission.Call
		allowed []permission.Call
		says    string // once; empty: nothing
	}{
		{nothing, []permission.Call{curl, mail, web}, nil, ""},
		{nothing, []permission.Call{curl, mail, web}, nil, ""}, // it was told
		{write(ours, "deny: {"), []permission.Call{curl, mail, web}, nil, ""},
		{nothing, []permission.Call{curl, mail, web}, nil, "are not known"}, // otherwise than before
		{write(ours, ""), []permission.Call{curl, mail, web}, nil, ""},      // about to be written
		{func() {
			var err error
			if writer, err = os.OpenFile(ours, os.O_WRONLY, 0); err != nil {
				t.Fatal(err)
			}
		}, []permission.Call{curl, mail, web}, nil, ""},
		{nothing, []permission.Call{curl, mail, web}, nil, ""},
		{func() {
			_, err := writer.WriteString("deny: [mcp__mail__send]")
			if err = errors.Join(err, writer.Close()); err != nil {
				t.Fatal(err)
			}
		}, []permission.Call{curl, mail, web}, nil, ""},
		{write(theirs, "{"), []permission.Call{mail, web}, []permission.Call{curl}, "are known now"}, // the other counts as it was
		{write(ours, "deny: []"), []permission.Call{mail, web}, []permission.Call{curl}, ""},
		{nothing, []permission.Call{mail, web}, []permission.Call{curl}, ""},
	} {
		a.d.log.Flush()
		log = nil
		step.do()
		if err := a.RereadRules(); err != nil {
			t.Fatal(err)
		}
		for _, one := range step.denied {
			if got := a.bridge.Permissions().Check(one, ""); got.Decision != permission.Denied {
				t.Errorf("step %d: %v: %v", i, one, got)
			}
		}
		for _, one := range step.allowed {
			if got := a.bridge.Permissions().Check(one, ""); got.Decision != permission.Allowed {
				t.Errorf("step %d: %v: %v", i, one, got)
			}
		}
		a.d.log.Flush()
		if told := step.says != ""; told != (len(log) == 1) || told && !strings.Contains(log[0], ours+" "+step.says) {
			t.Errorf("step %d: told %q, want %q", i, log, step.says)
		}
	}
}

func call(tool, input string) permission.Call { return permission.Of(tool, json.RawMessage(input)) }
