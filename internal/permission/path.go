package permission

import (
	"path"
	"slices"
	"strings"
)

// pathRule is the content of a rule about files: a pattern as in a .gitignore, below a folder.
type pathRule struct {
	rule  Rule
	root  byte     // where it begins: / the file system, ~ the home, p the project, . the working directory
	up    int      // how many folders above that
	parts []string // of the pattern; none: all that is there
	float bool     // at any depth
}

// readPath reads a pattern as Claude Code has it.
func readPath(content string) (r pathRule, f *fault) {
	p := strings.TrimSpace(unescape(content))
	switch {
	case p == "":
		return r, &fault{"it names no file", "write a pattern: Read(./.env)"}
	case p[0] == '!' || p[0] == '#':
		return r, &fault{"a pattern that begins with " + p[:1] + " means no file", `write \` + p[:1] + " for the character, and one rule for each pattern"}
	case strings.HasSuffix(p, ":*"):
		return r, &fault{":* is for commands", "write ** for all below a folder: Read(./secrets/**)"}
	case len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') || strings.HasPrefix(p, `\\`):
		return r, &fault{"it is a Windows path", "write it with slashes, from the root: Read(//srv/work/**)"}
	case strings.HasPrefix(p, "~") && p != "~" && !strings.HasPrefix(p, "~/"):
		return r, &fault{"only the agent's own home is known", "write ~/ for that, or the whole path: Read(//home/dave/x)"}
	case strings.Contains(p, "://"):
		return r, &fault{"it is an address", "write a path: Read(./.env)"}
	case braced(p):
		return r, &fault{"braces { } are not a wildcard", "write one rule for each: Edit(/src/**/*.ts)"}
	}
	switch {
	case strings.HasPrefix(p, "//"):
		r.root, p = '/', p[1:]
	case p[0] == '~':
		r.root, p = '~', "/"+strings.TrimPrefix(p[1:], "/")
	case p[0] == '/':
		r.root = 'p'
	default:
		r.root = '.'
	}
	below := p != "/" && strings.HasSuffix(p, "/**")
	anchored := strings.HasPrefix(p, "/")
	for part := range strings.SplitSeq(strings.TrimSuffix(p, "/**"), "/") {
		if part == ".." {
			if len(r.parts) == 0 {
				r.up++
			}
			r.parts, anchored = r.parts[:max(len(r.parts)-1, 0)], true
		} else if part != "" && part != "." {
			r.parts = append(r.parts, strings.ReplaceAll(part, "[!", "[^"))
		}
	}
	for _, part := range r.parts {
		if _, err := path.Match(part, ""); err != nil {
			return r, &fault{"a bracket [ is not closed, or it ends in a backslash", `write \[ for the character`}
		}
	}
	if len(r.parts) == 0 && !below && r.up == 0 && p != "/" {
		return r, &fault{"it names the folder itself, not what is in it", "write ** for all below it: Read(./**)"}
	}
	for len(r.parts) > 0 && r.parts[len(r.parts)-1] == "**" {
		r.parts = r.parts[:len(r.parts)-1]
	}
	r.float = len(r.parts) == 1 && !anchored
	return r, nil
}

// braced says whether a pattern has {a,b} in it, which nothing reads as two.
func braced(p string) bool {
	_, rest, ok := strings.Cut(p, "{")
	in, _, closed := strings.Cut(rest, "}")
	return ok && closed && strings.Contains(in, ",")
}

// below gives the parts of a path below a folder; false: it is not in it.
func below(root, p string) ([]string, bool) {
	if p == root {
		return nil, true
	}
	rest, ok := strings.CutPrefix(p, strings.TrimSuffix(root, "/")+"/")
	if !ok {
		return nil, false
	}
	return strings.Split(rest, "/"), true
}

// names says whether a pattern is a path's, by its parts below where the pattern begins, or a folder's that it is in.
func (r *pathRule) names(p []string) bool {
	if len(r.parts) == 0 {
		return true
	}
	if r.float {
		return slices.ContainsFunc(p, func(part string) bool { return partIs(r.parts[0], part) })
	}
	reach := make([]bool, len(r.parts)+1) // how much of the pattern has been met
	reach[0] = true
	whole := func() bool {
		for i, pat := range r.parts { // ** may stand for nothing
			reach[i+1] = reach[i+1] || reach[i] && pat == "**"
		}
		return reach[len(r.parts)]
	}
	whole()
	for _, part := range p {
		for i := len(r.parts); i >= 0; i-- {
			stays := i < len(r.parts) && r.parts[i] == "**" && reach[i]
			reach[i] = stays || i > 0 && r.parts[i-1] != "**" && reach[i-1] && partIs(r.parts[i-1], part)
		}
		if whole() {
			return true
		}
	}
	return false
}

func partIs(pattern, part string) bool {
	ok, err := path.Match(pattern, part)
	return ok && err == nil
}

// Place is where a call is made, for those of its contents that are paths.
type Place struct {
	Dir     string                                          // of the agent; empty: not known
	Resolve func(path string) (places []string, whole bool) // the places that a path may lead to; nil: the one that it is called
}

// here is a place with what it was asked for: each path is looked up once.
type here struct {
	Place
	asked map[string][]string
}

// places are those of a path: as it is called, cleaned, and where it leads.
func (p *here) places(name string) []string {
	all, ok := p.asked[name]
	switch {
	case ok:
		return all
	case p.Resolve != nil:
		all, _ = p.Resolve(name) // what it leaves out has been refused: the guard asks it too
	case strings.HasPrefix(name, "/"):
		all = []string{path.Clean(name)}
	default:
		all = []string{path.Join("/", p.Dir, name)}
	}
	p.asked[name] = all
	return all
}

// roots are the folders that a pattern may begin in. Where a rule denies or asks, a project may begin in each folder above the agent's.
func (p *here) roots(r *pathRule, list List) (all []string) {
	switch r.root {
	case '/':
		return []string{"/"}
	case '~':
		return p.places("~")
	}
	if p.Dir == "" {
		if list == Allow && r.root == '.' {
			return nil
		}
		return []string{"/"}
	}
	for _, dir := range p.places(".") {
		for range r.up {
			dir = path.Dir(dir)
		}
		all = append(all, dir)
		for r.root == 'p' && list != Allow && dir != "/" {
			dir = path.Dir(dir)
			all = append(all, dir)
		}
	}
	if r.root == 'p' {
		all = append(all, "/") // rules of a machine belong to no project
	}
	return all
}
