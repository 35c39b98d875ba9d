package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"weir/internal/bridge"
	"weir/internal/bridge/wire"
	"weir/internal/classify"
	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/permission"
	"weir/internal/toolguard"
)

// maxRules bounds a file of rules, in bytes.
const maxRules = 1 << 20

// LoadRules reads what people wrote beside the built-in rules: the operator's for the guard (K12), and the permission rules (P2). A file that
// cannot be read leaves what it gave before in force, and is told of; the built-in rules are always there.
func (a *bridgeHost) LoadRules() {
	a.loading.Lock()
	defer a.loading.Unlock()
	a.bridge.Use(bridge.Rules{Guard: a.guardRules(), Permissions: a.permissionRules(readRules), Killed: func() bool { return toolguard.KillSwitchOn(a.d.opts.KillSwitch) }})
}

func (a *bridgeHost) guardRules() bridge.Guard {
	data, err := readRules(a.d.opts.RulesPath)
	if err != nil {
		a.noteFaulty(a.d.opts.RulesPath, true)
		a.ruleProblem("the guard's appended rules stay as they were: " + err.Error())
		return nil
	}
	rules, problems := toolguard.Appended(a.d.opts.RulesPath, data)
	a.noteFaulty(a.d.opts.RulesPath, len(problems) > 0)
	for _, p := range problems {
		a.ruleProblem(p.String())
	}
	return toolguard.New(toolguard.Options{Server: a.d.opts.Server, Appended: rules})
}

// unread is what a file of permission rules gave that never could be read.
type unread struct{ told, last content }

// content is what reading a file gave.
type content struct {
	data []byte
	err  error
}

func (c content) same(o content) bool {
	return bytes.Equal(c.data, o.data) && fmt.Sprint(c.err) == fmt.Sprint(o.err)
}

// RereadRules looks at the files of permission rules that could not be read since the start. One that changed counts when two looks found the same
// and nobody writes it: half a file may lack denials. What could be read stays as it is. The error is always nil.
func (a *bridgeHost) RereadRules() error {
	a.loading.Lock()
	defer a.loading.Unlock()
	changed := map[string]content{}
	for name, u := range a.unread {
		data, err := readRules(name)
		now := content{data, err}
		if now.same(u.last) && !now.same(u.told) && !beingWritten(name) {
			changed[name] = now
		}
		a.unread[name] = unread{u.told, now}
	}
	if len(changed) == 0 {
		return nil
	}
	a.bridge.Use(bridge.Rules{Permissions: a.permissionRules(func(name string) ([]byte, error) {
		if now, ok := changed[name]; ok {
			return now.data, now.err
		}
		if u, ok := a.unread[name]; ok {
			return u.told.data, u.told.err
		}
		return a.read[name], nil
	})})
	return nil
}

// permissionRules makes one set of two files, each read by itself. One that cannot be read counts as it was when it last could; if that never was,
// what it may deny is denied.
func (a *bridgeHost) permissionRules(read func(path string) ([]byte, error)) bridge.Permissions {
	var files []permission.File
	for _, f := range []permission.File{{Name: "permissions.yaml"}, {Name: "managed-permissions.yaml", Managed: true}} {
		f.Name = filepath.Join(a.permissions, f.Name)
		data, err := read(f.Name)
		got := content{data, err}
		var warnings []permission.Warning
		if f.Data = data; err == nil {
			_, warnings, err = permission.Parse(f)
			for _, w := range warnings {
				a.ruleProblem(w.String())
			}
		}
		a.noteFaulty(f.Name, err != nil || permission.Dropped(warnings) > 0)
		before, known := a.read[f.Name]
		_, missed := a.unread[f.Name]
		switch {
		case err == nil:
			a.read[f.Name] = f.Data
			if delete(a.unread, f.Name); missed {
				a.ruleProblem(fmt.Sprintf("the permission rules of %s are known now: they are in force", f.Name))
			}
		case known:
			f.Data = before
			a.ruleProblem(fmt.Sprintf("the permission rules of %s stay as they were: %v", f.Name, err))
		default:
			f.Data = nil
			a.unread[f.Name] = unread{got, got}
			a.ruleProblem(fmt.Sprintf("the permission rules of %s are not known: until it can be read, every call that is not local is denied; it is read again by itself once it was mended: %v", f.Name, err))
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
	if len(a.unread) > 0 {
		return unknown{set}
	}
	return set
}

// unknown are rules some of which nobody could read yet: they may deny anything.
type unknown struct{ *permission.Set }

// Check implements bridge.Permissions. What stays in the container goes on: somebody has to mend the file.
func (u unknown) Check(c permission.Call, mode string) permission.Result {
	got := u.Set.Check(c, mode)
	if got.Decision == permission.Denied || wire.IsLocal(c.Tool) || localCommand(c) {
		return got
	}
	return permission.Result{Reason: permission.Reason{Type: "other", Reason: permission.Unknown}}
}

// localCommand says whether a call is a shell's, of a command that reaches nobody.
func localCommand(c permission.Call) bool {
	_, shell := wire.ShellText(c.Tool, nil)
	return shell && len(c.Contents) > 0 && !slices.ContainsFunc(c.Contents, func(text string) bool { return classify.Shell(text, "").Class != classify.Local })
}

// noteFaulty notes whether a file of rules is in force as it stands there.
func (a *bridgeHost) noteFaulty(name string, is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.faulty == nil {
		a.faulty = make(map[string]bool)
	}
	a.faulty[name] = is
}

// Faulty are the files of rules that are not in force as they stand there.
func (a *bridgeHost) Faulty() (files []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(a.faulty)) {
		if a.faulty[name] {
			files = append(files, name)
		}
	}
	return files
}

func (a *bridgeHost) ruleProblem(text string) {
	a.d.opts.Logger.Warn(text)
	a.d.log.WriteAsync(event.Event{Kind: event.Error, Message: text})
}

// readRules is a file's content, or nothing if it is not there.
func readRules(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	data, err := linux.ReadInput(path, maxRules)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read rules: %w", err)
	case len(data) > maxRules:
		return nil, fmt.Errorf("read rules: %s is longer than %d bytes", path, maxRules)
	}
	return data, nil
}
