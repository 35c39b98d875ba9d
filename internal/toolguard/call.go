package toolguard

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf16"

	"weir/internal/bridge/wire"
	"weir/internal/commands"
	"weir/internal/shell"
)

// call is what of a tool's arguments the guard looks at.
type call struct {
	scripts texts
	paths   []string
	likely  []string // what only looks like a path, under a name that says nothing
	updates []string
	changes bool // the tool changes what its path names
	deletes bool // it deletes that
}

// kind says how a tool's arguments are read.
type kind struct {
	dialects []Dialect
	changes  bool
	deletes  bool
	searches bool // it reads what stands in a folder
	update   bool
	data     bool // only its paths count: the rest is what it writes
	patch    bool // its text says which files it changes
	typed    bool // all its texts are typed to a program, which may be a shell
}

// Tools, in lower case. One that is not here has its arguments read by their names.
var tools = map[string]kind{
	"powershell_exec": {dialects: []Dialect{PowerShell}}, "powershell": {dialects: []Dialect{PowerShell}}, "pwsh": {dialects: []Dialect{PowerShell}},
	"cmd_exec": {dialects: []Dialect{Cmd}}, "cmd": {dialects: []Dialect{Cmd}},
	"bash": {dialects: []Dialect{POSIX}}, "shell": {dialects: []Dialect{POSIX}}, "local_shell": {dialects: []Dialect{POSIX}},
	"exec_command": {dialects: []Dialect{POSIX}}, "shell_command": {dialects: []Dialect{POSIX}}, "unified_exec": {dialects: []Dialect{POSIX}},
	"container.exec": {dialects: []Dialect{POSIX}},
	"fs_read":        {data: true}, "fs_list": {data: true}, "read": {data: true}, "ls": {data: true}, "glob": {data: true}, "grep": {data: true, searches: true}, "notebookread": {data: true},
	"fs_write": {data: true, changes: true}, "fs_delete": {data: true, changes: true, deletes: true}, "write": {data: true, changes: true}, "edit": {data: true, changes: true},
	"multiedit": {data: true, changes: true}, "notebookedit": {data: true, changes: true},
	"apply_patch":  {patch: true, changes: true},
	"agent_update": {update: true, data: true},
	"write_stdin":  {dialects: unknownTool.dialects, typed: true},
}

var unknownTool = kind{dialects: []Dialect{POSIX, PowerShell, Cmd}, changes: true}

// Known says whether the guard has a tool in its list.
func Known(tool string) bool {
	_, ok := tools[strings.ToLower(tool)]
	return ok
}

// Changes says whether a tool changes the state of the machine, as far as its name tells: only tools that are known to read do not (K10).
func Changes(tool string) bool {
	tool = strings.ToLower(wire.Canonical(tool))
	switch k, ok := tools[tool]; {
	case ok:
		return k.changes || k.update || len(k.dialects) > 0
	}
	return !reads[tool]
}

// Administers says whether a tool is one of the channel of tool calls (K9) that changes the machine, and no coding agent's (K11).
func Administers(tool string) bool {
	switch tool = strings.ToLower(tool); tool {
	case "bash", "shell":
		return false
	}
	return required[tool] != nil && Changes(tool)
}

// reads are other tools of agents that are known to change nothing on the machine.
var reads = commands.Names("todowrite todoread tasklist taskget taskoutput bashoutput enterplanmode exitplanmode askuserquestion toolsearch " +
	"task agent taskcreate taskupdate slashcommand " + // what these start is asked about by itself
	"websearch webfetch update_plan view_image read_file list_dir grep_files localmemoryrecall skill killshell killbash taskstop " +
	"lsp cronlist listmcpresourcestool list_mcp_resources list_mcp_resource_templates waitformcpservers web_search google_web_search tool_search request_user_input search_file_content list_directory read_many_files")

// Names of arguments, in lower case and without what separates words.
var (
	scriptNames = commands.Names("command cmd script chars commandline shellcommand argv program executable powershell bash shell")
	pathNames   = commands.Names("path file filepath filename notebookpath paths files source src destination dest dst target directory dir dirpath oldpath newpath from to")
	pathEnds    = strings.Fields("path paths pathname pathnames file files filename filenames uri uris") // agents have ever new names
	// Names of what is written, looked for or told, which is no path in an object that is named as one either.
	contentNames = commands.Names("content contents text newtext oldtext data body code lines oldstring newstring newsource " +
		"pattern regex query prompt message description comment diff patch edits title subject summary reason label caption")
	wordNames = commands.Names("args arguments argument parameters") // of what a program is given
)

// named says whether what stands under a name is a path.
func named(name string) bool {
	return pathNames[name] || !isProfile(name) && slices.ContainsFunc(pathEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

func isProfile(name string) bool { return strings.HasSuffix(strings.TrimSuffix(name, "s"), "profile") }

// likely says whether a text is a path by itself, whatever it stands under, unless that says that it is none.
func likely(name, text string) bool {
	if contentNames[name] || scriptNames[name] || isProfile(name) || len(text) > 4096 || strings.Contains(text, "\n") {
		return false
	}
	text = strings.TrimLeft(text, aroundPath)
	return isDrive(strings.ToLower(text)) || slices.ContainsFunc(placed, func(begin string) bool { return len(text) >= len(begin) && strings.EqualFold(text[:len(begin)], begin) })
}

// placed are beginnings of paths that lead somewhere whatever the directory is, or out of it.
var placed = []string{"/", "~", "../", "./", `\\`, "$HOME", "${HOME}", "%", scheme}

// globNames are those of patterns that say which files of a folder are meant.
var globNames = commands.Names("glob globs include includes includepattern filepattern fileglob")

// Verbs in the names of tools that are not in the list.
var (
	readVerbs   = commands.Names("read get list ls show view stat cat head tail search find grep query describe info exists tree open fetch load")
	changeVerbs = commands.Names("write edit create make mkdir put set save update append insert replace patch copy move rename chmod chown truncate upload apply store link touch run execute")
	deleteVerbs = commands.Names("delete remove rm rmdir unlink erase trash purge wipe destroy")
)

// verbs are what the words of a tool's name say that it does; behind __ stands its name at the server that offers it.
func verbs(tool string) (reads, changes, deletes bool) {
	var b strings.Builder
	for i, r := range tool[strings.LastIndex(tool, "__")+1:] {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	for w := range strings.FieldsFuncSeq(strings.ToLower(b.String()), func(r rune) bool { return r < 'a' || r > 'z' }) {
		reads, changes, deletes = reads || readVerbs[w], changes || changeVerbs[w], deletes || deleteVerbs[w]
	}
	return reads, changes, deletes
}

// read finds scripts, paths and addresses in a tool's arguments. Arguments of a wrong type are read as what they hold. whole is false where
// there is more of them than is read.
func read(tool string, args json.RawMessage) (c call, whole bool) {
	k, ok := tools[strings.ToLower(tool)]
	if !ok {
		k = unknownTool
	}
	c.changes, c.deletes = k.changes && !reads[strings.ToLower(tool)], k.deletes
	if !ok {
		reads, changes, deletes := verbs(tool)
		c.changes, c.deletes = c.changes && (!reads || changes || deletes), deletes
	}
	all, whole := fields(args, func(name string) bool {
		return k.patch || k.typed || name == "" || !ok && wordNames[name] || name == "url" && k.update || scriptNames[name] && !k.data || named(name) || globNames[name]
	}, func(name, text string) bool { return (k.data || !ok) && likely(name, text) })
	var globs []string
	for _, f := range all {
		switch {
		case f.text == "":
		case k.patch:
			c.paths = append(c.paths, patched(f.text)...)
		case f.name == "" && !f.all && (k.data || !ok && likely("", f.text)): // no object: who reads it so takes it for the one thing that the tool wants
			c.paths = append(c.paths, spellings(f.text)...)
		case f.likely:
			c.likely = append(c.likely, spellings(f.text)...)
		case !ok && wordNames[f.name] && !f.all:
			if likely(f.name, f.text) {
				c.likely = append(c.likely, spellings(f.text)...)
			}
		case f.part && !named(f.name) && !k.update && !k.typed:
		case k.typed, scriptNames[f.name] && !k.data, f.name == "" && len(k.dialects) == 1:
			for _, d := range k.dialects {
				c.scripts = append(c.scripts, text{d, f.text})
			}
		case named(f.name) && (k.data || !ok) && !f.all:
			c.paths = append(c.paths, spellings(f.text)...)
		case f.name == "url" && k.update:
			c.updates = append(c.updates, f.text)
		case globNames[f.name] && !f.all:
			globs = append(globs, f.text)
		}
	}
	if !ok {
		for _, s := range c.scripts { // a program, with its words beside it
			for _, f := range all {
				if len(c.scripts) < maxGlobs && (f.all || !f.part) && wordNames[f.name] && !strings.ContainsAny(s.text, " \n") {
					c.scripts = append(c.scripts, text{s.dialect, s.text + " " + f.text})
				}
			}
		}
	}
	if k.searches || len(globs) > 0 {
		c.paths = append(c.paths, within(c.paths, globs)...)
	}
	return c, whole
}

// maxGlobs bounds what patterns are expanded to, and how often a program and its words are put together.
const maxGlobs = 64

// within are the files that patterns name in folders; without a pattern any.
func within(folders, globs []string) (all []string) {
	if len(folders) == 0 {
		folders = []string{"."}
	}
	var names []string
	for _, g := range globs {
		for _, g := range strings.FieldsFunc(g, func(r rune) bool { return r == ' ' || r == ',' && !strings.ContainsRune(g, '{') }) {
			list, ok := shell.Braces(g)
			if !ok || len(list) == 0 {
				list = []string{g}
			}
			for _, g := range list[:min(len(list), maxGlobs)] {
				if !strings.HasPrefix(g, "!") {
					names = append(names, g)
				}
			}
		}
	}
	if len(globs) == 0 {
		names = []string{anyFile}
	}
	for _, folder := range folders {
		for _, name := range names[:min(len(names), maxGlobs)] {
			if len(all) >= maxGlobs {
				return all
			}
			folder := strings.TrimRight(folder, "/")
			all = append(all, folder+"/"+name)
			if name = strings.TrimPrefix(name, "**/"); name != anyFile {
				all = append(all, folder+"/**/"+name)
			}
		}
	}
	return all
}

// patched are the files that a patch of Codex's changes. Codex allows blanks before a header, but not in an update, where they begin a line
// of context.
func patched(patch string) (paths []string) {
	update := false
	for line := range strings.Lines(patch) {
		if update && strings.HasPrefix(line, " ") {
			continue
		}
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "*") && line != "*** End of File" {
			update = false
		}
		for _, what := range []string{"*** Add File: ", updated, "*** Delete File: ", moved} {
			if p, ok := strings.CutPrefix(line, what); ok {
				paths = append(paths, strings.TrimSpace(p))
				update = what == updated || what == moved
			}
		}
	}
	return paths
}

const (
	updated = "*** Update File: "
	moved   = "*** Move to: "
)

// field is a text among a tool's arguments, with the name that it stands under: in lower case and without what separates words.
type field struct {
	name, text string
	part       bool // of a list, which is given as a whole too
	all        bool // such a whole
	likely     bool // its name does not count, and it looks as if it did
}

// Bounds of what is read.
const (
	maxFields = 4096
	maxDepth  = 64
)

var separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

// fields walks JSON and gives every text in it under a name that counts, also where the name stands twice, or that is likely to count; a list of texts is given as one
// command line as well. What stands in an object that is named as a path has its name, where its own says nothing else. whole is false where that is too much.
func fields(args json.RawMessage, counts func(name string) bool, likely func(name, text string) bool) (out []field, whole bool) {
	dec := json.NewDecoder(bytes.NewReader(args))
	type level struct {
		list  bool
		outer string // the object's own name
		name  string
		count bool
		words []string
	}
	stack := []level{{list: true, count: counts("")}}
	key := false // the next text is a name
	for len(out) < maxFields {
		t, err := dec.Token()
		if err != nil {
			return out, true
		}
		top := &stack[len(stack)-1]
		switch t := t.(type) {
		case json.Delim:
			switch t {
			case '{', '[':
				if len(stack) > maxDepth {
					return out, false
				}
				stack = append(stack, level{list: t == '[', outer: top.name, name: top.name, count: top.count})
				key = t == '{'
			default:
				switch len(top.words) {
				case 0:
				case 1:
					out = append(out, field{name: top.name, text: top.words[0], all: true})
				default:
					out = append(out, field{name: top.name, text: quoted(top.words), all: true})
				}
				stack = stack[:len(stack)-1]
				key = !stack[len(stack)-1].list
			}
			continue
		case string:
			if key {
				name := separators.Replace(strings.ToLower(t))
				if named(top.outer) && !scriptNames[name] && !contentNames[name] {
					name = top.outer
				}
				top.name, key = name, false
				top.count = counts(top.name)
				continue
			}
			if top.count {
				part := top.list && len(stack) > 1
				out = append(out, field{name: top.name, text: t, part: part})
				if part {
					top.words = append(top.words, t)
				}
			} else if likely(top.name, t) {
				out = append(out, field{name: top.name, text: t, likely: true})
			}
		}
		key = !top.list
	}
	return out, false
}

// quoted is an argv as one line, so that its words stay what they are in a shell.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`&|;<>(){}*?[]#~!") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out[i] = w
	}
	return strings.Join(out, " ")
}

// decode turns UTF-16 into UTF-8, and what is no UTF-8 into something that parsers can pass over.
func decode(s string) string {
	var order binary.ByteOrder
	switch {
	case strings.HasPrefix(s, "\xff\xfe"):
		order = binary.LittleEndian
	case strings.HasPrefix(s, "\xfe\xff"):
		order = binary.BigEndian
	default:
		return strings.ToValidUTF8(s, "\ufffd")
	}
	units := make([]uint16, 0, len(s)/2)
	for i := 2; i+1 < len(s); i += 2 {
		units = append(units, order.Uint16([]byte(s[i:i+2])))
	}
	return string(utf16.Decode(units))
}

// Paths are those that a call names, as it names them, those of folders that it searches among them; changes says that the tool changes what stands
// there.
func Paths(tool string, args json.RawMessage) (paths []string, changes bool) {
	c, _ := read(tool, args)
	for _, p := range c.paths {
		paths = append(paths, strings.TrimSuffix(strings.TrimSuffix(p, anyFile), "/**/"))
	}
	return paths, c.changes
}
