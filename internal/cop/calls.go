package cop

import (
	"slices"
	"strings"

	"weir/internal/commands"
)

// call reads one command; given are the texts that stand on its standard input.
func (r *reader) call(words []word, given []string) {
	if r.calls++; r.calls > maxCalls || len(words) == 0 {
		return
	}
	name, args := words[0], words[1:]
	// Names such as $(which python) and c?rl may stand for anything.
	if !name.known() || strings.ContainsAny(name.text, "*?[") {
		r.out.Add(OpaqueCode, "a command that is not named")
		r.interpreter(args, given)
		r.readable(words, nil)
		return
	}
	tool := base(name.text)
	kind := lookup(tool)
	skip := r.tool(kind, tool, args, given)
	if kind == nothing {
		r.codes = append(r.codes, given...)
	}
	r.readable(words, skip)
	if kind == wrapper {
		r.wrapped(tool, args, given)
	}
}

// readable looks at the words themselves; skip are options whose value is a key that is used, not sent.
func (r *reader) readable(words []word, skip []string) {
	for i, w := range words {
		if i > 0 && slices.Contains(skip, words[i-1].text) {
			continue
		}
		r.secrets(w.text)
	}
}

// tool reads the arguments of a known program.
func (r *reader) tool(kind kind, tool string, args []word, given []string) (skip []string) {
	switch kind {
	case fetcher:
		r.fetch(tool, args)
		if strings.HasPrefix(tool, "git-remote-") { // it is told on its standard input which of both
			r.out.Add(Contact|Send, tool)
		}
		return keyOptions
	case sender:
		r.send(tool, args)
		return keyOptions
	case copier:
		r.copies(tool, args)
		return keyOptions
	case asker:
		r.ask(tool, args)
	case prober:
		for _, w := range operands(tool, args) {
			r.host(w)
		}
		if w, ok := option(args, "--file", "--data", "--data-string", "-E", "-e"); ok {
			r.out.Add(Contact|Send, tool+" with "+w.text)
		} else if w, ok := option(args, "-p"); ok && strings.HasPrefix(tool, "ping") {
			r.out.Add(Contact|Send, tool+" -p "+w.text)
		}
		r.computed(args, true)
	case mailer:
		r.out.Add(Contact|Send, tool+" sends")
		r.computed(args, true)
	case cloud:
		r.cloud(tool, args)
	case versions:
		r.versions(tool, args)
	case packages:
		r.packages(tool, args)
	case runsText:
		r.shell(tool, args, given)
	case interpreter:
		r.interpreter(args, given)
		r.module(args, given)
	case awk:
		for _, w := range args {
			r.inet(w)
			r.code(w.text)
		}
	case encoder:
		r.encode(tool, args)
	case socat:
		r.socat(args)
	case openssl:
		r.openssl(args)
	default:
		r.plain(tool, args, given)
	}
	return nil
}

// plain reads small tools that matter in a few forms only.
func (r *reader) plain(tool string, args []word, given []string) {
	switch tool {
	case "eval":
		r.eval(args)
	case "source", ".":
		if len(args) > 0 && args[0].command || len(given) > 0 {
			r.out.Add(OpaqueCode, tool+" of a command's output")
		}
	case "mkfifo":
		r.out.Add(Pipe, tool)
	case "mknod":
		if slices.ContainsFunc(args, func(w word) bool { return w.text == "p" }) {
			r.out.Add(Pipe, tool)
		}
	case "chmod":
		if len(args) > 0 && (strings.Contains(args[0].text, "x") || strings.ContainsAny(args[0].text, "157")) {
			r.out.Add(Executable, tool+" "+args[0].text)
		}
	case "echo", "printf":
		for _, w := range args {
			r.codes = append(r.codes, w.text)
		}
	case "printenv", "env":
		if !slices.ContainsFunc(args, func(w word) bool { return !strings.HasPrefix(w.text, "-") }) {
			r.out.Add(Secret, tool+" prints the environment")
		}
	case "set":
		if len(args) == 0 {
			r.out.Add(Secret, "set prints the variables")
		}
	case "code", "code-server", "cursor":
		if len(args) > 0 && (args[0].text == "tunnel" || args[0].text == "serve-web") {
			r.out.Add(Contact|Send, tool+" "+args[0].text)
		}
	case "httpd", "lighttpd", "nginx", "caddy":
		r.out.Add(Listen, tool)
	case "zmodload", "ztcp":
		if tool == "ztcp" || slices.ContainsFunc(args, func(w word) bool { return strings.Contains(w.text, "net/") }) {
			r.out.Add(Device|Contact, tool)
		}
	}
}

func (r *reader) eval(args []word) {
	var b strings.Builder
	for _, w := range args {
		if w.command || !w.known() {
			r.out.Add(OpaqueCode, "eval of "+w.text)
		}
		b.WriteString(strings.ReplaceAll(w.text, hole, "_"))
		b.WriteByte(' ')
	}
	r.text(b.String())
}

// wrapped reads what a program runs with the words behind its name.
func (r *reader) wrapped(tool string, args []word, given []string) {
	run, texts := commands.Unwrap(tool, args, func(w word) string { return w.text })
	for _, words := range run {
		r.call(words, given)
	}
	for _, t := range texts {
		if tool != "env" { // which splits it by itself
			r.out.Add(Shell, tool)
		}
		r.nest(word{text: t})
	}
}

func (r *reader) nest(w word) {
	if !w.known() {
		r.out.Add(OpaqueCode, "a text that is not all there")
	}
	r.text(strings.ReplaceAll(w.text, hole, "_"))
}

func (r *reader) shell(tool string, args []word, given []string) {
	r.out.Add(Shell, tool)
	for i, w := range args {
		switch {
		case !strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "+"):
			if w.command {
				r.out.Add(OpaqueCode, tool+" runs what a command writes")
			}
			return // a script
		case strings.HasPrefix(w.text, "--") || w.text == "-" || w.text == "-s":
			continue
		case strings.Contains(w.text, "c"):
			at := i + 1
			if commands.IsShell(tool) { // more options may stand before the text
				words := make([]string, 0, len(args))
				for _, w := range args[i:] {
					words = append(words, w.text)
				}
				at, _ = commands.ShellText(words)
				at += i
			}
			if at < len(args) {
				if args[at].command {
					r.out.Add(OpaqueCode, tool+" -c of a command's output")
				}
				r.nest(args[at])
			}
			return
		}
	}
	for _, text := range given {
		r.nest(word{text: text})
	}
	if len(given) == 0 {
		r.out.Add(OpaqueCode, tool+" runs its input")
	}
}

// interpreter reads code that stands on the command line or on the standard input.
func (r *reader) interpreter(args []word, given []string) {
	r.runtime = true
	script := false
	for i, w := range args {
		if i > 0 && strings.HasPrefix(args[i-1].text, "-") && w.command {
			r.out.Add(OpaqueCode, "code that is the output of a command")
		}
		script = script || !strings.HasPrefix(w.text, "-") || len(w.text) > 1
		r.code(w.text)
	}
	for _, text := range given {
		r.code(text)
		if strings.Contains(text, hole) {
			r.out.Add(OpaqueCode, "code that is not all there")
		}
	}
	if !script && len(given) == 0 {
		r.out.Add(OpaqueCode, "runs the code of its input")
	}
}

// module reads python -m.
func (r *reader) module(args []word, given []string) {
	for i, w := range args {
		if w.text != "-m" || i+1 == len(args) {
			continue
		}
		switch m := args[i+1].text; m {
		case "http.server", "SimpleHTTPServer", "pyftpdlib", "aiohttp.web", "uvicorn":
			r.out.Add(Listen, m)
		case "smtplib", "telnetlib", "ftplib", "urllib.request", "http.client", "webbrowser", "socket", "httpx", "requests":
			r.out.Add(NetCode, "-m "+m)
		default:
			if lookup(m) == packages {
				r.call(args[i+1:], given)
			}
		}
		return
	}
}

func (r *reader) inet(w word) {
	for _, token := range strings.FieldsFunc(w.text, func(c rune) bool { return strings.ContainsRune("\"' \t;(){}", c) }) {
		if strings.HasPrefix(token, "/inet") {
			r.device(word{text: token})
		}
	}
}
