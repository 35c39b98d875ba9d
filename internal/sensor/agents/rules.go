package agents

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"weir/internal/bridge"
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

func (a *Agents) permissionRules() bridge.Permissions {
	dir := a.opts.Permissions
	var files []permission.File
	for _, f := range []permission.File{{Name: "permissions.yaml"}, {Name: "managed-permissions.yaml", Managed: true}} {
		f.Name = filepath.Join(dir, f.Name)
		var err error
		if f.Data, err = readRules(f.Name); err != nil {
			a.ruleProblem("the permission rules stay as they were: " + err.Error())
			return nil
		}
		if f.Data != nil {
			files = append(files, f)
		}
	}
	set, warnings, err := permission.Parse(files...)
	for _, w := range warnings {
		a.ruleProblem(w.String())
	}
	if err != nil {
		a.ruleProblem("the permission rules stay as they were: " + err.Error())
		return nil
	}
	return set
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
