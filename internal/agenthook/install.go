package agenthook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"weir/internal/bridge/wire"
	"weir/internal/linux"
)

// Timeout is what the agent waits for the hook, in seconds: longer than the hook waits for a person. When it is over, the agent lets
// the call pass, so the hook must be first.
const Timeout = 3660

const backupSuffix = ".before-weir"

// agent says where an agent keeps its hooks.
type agent struct {
	file  string // below the home directory
	fetch bool   // it has a list of denied tools for WebFetch
	note  string // for the user, after the installation
}

var agents = map[string]agent{
	"claude": {".claude/settings.json", true, ""},
	"codex":  {".codex/hooks.json", false, "start codex: it asks whether to trust the hook, and does not run it until then"},
}

// settings installs or uninstalls: install|uninstall claude|codex [--settings FILE].
func (w World) settings(verb string, args []string) int {
	path := ""
	if len(args) == 3 && args[1] == "--settings" {
		path, args = args[2], args[:1]
	}
	if len(args) != 1 || agents[args[0]].file == "" {
		w.say("weir-hook %s: name the agent: claude or codex, then --settings FILE if it is not the usual one", verb)
		return block
	}
	a := agents[args[0]]
	if path == "" {
		if w.Home == "" {
			w.say("weir-hook %s: HOME is not set: give --settings FILE", verb)
			return 1
		}
		path = filepath.Join(w.Home, a.file)
	}
	what, err := "installed in", error(nil)
	if verb == "install" {
		err = w.install(path, args[0], a)
	} else {
		what, err = "taken out of", w.uninstall(path, args[0], a)
	}
	if err != nil {
		w.say("weir-hook %s: %v", verb, err)
		return 1
	}
	w.say("weir-hook: the hook is %s %s", what, path)
	if verb == "install" {
		w.say("weir-hook: outside a guarded container it denies what is not plainly local, such as curl: start the agent with weir guard; weir-hook uninstall %s takes it out again", args[0])
	}
	if verb == "install" && a.note != "" {
		w.say("weir-hook: %s", a.note)
	}
	return ok
}

// Settings are the settings of an agent, claude or codex, that have the hook and nothing else, as JSON. self is the command that runs hooks.
func Settings(name, self string) (string, error) {
	data, err := withHook("settings", nil, self+" "+name, agents[name].fetch)
	if err != nil {
		return "", err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, data); err != nil {
		return "", fmt.Errorf("write settings: %w", err)
	}
	return line.String(), nil
}

func (w World) install(path, name string, a agent) error {
	before, err := linux.ReadInput(path, maxInput)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read settings: %w", err)
	}
	after, err := withHook(path, before, w.Self+" "+name, a.fetch)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make settings: %w", err)
	}
	// The backup is of the file without the hook: one that is there already stays if this is a second installation.
	if clean, err := withoutHook(path, before, name); err == nil && bytes.Equal(clean, before) {
		if err := replace(path+backupSuffix, before); err != nil {
			return err
		}
	}
	return replace(path, after)
}

func (w World) uninstall(path, name string, a agent) error {
	now, err := linux.ReadInput(path, maxInput)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	backup, err := linux.ReadInput(path+backupSuffix, maxInput)
	had := err == nil
	if had {
		if installed, err := withHook(path, backup, w.Self+" "+name, a.fetch); err == nil && bytes.Equal(installed, now) {
			if len(backup) == 0 {
				err = os.Remove(path)
			} else {
				err = replace(path, backup)
			}
			return errors.Join(err, os.Remove(path+backupSuffix))
		}
	}
	after, err := withoutHook(path, now, name)
	if err != nil {
		return err
	}
	if a.fetch && had && !deniesFetch(backup) { // who denied it before still does
		if after, err = withoutFetch(path, after); err != nil {
			return err
		}
	}
	if bytes.Equal(after, now) {
		return nil
	}
	return replace(path, after)
}

// handler is one hook of an agent's settings.
type handler struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

func parse(path string, data []byte) (map[string]any, error) {
	root := map[string]any{}
	if len(bytes.TrimSpace(data)) == 0 {
		return root, nil
	}
	bad := func(why string) error {
		return fmt.Errorf("%s is not a JSON object%s: nothing was changed: correct it, and try again", path, why)
	}
	if err, wrong := errors.AsType[*json.SyntaxError](json.Unmarshal(data, new(any))); wrong {
		return nil, bad(fmt.Sprintf(" (line %d; it takes no comments, and nothing but one object)", 1+bytes.Count(data[:min(err.Offset, int64(len(data)))], []byte("\n"))))
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if dec.Decode(&root) != nil || root == nil {
		return nil, bad("")
	}
	return root, nil
}

// withHook gives settings with the hook first among the PreToolUse hooks. What has it already is given back as it is.
func withHook(path string, data []byte, command string, fetch bool) ([]byte, error) {
	clean, err := withoutHook(path, data, command[strings.LastIndexByte(command, ' ')+1:])
	if err != nil {
		return nil, err
	}
	root, err := parse(path, clean)
	if err != nil {
		return nil, err
	}
	hooks, err := object(root, "hooks", path)
	if err != nil {
		return nil, err
	}
	list, err := array(hooks, "PreToolUse", path)
	if err != nil {
		return nil, err
	}
	entry := map[string]any{"matcher": "*", "hooks": []any{handler{"command", command, Timeout}}}
	hooks["PreToolUse"] = append([]any{entry}, list...)
	if fetch {
		permissions, err := object(root, "permissions", path)
		if err != nil {
			return nil, err
		}
		deny, err := array(permissions, "deny", path)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(deny, any(wire.WebFetch)) {
			permissions["deny"] = append(deny, wire.WebFetch)
		}
	}
	after, err := encode(root)
	if err != nil {
		return nil, err
	}
	if same(data, after) {
		return data, nil
	}
	return after, nil
}

// withoutHook takes the hook out, whichever program it names: weir-hook, by any path, or weir hook.
func withoutHook(path string, data []byte, name string) ([]byte, error) {
	root, err := parse(path, data)
	if err != nil {
		return nil, err
	}
	hooks, _ := root["hooks"].(map[string]any)
	list, _ := hooks["PreToolUse"].([]any)
	var kept []any
	found := false
	for _, e := range list {
		entry, _ := e.(map[string]any)
		handlers, _ := entry["hooks"].([]any)
		left := slices.DeleteFunc(slices.Clone(handlers), func(h any) bool {
			one, _ := h.(map[string]any)
			command, _ := one["command"].(string)
			return ours(command, name)
		})
		switch {
		case len(left) == len(handlers):
			kept = append(kept, e)
			continue
		case len(left) > 0:
			entry["hooks"] = left
			kept = append(kept, entry)
		}
		found = true
	}
	if !found {
		return data, nil
	}
	if hooks["PreToolUse"] = kept; len(kept) == 0 {
		delete(hooks, "PreToolUse")
	}
	if len(hooks) == 0 {
		delete(root, "hooks")
	}
	return encode(root)
}

func ours(command, name string) bool {
	words := strings.Fields(command)
	switch len(words) {
	case 2:
		return filepath.Base(words[0]) == "weir-hook" && words[1] == name
	case 3:
		return filepath.Base(words[0]) == "weir" && words[1] == "hook" && words[2] == name
	}
	return false
}

func deniesFetch(data []byte) bool {
	root, err := parse("", data)
	if err != nil {
		return false
	}
	permissions, _ := root["permissions"].(map[string]any)
	deny, _ := permissions["deny"].([]any)
	return slices.Contains(deny, any(wire.WebFetch))
}

func withoutFetch(path string, data []byte) ([]byte, error) {
	root, err := parse(path, data)
	if err != nil || !deniesFetch(data) {
		return data, err
	}
	permissions := root["permissions"].(map[string]any)
	deny := slices.DeleteFunc(permissions["deny"].([]any), func(v any) bool { return v == any(wire.WebFetch) })
	if permissions["deny"] = deny; len(deny) == 0 {
		delete(permissions, "deny")
	}
	if len(permissions) == 0 {
		delete(root, "permissions")
	}
	return encode(root)
}

func object(in map[string]any, key, path string) (map[string]any, error) {
	if in[key] == nil {
		in[key] = map[string]any{}
	}
	m, isObject := in[key].(map[string]any)
	if !isObject {
		return nil, fmt.Errorf("%s: %q is not an object: nothing was changed: correct it, and try again", path, key)
	}
	return m, nil
}

func array(in map[string]any, key, path string) ([]any, error) {
	if in[key] == nil {
		return nil, nil
	}
	list, isArray := in[key].([]any)
	if !isArray {
		return nil, fmt.Errorf("%s: %q is not a list: nothing was changed: correct it, and try again", path, key)
	}
	return list, nil
}

func encode(root map[string]any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	return b.Bytes(), nil
}

// same says whether two texts are the same JSON.
func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// replace writes settings anew, wherever they are kept.
func replace(path string, data []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // often elsewhere
	}
	if err := linux.WriteFileAtomic(path, data); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}
