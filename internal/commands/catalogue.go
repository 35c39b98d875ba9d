package commands

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed catalogue.txt
var catalogueText string

// catalogue is what catalogue.txt says.
type catalogue struct {
	families  []Family
	plain     map[string]*Command          // by name
	versioned map[string]*Command          // those whose names may end in a version, without it
	alone     map[string]string            // options that make a program, by its name with # for a version, print and end when they are all that it is given
	tables    map[string]map[string]string // by the names of their rows
	wrappers  map[string]*Command          // what stands before the command that a program runs, where its entry does not say so
}

// known is the catalogue, read when it is first needed.
var known = sync.OnceValue(func() *catalogue {
	c, err := readCatalogue(catalogueText)
	if err != nil {
		panic(err) // a test reads it
	}
	return c
})

// Table gives a table of names by the words of its rows.
func Table(name string) map[string]string { return known().tables[name] }

// What the words of an entry stand for.
var (
	classNames = []string{Grey: "grey", Local: "local", Network: "network"}
	roles      = []string{Data: "data", Read: "read", Write: "write", Code: "code", Host: "host", Name: "name"}
	factNames  = []string{"install", "runtime", "upload", "download", "encoder", "listen", "shell"}
	languages  = map[string]Language{"awk": Awk, "format": gitFormat}
	leads      = map[string]func(string) bool{"digits": Digits, "machine": isMachine}
	checks     = map[string]func(*Call){
		"alias": checkAlias, "awk": checkAwk, "branch": checkBranch, "busybox": checkBusybox, "copy": checkCopy, "curl": checkCurl, "date": checkDate, "dpkg": checkDpkg,
		"env": checkEnv, "find": checkFind, "git": checkGit, "gitconfig": checkGitConfig, "install": checkInstall, "less": checkLess, "link": checkLink, "listen": checkListen, "loader": checkLoader,
		"mode": checkMode, "move": checkMove, "openssl": checkOpenssl, "packer": checkPacker, "reading": checkReading, "remote": checkRemote, "response": noResponseFile, "revision": checkRevision,
		"sed": checkSed, "shell": checkShell, "shopt": checkShopt, "socat": checkSocat, "sudo": checkSudo, "tar": checkTar, "timeout": checkTimeout, "touch": checkTouch, "tree": checkTree,
		"unzip": checkUnzip, "wget": checkWget, "xargs": checkXargs, "xxd": checkXxd,
	}
)

// reading is a catalogue that is being read.
type reading struct {
	catalogue
	fields map[string]int    // of Command, by their names in lower case
	lets   map[string]string // what $NAME stands for
	open   []*Command        // the entry that lines belong to, behind those that it is a subcommand of
	bad    string
}

func readCatalogue(text string) (*catalogue, error) {
	r := &reading{fields: map[string]int{}, lets: map[string]string{}}
	r.plain, r.versioned, r.wrappers = make(map[string]*Command, 1400), make(map[string]*Command, 64), make(map[string]*Command, 128)
	r.alone, r.tables = make(map[string]string, 64), map[string]map[string]string{}
	for i, t := 0, reflect.TypeFor[Command](); i < t.NumField(); i++ {
		r.fields[strings.ToLower(t.Field(i).Name)] = i
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		body := strings.TrimLeft(strings.TrimSuffix(line, "\n"), "\t")
		if body != "" && body[0] != '#' {
			r.line(strings.IndexByte(line, body[0]), body)
		}
		if r.bad != "" {
			return nil, fmt.Errorf("catalogue.txt:%d: %s", n, r.bad)
		}
	}
	for _, f := range r.families {
		for _, c := range f.Commands {
			for name := range strings.FieldsSeq(c.Names) {
				if f.Name == "wrappers" {
					r.wrappers[name] = c
					continue
				}
				if base, ok := strings.CutSuffix(name, "#"); ok {
					r.versioned[base], name = c, base
				}
				r.plain[name] = c
			}
		}
	}
	r.families = r.families[:len(r.families)-1]
	return &r.catalogue, nil
}

func (r *reading) line(depth int, body string) {
	key, value, _ := strings.Cut(body, " ")
	switch {
	case depth > 0 && depth <= len(r.open):
		if name, ok := strings.CutPrefix(value, "$"); ok {
			i := strings.IndexAny(name+" ", " ;(")
			if value = r.lets[name[:i]] + name[i:]; len(value) == len(name)-i {
				r.bad = "there is no $" + name[:i]
			}
		}
		if r.open = r.open[:depth]; value == "" {
			r.bad = "nothing follows " + key
			return
		}
		r.entry(r.open[depth-1], key, value)
	case depth > 0:
		r.bad = "this belongs to no entry"
	case key == "let":
		name, value, _ := strings.Cut(value, " ")
		r.lets[name] = joinWords(r.lets[name], value)
	case key == "alone":
		options, names, ok := strings.Cut(value, ": ")
		if !ok {
			r.bad = "it does not say which programs"
		}
		for name := range strings.FieldsSeq(names) {
			r.alone[name] = joinWords(r.alone[name], options)
		}
	case key == "table":
		name, value, _ := strings.Cut(value, " ")
		row, value, _ := strings.Cut(value, " ")
		if r.tables[name] == nil {
			r.tables[name] = map[string]string{}
		}
		r.tables[name][row] = joinWords(r.tables[name][row], value)
	case key == "family":
		name, title, _ := strings.Cut(value, " ")
		r.families, r.open = append(r.families, Family{Name: name, Title: title}), nil
	case len(r.families) == 0:
		r.bad = "this belongs to no family"
	default:
		f := &r.families[len(r.families)-1]
		r.open = []*Command{{Names: body}}
		f.Commands = append(f.Commands, r.open...)
	}
}

func joinWords(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}

// entry adds a line to an entry.
func (r *reading) entry(c *Command, key, value string) {
	first, rest, _ := strings.Cut(value, " ")
	switch key {
	case "is":
		c.Class = Class(r.place(classNames, first))
		for word := range strings.FieldsSeq(rest) {
			if f := r.field(c, word, reflect.Bool); f.IsValid() {
				f.SetBool(true)
			}
		}
	case "value":
		c.Values = append(c.Values, Value{Options: rest, Role: Role(r.place(roles, first))})
	case "refuse", "network":
		options, why, ok := strings.Cut(value, ": ")
		if !ok {
			r.bad = "it does not say why"
		}
		c.Refuse = append(c.Refuse, Refusal{options, why, map[string]Class{"network": Network}[key]})
	case "lead":
		for word := range strings.FieldsSeq(value) {
			c.Lead = append(c.Lead, Role(r.place(roles, word)))
		}
	case "rest":
		c.Rest = Role(r.place(roles, value))
	case "max":
		c.Max = r.number(value, "none", None)
	case "skip":
		c.Skip = r.number(value, "all", all)
	case "language":
		c.Language = one(r, languages, value)
	case "check":
		c.Check = one(r, checks, value)
	case "skips":
		c.Skips = one(r, leads, value)
	case "facts":
		for word := range strings.FieldsSeq(value) {
			c.Facts |= 1 << r.place(factNames, word)
		}
	case "sub":
		c.Sub = append(c.Sub, &Command{Names: value})
		r.open = append(r.open, c.Sub[len(c.Sub)-1])
	default:
		if f := r.field(c, key, reflect.String); f.IsValid() {
			f.SetString(joinWords(f.String(), value))
		}
	}
}

// field is what a word sets of an entry.
func (r *reading) field(c *Command, word string, kind reflect.Kind) (f reflect.Value) {
	if i, ok := r.fields[word]; ok {
		f = reflect.ValueOf(c).Elem().Field(i)
	}
	if !f.IsValid() || f.Kind() != kind {
		r.bad = "there is no word " + word
		return reflect.Value{}
	}
	return f
}

// one finds a word among those that there are.
func one[T any](r *reading, all map[string]T, word string) T {
	v, ok := all[word]
	if !ok {
		r.bad = "there is no word " + word
	}
	return v
}

func (r *reading) place(all []string, word string) int {
	i := slices.Index(all, word)
	if i < 0 {
		r.bad = "there is no word " + word
	}
	return max(i, 0)
}

func (r *reading) number(word, other string, value int) int {
	n, err := strconv.Atoi(word)
	if word == other {
		return value
	}
	if err != nil || n < 1 {
		r.bad = word + " is no number"
	}
	return n
}
