package toolguard

import (
	"slices"
	"strings"

	"weir/internal/commands"
)

// maxTexts bounds the texts that are found in one text, and in those.
const maxTexts = 64

// maxWrapped bounds the programs that run one another in one command.
const maxWrapped = 512

// Programs that run text of a shell, and of other languages.
var (
	shellNames   = strings.Fields(commands.Shells)
	interpreters = []string{"python", "perl", "ruby", "node", "nodejs", "php", "pypy", "lua", "luajit", "deno", "bun", "tclsh", "Rscript"}
	isShell      = isNamed(shellNames...)
	versioned    = words(strings.Join(slices.Concat(shellNames, interpreters), " "))
)

// opens are the names of commands that run texts of a language.
var opens = [...][]string{
	POSIX:      slices.Concat(shellNames, []string{"at", "batch", "eval"}, commands.RunTexts()),
	PowerShell: slices.Concat(powerShells, []string{"invoke-expression", "start-job", "invoke-command", "start-threadjob"}),
	Cmd:        {"cmd", "invoke-wmimethod", "invoke-cimmethod", "set-itemproperty", "new-itemproperty", "reg", "wmic", "forfiles", "schtasks", "at", "runas"},
}

// methods are those of PowerShell that do.
var methods = [...][]string{POSIX: nil, PowerShell: {".create", ".invokescript", ".addscript", ".newscriptblock"}, Cmd: {".create", ".run", ".exec"}}

var opensAny = words(strings.Join(slices.Concat(slices.Concat(opens[:]...), slices.Concat(methods[:]...)), " "))

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
	case ".start":
		if ofProcess.is(c) && len(c.Args) > 0 {
			return []*Command{startedAs(c, c.Args[0], Value{Items: c.Args[1:]})}, nil
		}
	case ".shellexecute":
		if c.Made(ofDesktop.is) && len(c.Args) > 0 {
			return []*Command{startedAs(c, c.Args[0], Value{Items: c.Args[1:min(2, len(c.Args))]})}, nil
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
		if from := last(c.From); c.Name == "xargs" && from != nil {
			switch from.Name {
			case "echo", "printf":
				args = slices.Concat(args, from.Args)
			case "ls": // the names in it, or with -d its own
				args = slices.Concat(args, from.Args)
			case "find":
				if overSystem(from) {
					args = append(slices.Clone(args), Value{Text: "/"})
				}
			}
		}
		runs = append(runs, command(c, args))
	}
	for _, t := range read {
		all = append(all, text{POSIX, t})
	}
	return runs, all
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
	if !opensAny[c.Name] {
		return nil
	}
	for d, of := range [...]func(*Command) texts{POSIX: ofShell, PowerShell: ofPowerShell, Cmd: ofCmd} {
		if slices.Contains(opens[d], c.Name) || slices.Contains(methods[d], c.Name) {
			all = append(all, of(c)...)
		}
	}
	return all
}

// Conditions on what is run.
var (
	ofProcess = onType("[diagnostics.process]")
	ofDesktop = textContains("shell.application")
	ofWMI     = textContains("win32_process")
	ofHost    = textContains("wscript.shell")
	atLogon   = textContains(`\currentversion\run`)
	byWMIC    = hasWords("process", "call", "create")
)

// ofShell are those for a POSIX shell.
func ofShell(c *Command) texts {
	if isShell.is(c) {
		return shellTexts(c)
	}
	switch c.Name {
	case "at", "batch":
		if c.Dialect == POSIX {
			return fed(c, POSIX)
		}
	case "eval":
		if c.Dialect == POSIX {
			return texts{{POSIX, joined(c.Args)}}
		}
	}
	return nil
}

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

var behindC = pathPattern(`(?is)\s/[ckr]\s*(.*?)\s*$`)

// ofCmdItself is the text behind cmd's /c, /k or /r, or its input. cmd takes a quote at both ends of it away, whatever stands between them.
func ofCmdItself(c *Command) texts {
	if m := behindC().FindStringSubmatch(c.Line); m != nil && len(m[1]) > 1 && m[1][0] == '"' && m[1][len(m[1])-1] == '"' {
		c.Line = ""
		return append(ofCmdItself(c), text{Cmd, m[1][1 : len(m[1])-1]})
	}
	for i, a := range c.Args {
		l := strings.ToLower(a.Text)
		if !strings.HasPrefix(l, "/c") && !strings.HasPrefix(l, "/k") && !strings.HasPrefix(l, "/r") {
			continue
		}
		rest := joined(c.Args[i+1:])
		if len(c.Args) > i+2 {
			rest = line(c.Args[i+1:])
		}
		if len(a.Text) > 2 {
			rest = a.Text[2:] + " " + rest
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
	var all texts
	for _, v := range c.Reads {
		all = append(all, text{d, v.Text})
	}
	if from := last(c.From); from != nil {
		if s, ok := output(from); ok {
			all = append(all, text{d, s})
		}
	}
	return all
}

// output is what a command prints, where that is told by its words and what it is given.
func output(c *Command) (string, bool) {
	if c == nil || len(c.Writes) > 0 {
		return "", false
	}
	switch c.Name {
	case "echo", "printf", "write-output", "":
		args := c.Args
		if c.Name == "printf" && len(args) > 1 && args[0].Text != "--" && strings.Contains(args[0].Text, "%") {
			return printed(args[0].Text, args[1:]), true
		}
		for c.Name != "" && len(args) > 0 && len(args[0].Text) > 1 && args[0].Text[0] == '-' && strings.Trim(args[0].Text[1:], "neE-") == "" {
			args = args[1:]
		}
		if c.Name == "" && len(c.Reads) > 0 || c.Program == "" && c.Dialect == POSIX {
			return "", false
		}
		return strings.ReplaceAll(joined(args), `\n`, "\n"), true
	case "cat":
		var b strings.Builder
		for _, v := range c.Reads {
			b.WriteString(v.Text)
		}
		return b.String(), len(c.Reads) > 0 && len(operandsOf(c)) == 0
	}
	return "", false
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
			case strings.HasPrefix(rest, `\n`):
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

func shellTexts(c *Command) texts {
	for i, a := range c.Args {
		if len(a.Text) > 1 && a.Text[0] == '-' && a.Text[1] != '-' && strings.Contains(a.Text, "c") {
			words := make([]string, 0, len(c.Args))
			for _, v := range c.Args[i:] {
				words = append(words, v.Text)
			}
			if at, ok := commands.ShellText(words); ok {
				return texts{{POSIX, words[at]}}
			}
			return nil
		}
	}
	for _, a := range c.Args {
		if !strings.HasPrefix(a.Text, "-") {
			return nil // a file
		}
	}
	return fed(c, POSIX)
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
	for _, o := range [...]string{"executionpolicy", "windowstyle", "version", "psconsolefile", "inputformat", "outputformat", "configurationname", "workingdirectory", "settingsfile", "custompipename"} {
		if strings.HasPrefix(o, w) {
			return true
		}
	}
	return w == "ep" || w == "wd" || w == "w"
}
