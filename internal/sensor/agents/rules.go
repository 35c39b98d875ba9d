package agents

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"weir/internal/bridge"
	"weir/internal/bridge/toolcall"
	"weir/internal/classify"
	"weir/internal/event"
	"weir/internal/ruleset"
	"weir/internal/ruleset/killswitch"
	"weir/internal/ruleset/permission"
)

// maxRules bounds a file of rules, in bytes.
const maxRules = 1 << 20

// LoadRules reads what people wrote beside the built-in rules: the operator's for the guard (K12), and the permission rules (P2). A file that
// cannot be read leaves what it gave before in force, and is told of; the built-in rules are always there.
func (a *Agents) LoadRules() {
	a.loading.Lock()
	defer a.loading.Unlock()
	a.bridge.Use(bridge.Rules{Guard: a.guardRules(), Permissions: a.permissionRules(), Killed: func() bool { return killswitch.On(a.opts.KillSwitch) }})
}

func (a *Agents) guardRules() bridge.Guard {
	data, err := readRules(a.opts.RulesPath)
	if err != nil {
		a.ruleProblem("the guard's appended rules stay as they were: " + err.Error())
		return nil
	}
	rules, problems := ruleset.Appended(a.opts.RulesPath, data)
	for _, p := range problems {
		a.ruleProblem(p.String())
	}
	return ruleset.New(ruleset.Options{Server: a.opts.Server, Appended: rules})
}

// permissionRules makes one set of two files, each read by itself. One that cannot be read counts as it was when it last could; if that never was,
// what it may deny is denied.
func (a *Agents) permissionRules() bridge.Permissions {
	var files []permission.File
	unread := false
	for _, f := range []permission.File{{Name: "permissions.yaml"}, {Name: "managed-permissions.yaml", Managed: true}} {
		f.Name = filepath.Join(a.opts.Permissions, f.Name)
		var err error
		if f.Data, err = readRules(f.Name); err == nil {
			var warnings []permission.Warning
			_, warnings, err = permission.Parse(f)
			for _, w := range warnings {
				a.ruleProblem(w.String())
			}
		}
		before, known := a.read[f.Name]
		switch {
		case err == nil:
			a.read[f.Name] = f.Data
		case known:
			f.Data = before
			a.ruleProblem(fmt.Sprintf("the permission rules of %s stay as they were: %v", f.Name, err))
		default:
			f.Data = nil
			unread = true
			a.ruleProblem(fmt.Sprintf("the permission rules of %s are not known: until it can be read, every call that is not local is denied: %v", f.Name, err))
		}
		if f.Data != nil {
			files = append(files, f)
		}
	}
	set, _, err := permission.Parse(files...)
	if err != nil {
		a.ruleProblem("the permission rules stay as they were: " + err.Error())
		return nil
	}
	if unread {
		return unknown{set}
	}
	return set
}

// unknown are rules some of which nobody could read yet: they may deny anything.
type unknown struct{ *permission.Set }

// Check implements bridge.Permissions. What stays in the container goes on: somebody has to mend the file.
func (u unknown) Check(c permission.Call, mode string) permission.Result {
	got := u.Set.Check(c, mode)
	if got.Decision == permission.Denied || toolcall.Local(c.Tool) || localCommand(c) {
		return got
	}
	return permission.Result{Reason: permission.Reason{Type: "other", Reason: permission.Unknown}}
}

// localCommand says whether a call is a shell's, of a command that reaches nobody.
func localCommand(c permission.Call) bool {
	_, shell := toolcall.Shell(c.Tool, nil)
	return shell && len(c.Contents) > 0 && !slices.ContainsFunc(c.Contents, func(text string) bool { return classify.Shell(text).Class != classify.Local })
}

func (a *Agents) ruleProblem(text string) {
	a.opts.Logger.Warn(text)
	a.opts.Log.Post(event.Event{Kind: event.Error, Message: text})
}

// readRules is a file's content, or nothing if it is not there.
func readRules(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRules+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read rules: %w", err)
	case len(data) > maxRules:
		return nil, fmt.Errorf("read rules: %s is longer than %d bytes", path, maxRules)
	}
	return data, nil
}
