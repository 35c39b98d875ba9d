package toolguard

import (
	"encoding/base64"
	"encoding/hex"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"weir/internal/commands"
)

// maxTexts bounds the texts that are found in one text, and in those.
const maxTexts = 64

// maxWrapped bounds the programs that run one another in one command.
const maxWrapped = 512

// Programs that run text of a shell, and of other languages.
var (
	shellNames   = append(strings.Fields(commands.Shells), "csh", "tcsh")
	interpreters = []string{"python", "perl", "ruby", "node", "nodejs", "php", "pypy", "lua", "luajit", "deno", "bun", "tclsh", "Rscript"}
	isShell      = isNamed(shellNames...)
	versioned    = commands.Names(strings.Join(slices.Concat(shellNames, interpreters), " "))
)

// opens are the names of commands that run texts of a language.
var opens = sync.OnceValue(func() [3][]string {
	return [...][]string{
		POSIX:      slices.Concat(shellNames, interpreters, []string{"at", "batch", "eval", "source", "trap", "alias", "crontab", "ssh", "screen", "tmux", "awk", "gawk", "mawk", "tar", "vim", "vi", "nvim", "ex", "gdb", "sqlite3", "psql", "mysql", "wsl", "sudo"}, commands.RunTexts()),
		PowerShell: slices.Concat(powerShells, []string{"invoke-expression", "start-job", "invoke-command", "start-threadjob"}),
		Cmd:        {"cmd", "invoke-wmimethod", "invoke-cimmethod", "set-itemproperty", "new-itemproperty", "reg", "wmic", "forfiles", "schtasks", "at", "runas", "sc", "new-service", "new-scheduledtaskaction", "pcalua", "conhost"},
	}
})

// methods are those of PowerShell that do.
var methods = [...][]string{POSIX: nil, PowerShell: {".create", ".invokescript", ".addscript", ".newscriptblock"}, Cmd: {".create", ".run", ".exec"}}

// runsTexts has the bits of the dialects whose texts a command runs, by its name.
var runsTexts = sync.OnceValue(func() map[string]uint8 {
	bits := map[string]uint8{}
	for d, names := range opens() {
		for _, name := range slices.Concat(names, methods[d]) {
			bits[name] |= 1 << d
		}
	}
	return bits
})

// text is a script in one language.
type text struct {
	dialect Dialect
	text    string
}

type texts []text

// unwrapped adds to commands what they run with the rest of their words: the first as Runs, others beside them. It gives texts for a shell, too.
func unwrapped(commands []*Command) ([]*Command, texts) {
	var all texts
	for i := 0; i < len(commands); i++ {
		for e, deep := commands[i], 0; e != nil && deep < maxWrapped; e, deep = e.Runs, deep+1 {
			plainDashes(e)
			next, read := unwrap(e)
			if len(next) > 0 {
				e.Runs, commands = next[0], append(commands, next[1:]...)
			}
			all = append(all, read...)
		}
	}
	return commands, all
}

// plainDashes turns the dashes that PowerShell and other programs of Windows take for their own into those, where a word begins with one (F21).
func plainDashes(c *Command) {
	if c.Dialect == POSIX && !strings.HasSuffix(strings.ToLower(c.Program), ".exe") && !runsPowerShell.is(c) {
		return
	}
	for _, a := range c.Args {
		if a.Text != "" && a.Text[0] >= 0x80 && psPlain(a.Text)[0] == '-' {
			c.Args = slices.Clone(c.Args)
			for i, a := range c.Args {
				c.Args[i].Text = psPlain(a.Text)
			}
			return
		}
	}
}

// powerShells are PowerShell's own programs.
var powerShells = []string{"powershell", "pwsh", "powershell_ise", "powershell-preview", "pwsh-preview"}

var runsPowerShell = isNamed(powerShells...)

// unwrap gives the commands that a command runs with the rest of its words, and texts for a shell.
func unwrap(c *Command) ([]*Command, texts) {
	switch c.Name {
	case "start-process":
		return []*Command{startProcess(c)}, nil
	case ".start", ".new":
		if ofProcess.is(c) && len(c.Args) > 0 {
			return []*Command{startedAs(c, c.Args[0], Value{Items: c.Args[1:]})}, nil
		}
	case ".shellexecute":
		if c.Made(ofDesktop.is) && len(c.Args) > 0 {
			return []*Command{startedAs(c, c.Args[0], Value{Items: c.Args[1:min(2, len(c.Args))]})}, nil
		}
	case "new-object":
		if args := c.Args; ofStartInfo.is(c) && len(args) > 1 {
			list := args[1:]
			if len(list) == 1 {
				list = list[0].All()
			}
			return []*Command{startedAs(c, list[0], Value{Items: list[1:]})}, nil
		}
	case "psexec", "psexec64":
		args := c.Args
		for len(args) > 0 && (strings.HasPrefix(args[0].Text, "-") || strings.HasPrefix(args[0].Text, "/") || strings.HasPrefix(args[0].Text, `\\`)) {
			args = args[1:]
		}
		if len(args) == 0 {
			return nil, nil
		}
		return []*Command{command(c, args)}, nil
	}
	if c.Dialect == Cmd {
		return nil, nil
	}
	var runs []*Command
	var all texts
	found, read := commands.Unwrap(c.Name, c.Args, func(v Value) string { return v.Text })
	for _, args := range found {
		next := command(c, supplied(c, args))
		if c.Name == "env" || c.Name == "sudo" {
			next.Dir = chdir(c, len(c.Args)-len(args))
		}
		runs = append(runs, next)
	}
	for _, t := range read {
		if c.Name == "parallel" && !slices.ContainsFunc(c.Args, func(a Value) bool { return strings.HasPrefix(a.Text, ":::") }) {
			t = strings.TrimSpace(t + " " + quotedWords(supplied(c, []Value{{Text: t}})[1:]))
		}
		all = append(all, text{POSIX, t})
	}
	return runs, all
}

// supplied are the words of a command that xargs or parallel runs, with those that they add.
func supplied(c *Command, args []Value) []Value {
	if c.Name != "xargs" && c.Name != "parallel" {
		return args
	}
	var more []Value
	place := "{}"
	for i, a := range c.Args {
		switch {
		case strings.HasPrefix(a.Text, ":::"):
			more = append(more, c.Args[i+1:]...)
		case a.Text == "-I" && i+1 < len(c.Args):
			place = c.Args[i+1].Text
		case strings.HasPrefix(a.Text, "-I"):
			place = a.Text[2:]
		case (a.Text == "-a" || a.Text == "--arg-file") && i+1 < len(c.Args):
			if text, ok := output(c.Args[i+1].Of); ok {
				more = append(more, texted(strings.Fields(text))...)
			}
		}
	}
	from := last(c.From)
	switch text, ok := inputOf(c); {
	case from != nil && from.Name == "ls": // the names in it, or with -d its own
		if more = append(more, from.Args...); len(operandsOf(from)) == 0 {
			more = append(more, Value{Text: "*"})
		}
	case from != nil && from.Name == "find":
		if overSystem(from) {
			more = append(more, Value{Text: "-r"}, Value{Text: "/"}) // each by itself
		}
	case ok:
		more = append(more, texted(strings.Fields(text))...)
	case from != nil && fetchers.is(from) && args[len(args)-1].Text == place && isShell.is(command(c, args)), from != nil && fetchers.is(from) && args[len(args)-1].Text == "-c":
		more = []Value{{Text: unknownText, Of: from}}
	}
	var out []Value
	placed := false
	for _, a := range args {
		if len(out) > MaxArgs {
			break
		}
		if place == "" || !strings.Contains(a.Text, place) || len(more) == 0 {
			out = append(out, a)
			continue
		}
		placed = true
		for _, m := range more[:min(len(more), MaxSteps)] {
			m.Text = strings.ReplaceAll(a.Text, place, m.Text)
			out = append(out, m)
		}
	}
	if !placed {
		out = append(out, more...)
	}
	return out
}

// chdir is the directory that env or sudo runs a command in, by one of its first n words.
func chdir(c *Command, n int) string {
	for i, a := range c.Args[:n] {
		switch dir, glued := strings.CutPrefix(a.Text, "--chdir="); {
		case glued:
			return directory(c.Dir, []Value{{Text: dir}})
		case (a.Text == "--chdir" || a.Text == "-C" && c.Name == "env" || a.Text == "-D" && c.Name == "sudo") && i+1 < n:
			return directory(c.Dir, c.Args[i+1:n])
		}
	}
	return c.Dir
}

// command is c with other words.
func command(c *Command, words []Value) *Command {
	next := *c
	next.Program, next.Args = words[0].Text, words[1:]
	next.Name = ""
	if words[0].Known() {
		switch c.Dialect {
		case PowerShell:
			next.Name = strings.TrimLeft(psCanonical(next.Program), ".")
		case Cmd:
			next.Name = strings.TrimLeft(baseName(next.Program), ".")
		default:
			next.Name = posixName(next.Program)
		}
	}
	return &next
}

// startProcess is the command that Start-Process starts.
func startProcess(c *Command) *Command {
	file, named := paramOf(c, "filepath")
	list, listed := paramOf(c, "argumentlist")
	if !listed {
		list, listed = paramOf(c, "args")
	}
	var free []Value // what has no name
	for i := 0; i < len(c.Args); i++ {
		a := c.Args[i]
		switch w := strings.ToLower(strings.TrimLeft(a.Text, "-")); {
		case a.Quoted || len(a.Items) > 0 || !strings.HasPrefix(a.Text, "-"):
			free = append(free, a)
		case !slices.ContainsFunc(startSwitches, func(s string) bool { return w != "" && strings.HasPrefix(s, w) }):
			i++ // its value
		}
	}
	if !named && len(free) > 0 {
		file, free = free[0], free[1:]
	}
	if !listed && len(free) > 0 {
		list = free[0]
	}
	return startedAs(c, file, list)
}

// startSwitches are the parameters of Start-Process without a value.
var startSwitches = []string{"nonewwindow", "nnw", "wait", "passthru", "loaduserprofile", "lup", "usenewenvironment", "whatif", "confirm"}

// startedAs is a program of Windows with the words of a list.
func startedAs(c *Command, file, list Value) *Command {
	next := &Command{Dialect: Cmd, Name: baseName(file.Text), Program: file.Text, From: c.From}
	for _, item := range list.All() {
		for _, w := range splitPowerShell(item.Text) {
			next.Args = append(next.Args, Value{Text: w, Of: item.Of})
		}
	}
	return next
}

// last is what a command runs in the end.
func last(c *Command) *Command {
	for c != nil && c.Runs != nil {
		c = c.Runs
	}
	return c
}

func first(args []Value) Value {
	if len(args) == 0 {
		return Value{}
	}
	return args[0]
}

func joined(args []Value) string {
	var words []string
	for _, a := range args {
		for _, v := range a.All() {
			words = append(words, v.Text)
		}
	}
	return strings.Join(words, " ")
}

// line is words as one command line of Windows.
func line(args []Value) string {
	var words []string
	for _, a := range args {
		for _, v := range a.All() {
			if strings.ContainsAny(v.Text, " \t") {
				v.Text = `"` + v.Text + `"`
			}
			words = append(words, v.Text)
		}
	}
	return strings.Join(words, " ")
}

// inner gives the texts that a command runs as scripts.
func inner(c *Command) (all texts) {
	bits := runsTexts()[c.Name]
	for d, of := range [...]func(*Command) texts{POSIX: ofShell, PowerShell: ofPowerShell, Cmd: ofCmd} {
		if bits&(1<<d) != 0 {
			all = append(all, of(c)...)
		}
	}
	return all
}

// Conditions on what is run.
var (
	ofProcess   = onType("[diagnostics.process]", "[diagnostics.processstartinfo]")
	ofStartInfo = textContains("diagnostics.processstartinfo")
	ofDesktop   = textContains("shell.application")
	ofWMI       = textContains("win32_process")
	ofHost      = textContains("wscript.shell")
	atLogon     = textContains(`\currentversion\run`)
	byWMIC      = hasWords("process", "call", "create")
)

// ofShell are those for a POSIX shell.
func ofShell(c *Command) (all texts) {
	if isShell.is(c) {
		return shellTexts(c)
	}
	if c.Name == "wsl" { // Linux, beside Windows
		return texts{{POSIX, joined(behindOptions(c.Args, "dun"))}}
	}
	if c.Dialect != POSIX {
		return nil
	}
	switch c.Name {
	case "at", "batch":
		return fed(c, POSIX)
	case "eval":
		return texts{{POSIX, joined(c.Args)}}
	case "source":
		return scriptOf(c, first(c.Args))
	case "su", "sudo":
		if c.Name == "su" || hasFlag('s', "shell").is(c) || hasFlag('i', "login").is(c) {
			return fed(c, POSIX)
		}
	case "trap":
		if len(c.Args) > 1 {
			return texts{{POSIX, c.Args[0].Text}}
		}
	case "alias":
		for _, a := range c.Args {
			if _, value, ok := strings.Cut(a.Text, "="); ok {
				all = append(all, text{POSIX, value})
			}
		}
	case "crontab":
		for _, t := range fed(c, POSIX) {
			all = append(all, text{POSIX, cronTimes().ReplaceAllString(t.text, "")})
		}
	case "ssh":
		if words := behindOptions(c.Args, "BbcDEeFIiJLlmOopQRSWw"); len(words) > 1 {
			return texts{{POSIX, joined(words[1:])}}
		}
	case "screen":
		if words := behindOptions(c.Args, "cehpSstT"); len(words) > 0 {
			return texts{{POSIX, asText(words)}}
		}
	case "tmux":
		if words := behindOptions(c.Args, "cfLST"); len(words) > 1 {
			if words = behindOptions(words[1:], "ceFnstxylp"); len(words) > 0 {
				return texts{{POSIX, first(words).Text}, {POSIX, asText(words)}}
			}
		}
	case "tar":
		for _, a := range c.Args {
			for _, option := range [...]string{"--checkpoint-action=exec=", "--to-command="} {
				if t, ok := strings.CutPrefix(a.Text, option); ok {
					all = append(all, text{POSIX, t})
				}
			}
		}
	case "vim", "vi", "nvim", "ex", "gdb", "sqlite3", "psql", "mysql":
		for _, a := range append(c.Args[:len(c.Args):len(c.Args)], c.Reads...) {
			if m := escapes().FindStringSubmatch(a.Text); m != nil {
				all = append(all, text{POSIX, m[1]})
			}
		}
	default:
		return calledIn(c)
	}
	return all
}

// escapes is met by a command of an editor, a debugger or a database's client that runs the rest of it in a shell.
var escapes = pathPattern(`^[+:.\\]*(?:!|shell |system )(.*)`)

var cronTimes = pathPattern(`(?m)^[ \t]*(@\w+|([-\d*/,A-Za-z]+[ \t]+){5})`)

// behindOptions are the words behind options, of which those named by a letter have a value.
func behindOptions(args []Value, values string) []Value {
	for len(args) > 0 && len(args[0].Text) > 1 && args[0].Text[0] == '-' {
		n := 1
		if o := args[0].Text; o[1] == '-' && !strings.Contains(o, "=") && strings.Contains("--distribution --user --cd", o) && len(o) > 2 || strings.IndexByte(values, o[len(o)-1]) >= 0 {
			n = 2
		}
		args = args[min(n, len(args)):]
	}
	return args
}

// asText is words as one text of a shell; a single one is the text itself. What is not known stays so.
func asText(words []Value) string {
	if len(words) == 1 {
		return words[0].Text
	}
	return quotedWords(words)
}

func quotedWords(words []Value) string {
	list := make([]string, len(words))
	for i, v := range words {
		list[i] = "'" + strings.NewReplacer("'", `'\''`, unknownText, `'"$?"'`).Replace(v.Text) + "'"
	}
	return strings.Join(list, " ")
}

// scriptOf is the script that a shell reads from a file which is the output of a command, or its standard input.
func scriptOf(c *Command, file Value) texts {
	if s, ok := output(file.Of); ok {
		return texts{{POSIX, s}}
	}
	switch file.Text {
	case "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0":
		return fed(c, POSIX)
	}
	return nil
}

// Texts of a shell in the code of other languages, where it runs them.
var (
	runsText = pathPattern("(?is)\\b(?:system|popen\\d?|exec(?:sync|filesync|file|lp?e?|vp?e?)?|spawn(?:sync|lp?|vp?)?|shell_exec|passthru|proc_open|run|call|check_call|check_output|getoutput|getstatusoutput|execute|qx)\\b[\\s(\\[{]*" +
		`((?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" + `)(?:\s*,\s*\[?\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))*)`)
	quotedText = pathPattern(`(?s)"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|` + "`([^`]*)`")
	backticks  = pathPattern("(?s)`([^`]+)`|%x[({\\[/|]([^)}\\]/|]+(?:/[^)}\\]|]*)?)|qx\\s*[({\\[/|]([^)}\\]|]+)")
)

// changesFile is met by what removes or writes a file, in the code of other languages.
var changesFile = pathPattern(`(?i)\b(?:remove|unlink|delete|unlinkSync|removeSync|rmSync|truncate|truncateSync|writeFile|writeFileSync|appendFileSync|file_put_contents|File\.write|write_text|write_bytes)\s*\(?\s*["']([^"'\n]*/[^"'\n]+)["']|` +
	`\b(?:open|fopen|File\.open|File\.new|openSync)\s*\(\s*["']([^"'\n]*/[^"'\n]+)["']\s*,\s*["'][rbt]*[wax+]|\bPath\(\s*["']([^"'\n]*/[^"'\n]+)["']\s*\)\s*\.\s*(?:write_|unlink|touch|rename|replace)` +
	`|\b(?:copy\w*|move|rename)\s*\(?\s*(?:["'][^"'\n]*["']\s*,\s*)?["']([^"'\n]*/[^"'\n]+)["']|\bprintf?\b[^;}\n]*>\s*"(/[^"]+)"`)

// codes are the texts in other languages that an interpreter is given: behind an option as -e, or on its input.
func codes(c *Command) (all []string) {
	for i, v := range c.Args {
		w := v.Text
		switch {
		case strings.HasSuffix(c.Name, "awk"):
			all = append(all, w)
		case strings.HasPrefix(w, "--eval="):
			all = append(all, w[len("--eval="):])
		case (w == "--eval" || w == "--print" || len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.ContainsAny(w[len(w)-1:], "ceErp")) && i+1 < len(c.Args):
			all = append(all, c.Args[i+1].Text)
		}
	}
	if s, ok := inputOf(c); ok {
		all = append(all, s)
	}
	return all
}

// calledIn are the shell's texts in the code that an interpreter is given.
func calledIn(c *Command) (all texts) {
	if !runsCode[c.Name] {
		return nil
	}
	for _, code := range codes(c) {
		for _, m := range runsText().FindAllStringSubmatch(code, MaxSteps) {
			var words []Value
			for _, l := range quotedText().FindAllStringSubmatch(m[1], MaxSteps) {
				words = append(words, Value{Text: strings.ReplaceAll(strings.ReplaceAll(l[1]+l[2]+l[3], `\"`, `"`), `\'`, "'")})
			}
			all = append(all, text{POSIX, asText(words)})
		}
		for _, m := range changesFile().FindAllStringSubmatch(code, MaxSteps) {
			all = append(all, text{POSIX, ": > " + quotedWords([]Value{{Text: strings.Join(m[1:], "")}})})
		}
		if c.Name == "perl" || c.Name == "ruby" || c.Name == "php" {
			for _, m := range backticks().FindAllStringSubmatch(code, MaxSteps) {
				all = append(all, text{POSIX, m[1] + m[2] + m[3]})
			}
		}
	}
	return all
}

var runsCode = commands.Names(strings.Join(interpreters, " ") + " awk gawk mawk")

// ofPowerShell are those for PowerShell.
func ofPowerShell(c *Command) texts {
	if runsPowerShell.is(c) {
		return windows(c)
	}
	switch c.Name {
	case "invoke-expression":
		args := c.Args
		if v, ok := paramOf(c, "command"); ok {
			args = []Value{v}
		}
		if len(args) == 0 && c.From != nil {
			args = c.From.Args
		}
		return texts{{PowerShell, joined(args)}}
	case ".create":
		if c.On.Type && strings.HasSuffix(c.On.Text, "scriptblock]") {
			return texts{{PowerShell, joined(c.Args)}}
		}
	case ".invokescript", ".addscript", ".newscriptblock":
		return texts{{PowerShell, joined(c.Args)}}
	case "start-job", "invoke-command", "start-threadjob":
		if v, ok := paramOf(c, "scriptblock"); ok && !v.Block {
			return texts{{PowerShell, v.Text}}
		}
	}
	return nil
}

// ofCmd are those for cmd, and command lines that Windows runs as it does.
func ofCmd(c *Command) texts {
	switch c.Name {
	case "cmd":
		return ofCmdItself(c)
	case ".create":
		if c.Made(ofWMI.is) || strings.Contains(strings.ToLower(c.On.Text), "win32_process") {
			return texts{{Cmd, first(c.Args).Text}}
		}
	case ".run", ".exec":
		if c.Made(ofHost.is) {
			return texts{{Cmd, first(c.Args).Text}}
		}
	case "invoke-wmimethod", "invoke-cimmethod":
		if ofWMI.is(c) {
			return lines(c)
		}
	case "set-itemproperty", "new-itemproperty", "reg":
		if atLogon.is(c) {
			return lines(c)
		}
	case "wmic":
		w := c.Words()
		if i := slices.IndexFunc(w, func(s string) bool { return strings.EqualFold(s, "create") }); i >= 0 && byWMIC.is(c) {
			return texts{{Cmd, strings.Join(w[i+1:], " ")}}
		}
	case "new-scheduledtaskaction":
		run, _ := paramOf(c, "execute")
		args, _ := paramOf(c, "argument")
		return texts{{Cmd, run.Text + " " + args.Text}}
	case "new-service":
		if v, ok := paramOf(c, "binarypathname"); ok {
			return texts{{Cmd, v.Text}}
		}
	case "sc":
		for i, a := range c.Args {
			if w := strings.ToLower(a.Text); strings.HasPrefix(w, "binpath=") {
				return texts{{Cmd, strings.TrimSpace(a.Text[len("binpath="):] + " " + joined(c.Args[i+1:min(i+2, len(c.Args))]))}}
			}
		}
	case "pcalua":
		var line []string
		for i, a := range c.Args[:max(0, len(c.Args)-1)] {
			if a.Text == "-a" || a.Text == "-c" {
				line = append(line, c.Args[i+1].Text)
			}
		}
		return texts{{Cmd, strings.Join(line, " ")}}
	case "conhost":
		return texts{{Cmd, line(behindOptions(c.Args, ""))}}
	case "forfiles", "schtasks", "at", "runas":
		for i, a := range c.Args {
			if l := strings.ToLower(a.Text); i+1 < len(c.Args) && (l == "/c" || l == "/tr") {
				return texts{{Cmd, c.Args[i+1].Text}}
			}
		}
		if c.Name == "runas" && len(c.Args) > 0 {
			return texts{{Cmd, c.Args[len(c.Args)-1].Text}}
		}
	}
	return nil
}

var (
	behindC  = pathPattern(`(?is)(?:\s|/[adfqsuvetx])/[ckr]\s*(.*?)\s*$`)
	runsRest = pathPattern(`(?i)^(?:/[adfqsuvetx](?::(?:on|off|[0-9a-f]{2}))?)*/[ckr]`)
)

// ofCmdItself is the text behind cmd's /c, /k or /r, or its input. cmd takes a quote at both ends of it away, whatever stands between them.
func ofCmdItself(c *Command) texts {
	if m := behindC().FindStringSubmatch(c.Line); m != nil && len(m[1]) > 1 && m[1][0] == '"' && m[1][len(m[1])-1] == '"' {
		c.Line = ""
		return append(ofCmdItself(c), text{Cmd, m[1][1 : len(m[1])-1]})
	}
	for i, a := range c.Args {
		at := runsRest().FindStringIndex(a.Text)
		if at == nil {
			continue
		}
		rest := joined(c.Args[i+1:])
		if len(c.Args) > i+2 {
			rest = line(c.Args[i+1:])
		}
		if len(a.Text) > at[1] {
			rest = a.Text[at[1]:] + " " + rest
		}
		return texts{{Cmd, rest}}
	}
	return fed(c, Cmd)
}

// lines are the words that can be command lines.
func lines(c *Command) texts {
	var all texts
	for _, w := range c.Words() {
		if strings.Contains(w, " ") {
			all = append(all, text{Cmd, w})
		}
	}
	return all
}

// fed is the text that a program reads from its standard input.
func fed(c *Command, d Dialect) texts {
	if s, ok := inputOf(c); ok {
		return texts{{d, s}}
	}
	return nil
}

// inputOf is the text on a command's standard input, where that is told.
func inputOf(c *Command) (string, bool) { return inputFrom(c, maxPassed) }

// maxPassed bounds the commands that a text goes through.
const maxPassed = 16

func inputFrom(c *Command, deep int) (string, bool) {
	if len(c.Reads) == 0 {
		return outputOf(last(c.From), deep-1)
	}
	var b strings.Builder
	for _, v := range c.Reads {
		if s, ok := outputOf(v.Of, deep-1); ok && !v.Known() && v.Text == unknownText {
			v.Text = s
		}
		b.WriteString(v.Text)
	}
	return b.String(), true
}

// output is what a command prints, where that is told by its words and what it is given.
func output(c *Command) (string, bool) { return outputOf(c, maxPassed) }

func outputOf(c *Command, deep int) (string, bool) {
	if c == nil || len(c.Writes) > 0 || deep < 0 {
		return "", false
	}
	switch c.Name {
	case "echo", "printf", "write-output", "":
		args := c.Args
		if c.Name == "printf" && len(args) > 1 && args[0].Text != "--" && strings.Contains(args[0].Text, "%") {
			return decoded(printed(args[0].Text, args[1:])), true
		}
		for c.Name != "" && len(args) > 0 && len(args[0].Text) > 1 && args[0].Text[0] == '-' && strings.Trim(args[0].Text[1:], "neE-") == "" {
			args = args[1:]
		}
		if c.Name == "" && len(c.Reads) > 0 || c.Program == "" && c.Dialect == POSIX {
			return "", false
		}
		return strings.NewReplacer(`\n`, "\n", `\0`, "\n").Replace(decoded(joined(args))), true
	case "cat":
		if len(operandsOf(c)) == 0 {
			return inputFrom(c, deep)
		}
	case "tee":
		return inputFrom(c, deep)
	case "ls":
		if w := operandsOf(c); hasFlag('d', "directory").is(c) || strings.ContainsAny(strings.Join(w, ""), "*?[") {
			return strings.Join(w, "\n"), true
		}
		return "*", true
	case "find":
		if overSystem(c) {
			return "/etc/*\n/*", true
		}
	case "which", "command", "type":
		if c.Name == "which" || anyOf(hasFlag('v', ""), hasFlag('p', ""), hasFlag('P', "")).is(c) {
			var found []string
			for _, name := range operandsOf(c) {
				found = append(found, path.Join("/usr/local/bin", name))
			}
			return strings.Join(found, "\n"), true
		}
	case "realpath", "readlink":
		if w := operandsOf(c); len(w) == 1 {
			return c.in(w[0]), true
		}
	case "git":
		if w := c.Words(); len(w) > 1 && w[0] == "rev-parse" {
			switch {
			case w[1] == "--git-dir", w[1] == "--absolute-git-dir", w[1] == "--git-common-dir":
				return ".git", true
			case w[1] == "--git-path" && len(w) > 2:
				return ".git/" + w[2], true
			}
		}
	case "rev":
		s, ok := inputFrom(c, deep)
		r := []rune(strings.TrimSpace(s))
		slices.Reverse(r)
		return string(r), ok
	case "xxd":
		if hasFlag('r', "").is(c) {
			s, ok := inputFrom(c, deep)
			raw, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
			return string(raw), ok && err == nil
		}
	case "base64":
		if anyOf(hasFlag('d', "decode"), hasArg("-D")).is(c) {
			s, ok := inputFrom(c, deep)
			raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s), ""))
			return string(raw), ok && err == nil
		}
	}
	return "", false
}

var codedByte = pathPattern(`\\(x[0-9a-fA-F]{2}|0?[0-7]{3})`)

// decoded is a text with the bytes that printf and echo -e know by their numbers.
func decoded(s string) string {
	return codedByte().ReplaceAllStringFunc(s, func(whole string) string {
		code, base := whole, 8
		if code = code[1:]; code[0] == 'x' {
			code, base = code[1:], 16
		}
		n, err := strconv.ParseUint(code, base, 8)
		if err != nil {
			return whole
		}
		return string([]byte{byte(n)})
	})
}

// printed is what printf makes of texts.
func printed(format string, args []Value) string {
	var b strings.Builder
	for len(args) > 0 && b.Len() < MaxValue {
		left := len(args)
		for i := 0; i < len(format); i++ {
			switch rest := format[i:]; {
			case strings.HasPrefix(rest, "%s"), strings.HasPrefix(rest, "%b"), strings.HasPrefix(rest, "%d"), strings.HasPrefix(rest, "%q"):
				if len(args) > 0 {
					b.WriteString(args[0].Text)
					args = args[1:]
				}
				i++
			case strings.HasPrefix(rest, `\n`), strings.HasPrefix(rest, `\0`):
				b.WriteByte('\n')
				i++
			default:
				b.WriteByte(format[i])
			}
		}
		if len(args) == left {
			break
		}
	}
	return b.String()
}

func shellTexts(c *Command) (all texts) {
	for i, a := range c.Args {
		if len(a.Text) > 1 && a.Text[0] == '-' && a.Text[1] != '-' && strings.Contains(a.Text, "c") {
			words := make([]string, 0, len(c.Args))
			for _, v := range c.Args[i:] {
				words = append(words, v.Text)
			}
			at, ok := commands.ShellText(words)
			for ; ok; at++ {
				all = append(all, text{POSIX, goTo(c.Dir) + called(c.Args[i+at+1:]) + words[at]})
				ok = words[at] == unknownText && !c.Args[i+at].Quoted && at+1 < len(words) // it may be no word
			}
			return all
		}
	}
	for _, a := range c.Args {
		if !strings.HasPrefix(a.Text, "-") && (a.Text != unknownText || a.Quoted || a.Of != nil) { // else it may be no word
			return scriptOf(c, a)
		}
	}
	if s, ok := inputOf(c); ok {
		return texts{{POSIX, goTo(c.Dir) + s}}
	}
	return nil
}

// goTo goes to a directory.
func goTo(dir string) string {
	if dir == "" {
		return ""
	}
	return "cd " + quotedWords([]Value{{Text: dir}}) + "\n"
}

// called sets $0 and the words behind it, which a shell is given for its text.
func called(args []Value) string {
	if len(args) == 0 {
		return ""
	}
	return "BASH_ARGV0=" + quotedWords(args[:1]) + "\nset -- " + quotedWords(args[1:]) + "\n"
}

// windows is the script that PowerShell is given: behind -Command, or as its first word.
func windows(c *Command) texts {
	for i := 0; i < len(c.Args); i++ {
		w := c.Args[i].Text
		switch {
		case IsCommandText(w):
			if strings.HasPrefix(strings.ToLower(strings.TrimLeft(w, "-/")), "f") {
				return nil
			}
			return texts{{PowerShell, joined(c.Args[i+1:])}}
		case len(w) > 1 && (w[0] == '-' || w[0] == '/'):
			if takes(w) {
				i++
			}
		default:
			return texts{{PowerShell, joined(c.Args[i:])}}
		}
	}
	return fed(c, PowerShell)
}

// takes says whether one of PowerShell's own options has a value.
func takes(w string) bool {
	w = strings.ToLower(strings.TrimLeft(w, "-/"))
	const names = "executionpolicy windowstyle version psconsolefile inputformat outputformat configurationname workingdirectory settingsfile custompipename"
	return w == "ep" || w == "wd" || slices.ContainsFunc(strings.Fields(names), func(o string) bool { return strings.HasPrefix(o, w) })
}
