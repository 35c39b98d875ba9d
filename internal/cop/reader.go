package cop

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

// Bounds of what is read; what is over one is Unreadable.
const (
	maxText   = 256 << 10 // bytes of one text
	maxNested = 8         // texts within texts: sh -c, eval
	maxCalls  = 5000      // commands in all
	maxFrames = 1500      // function calls of the parser, which recurses
)

// reader collects the indicators of one command.
type reader struct {
	out    Indicators
	vars   map[string]string // variables whose value is known
	nested int
	calls  int
	// codes are texts that the command writes somewhere; they count once it runs an interpreter.
	codes   []string
	runtime bool
	first   string // the command itself, for a reason
}

// Text reads a shell text.
func Text(text string) Indicators {
	r := reader{vars: map[string]string{}, first: text}
	r.text(text)
	return r.end()
}

// Argv reads a command as it was started.
func Argv(argv []string) Indicators {
	if len(argv) == 0 {
		return Indicators{}
	}
	r := reader{vars: map[string]string{}, first: argv[0]}
	words := make([]word, len(argv))
	for i, a := range argv {
		words[i] = literal(a)
	}
	r.call(words, nil)
	return r.end()
}

// end draws what only the whole command shows.
func (r *reader) end() Indicators {
	if r.runtime {
		for _, code := range r.codes {
			r.code(code)
		}
	}
	has := r.out.Has
	shell := has&(Shell|OpaqueCode) != 0
	switch {
	case has&Pipe != 0 && shell && has&(Send|Listen) != 0:
		r.out.Add(ReverseShell, "a named pipe between a shell and the network")
	case has&Device != 0 && has&Shell != 0:
		r.out.Add(ReverseShell, "a shell beside "+r.out.Why(Device))
	}
	return r.out
}

func (r *reader) text(text string) {
	if r.nested >= maxNested || len(text) > maxText {
		r.out.Add(Unreadable, "too long or too deeply nested")
		return
	}
	r.nested++
	defer func() { r.nested-- }()
	p := syntax.NewParser(syntax.Variant(syntax.LangBash))
	f, err := p.Parse(shell.Guard(literal(text).text, maxFrames), "")
	if err != nil {
		r.out.Add(Unreadable, "cannot be read as a shell text")
		r.loose(text)
		return
	}
	r.settle(f)
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			r.statement(n)
		case *syntax.DeclClause:
			r.assigns(n.Args)
			if len(n.Args) == 1 && n.Args[0].Naked && n.Args[0].Name == nil {
				r.out.Add(Secret, n.Variant.Value+" prints the variables")
			}
		}
		return r.calls <= maxCalls
	})
	if r.calls > maxCalls {
		r.out.Add(Unreadable, "too many commands")
	}
}

// loose looks at a text that cannot be parsed word by word, for what reasons can be given.
func (r *reader) loose(text string) {
	r.secrets(text)
	r.code(text)
	if strings.Contains(text, "/dev/tcp/") || strings.Contains(text, "/dev/udp/") {
		r.out.Add(Device|Contact, "/dev/tcp or /dev/udp")
	}
}

// settle finds the variables that have one known value in the whole text.
func (r *reader) settle(f *syntax.File) {
	set := func(name, value string) {
		if old, ok := r.vars[name]; ok && old != value {
			value = hole
		}
		r.vars[name] = value
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			for _, a := range n.Assigns {
				if len(n.Args) > 0 && a.Name != nil { // set for that command only
					set(a.Name.Value, hole)
				}
			}
			if len(n.Args) > 0 && setters[n.Args[0].Lit()] {
				for _, w := range n.Args[1:] {
					set(w.Lit(), hole)
				}
			}
		case *syntax.Assign:
			if n.Name == nil {
				break
			}
			value := hole
			if w := r.word(n.Value); !n.Append && n.Array == nil && n.Index == nil && n.Value != nil && w.known() {
				value = w.text
			}
			set(n.Name.Value, value)
		case *syntax.WordIter:
			set(n.Name.Value, hole)
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil {
				set(n.Param.Value, hole)
			}
		}
		return true
	})
}

// setters are commands that set the variables that they name.
var setters = commands.Names("read printf mapfile readarray getopts unset let")

// assigns looks at what variables are set to.
func (r *reader) assigns(as []*syntax.Assign) {
	for _, a := range as {
		if a.Name == nil {
			continue
		}
		w := r.word(a.Value)
		r.secrets(w.text)
		if proxy := strings.ToLower(a.Name.Value); strings.HasSuffix(proxy, "_proxy") && proxy != "no_proxy" {
			r.host(w)
		}
	}
}

// statement reads the redirections of a command, and the command if it is a simple one.
func (r *reader) statement(s *syntax.Stmt) {
	var given []string // texts on its standard input
	for _, re := range s.Redirs {
		w := r.word(re.Word)
		switch re.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			given = append(given, r.word(re.Hdoc).text)
		case syntax.WordHdoc:
			given = append(given, w.text)
		default:
			r.device(w)
		}
		r.secrets(w.text)
		if w.command && re.Op == syntax.RdrIn {
			given = append(given, hole)
		}
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok {
		r.codes = append(r.codes, given...)
		return
	}
	r.assigns(call.Assigns)
	if len(call.Args) > 0 {
		r.call(r.words(call.Args), given)
	}
}

// device looks at a file name that may be a connection of bash's.
func (r *reader) device(w word) {
	for _, dev := range []string{"/dev/tcp/", "/dev/udp/", "/inet/", "/inet4/", "/inet6/"} {
		rest, ok := strings.CutPrefix(w.text, dev)
		if !ok {
			continue
		}
		if strings.HasPrefix(dev, "/inet") {
			parts := strings.SplitN(rest, "/", 4) // protocol, local port, host, port
			if len(parts) < 3 {
				continue
			}
			rest = parts[2]
		}
		host, _, _ := strings.Cut(rest, "/")
		if Local(host) {
			return
		}
		r.out.Add(Device|Contact, w.text)
		if w.command {
			r.out.Add(Computed, w.text)
		}
		r.out.AddHost(host)
	}
}

// host notes the host of a URL, host:port or user@host, unless it is this machine.
func (r *reader) host(w word) {
	host, ok := Host(w.text)
	switch {
	case ok && Local(host):
		return
	case !ok:
		host = ""
	}
	r.out.Add(Contact, w.text)
	if w.command || carries(w.text) {
		r.out.Add(Computed, w.text)
	}
	if host != "" {
		r.out.AddHost(host)
	}
}

// carries tells whether a literal URL or name holds what looks like encoded data.
func carries(s string) bool {
	if len(s) > 512 {
		return true
	}
	for part := range strings.FieldsFuncSeq(s, func(c rune) bool { return strings.ContainsRune("/.?&=:@", c) }) {
		if len(part) > 80 || len(part) > 40 && !strings.ContainsAny(part, "-_") || len(part) >= 16 && strings.HasSuffix(s, "=") && strings.Contains(s, part+"=") {
			return true
		}
	}
	return false
}

func base(name string) string { return strings.TrimSuffix(strings.ToLower(path.Base(name)), ".exe") }
