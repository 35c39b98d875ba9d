package commands

import "strings"

// wrapCommands run another command, which is judged in its turn.
var wrapCommands = []*Command{
	{
		Names: "sh bash dash ash rbash", Class: Local, Raw: true, Check: checkShell, Facts: Shell,
		Why:     "judged by the text behind -c",
		Example: "bash -lc 'ls | wc -l'",
	},
	{
		Names: "ksh ksh93 mksh pdksh zsh fish csh tcsh yash elvish nu pwsh", Class: Network, Facts: Shell | Runtime,
		Why: "runs any command, in a language that is not read here", Example: "zsh -c ls",
	},
	{
		Names: "env", Class: Local, Stop: true, Exact: true, Check: checkEnv, Short: "i0vu:C:", Long: "ignore-environment null debug unset= chdir= help version",
		Refuse: []Refusal{{Options: "-S --split-string=", Why: "splits a text into a command"}},
		Why:    "prints the environment, or runs a command with variables", Example: "env LC_ALL=C sort go.mod",
	},
	{
		Names: "nice", Class: Local, Wraps: true, Bare: true, Short: "n:", Long: "adjustment= help version", Number: true,
		Why: "runs a command with another priority", Example: "nice -n 10 du -sh .",
	},
	{
		Names: "nohup", Class: Local, Wraps: true, Long: "help version", Bare: true,
		Why: "runs a command that outlives its terminal", Example: "nohup sleep 1",
	},
	{
		Names: "timeout", Class: Local, Wraps: true, Lead: []Role{Data}, Bare: true, Check: checkTimeout, Short: "k:s:vfp",
		Long: "kill-after= signal= preserve-status foreground verbose help version",
		Why:  "runs a command for a limited time", Example: "timeout 5 ls",
	},
	{
		Names: "time", Class: Local, Wraps: true, Bare: true, Short: "apvqVf:o:", Long: "append portability verbose quiet format= output= help version",
		Values: []Value{{Options: "-o --output", Role: Write}},
		Why:    "measures a command", Example: "time -p ls",
	},
	{
		Names: "stdbuf", Class: Local, Wraps: true, Short: "i:o:e:", Long: "input= output= error= help version", Bare: true,
		Why: "runs a command with other buffering", Example: "stdbuf -oL grep x f",
	},
	{
		Names: "setsid", Class: Local, Wraps: true, Short: "cfwhV", Long: "ctty fork wait help version", Bare: true,
		Why: "runs a command in a session of its own", Example: "setsid -w ls",
	},
	{
		Names: "ionice", Class: Local, Wraps: true, Bare: true, Short: "c:n:tp:P:u:hV", Long: "class= classdata= ignore pid= pgid= uid= help version",
		Why: "runs a command with another disk priority", Example: "ionice -c3 du -s .",
	},
	{
		Names: "chrt", Class: Local, Wraps: true, Check: checkTimeout, Lead: []Role{Data}, Short: "bfiorRvmhV",
		Long: "batch fifo idle other rr reset-on-fork verbose max help version", Bare: true,
		Why: "runs a command with another scheduling", Example: "chrt -b 0 ls",
	},
	{
		Names: "taskset", Class: Local, Wraps: true, Lead: []Role{Data}, Short: "chV", Long: "cpu-list help version", Bare: true,
		Why: "runs a command on some processors", Example: "taskset -c 0 ls",
	},
	{
		Names: "sudo doas", Stop: true, Check: checkSudo, Short: "a:AbBC:c:D:eEg:h:HiklnNp:PR:r:sST:t:U:u:vVK", Long: "user= group= non-interactive version preserve-env=?",
		Why: "runs a command as another user, which is judged as well; asks for the host's own name, runs plugins and may send mail", Example: "sudo -n ls /root",
	},
	{
		Names: "busybox toybox", Class: Local, Raw: true, Check: checkBusybox,
		Why: "runs the program that its first word names", Example: "busybox ls -l",
	},
	{
		Names: "ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 ld-linux.so.2 ld-linux-armhf.so.3 ld-musl-x86_64.so.1 ld-musl-aarch64.so.1 ld.so",
		Class: Local, Raw: true, Check: checkLoader,
		Why: "loads and runs the program that its first word names", Example: "ld.so /bin/ls",
	},
	{
		Names: "xargs", Class: Local, Stop: true, Short: "0rtxpoI:n:P:L:d:s:a:E:i::e::l::",
		Long: "null no-run-if-empty verbose exit interactive open-tty replace=? max-args= max-procs= max-lines=? delimiter= max-chars= arg-file= eof=? " +
			"show-limits help version",
		Refuse: []Refusal{{Options: "--process-slot-var=", Why: "sets a variable of the command, which may be PATH"}},
		Values: []Value{{Options: "-a --arg-file", Role: Read}},
		Check:  checkXargs,
		Why:    "runs a command with words from its input", Example: "ls | xargs grep -l main",
	},
}

// checkTimeout wants a number in front: older timeouts of busybox, and newer versions of chrt, run the first word.
func checkTimeout(c *Call) {
	if len(c.Operands) == 0 {
		return
	}
	if w := c.Operands[0]; w.Text == "" || w.Text[0] != '.' && (w.Text[0] < '0' || w.Text[0] > '9') {
		c.Grey(w, "word-unknown", "this is not a number, so some versions run it")
	}
}

// checkShell finds the text of sh -c. Without one, a shell runs a script or its input.
func checkShell(c *Call) {
	words := make([]string, len(c.Words))
	for i, w := range c.Words {
		words[i] = w.Text
	}
	at, ok := ShellText(words)
	for i := 0; i < min(at, len(words)); i++ {
		w := c.Words[i]
		switch {
		case !w.Fixed:
			c.Network(w, "code-unknown", "runs commands that are not known")
			return
		case w.Text == "--version" || w.Text == "--help":
			return
		case Listed("- -- --norc --noprofile --posix --login --noediting", w.Text):
		case len(w.Text) > 1 && w.Text[1] != '-' && strings.Trim(w.Text[1:], "ceuxlofnv") == "":
			if !strings.Contains(w.Text, "o") {
				continue
			}
			if i++; i >= len(words) || !c.Words[i].Fixed || !Listed("errexit nounset pipefail xtrace noglob noclobber verbose posix", words[i]) {
				c.Grey(w, "option-unknown", "this option of the shell is not known to be harmless")
				return
			}
		default:
			c.Network(w, "code-runs", "runs a script, or the commands of its input")
			return
		}
	}
	switch {
	case ok:
		c.Sh(c.Words[at], c.Words[at+1:]...)
	case at < len(words):
		c.Network(c.Words[at], "code-runs", "runs a script, or the commands of its input")
	default:
		c.Network(Word{}, "code-runs", "runs the commands of its input")
	}
}

// checkEnv finds the command of env [NAME=VALUE] COMMAND.
func checkEnv(c *Call) {
	words := c.Operands
	// Without PATH it depends on who looks for a name what it means.
	_, lost := c.Option("-i", "--ignore-environment")
	if len(words) > 0 && words[0].Is("-") {
		words, lost = words[1:], true
	}
	for _, o := range c.Options {
		switch o.Name {
		case "-u", "--unset":
			lost = lost || !o.Value.Fixed || o.Value.Text == "PATH"
		case "-C", "--chdir":
			c.Elsewhere = true
		}
	}
	words = variables(c, words)
	if len(words) == 0 {
		return
	}
	if lost {
		c.Grey(words[0], "env", "is looked for without PATH: where, depends on the system, and may be this directory")
	}
	c.Run(words)
}

// variables takes NAME=VALUE words off the front.
func variables(c *Call, words []Word) []Word {
	for len(words) > 0 {
		name, _, ok := strings.Cut(words[0].Text, "=")
		if !ok {
			break
		}
		w := words[0]
		if w.Many() {
			c.Grey(w, "word-unknown", "may become more words than one")
		}
		c.Sets = append(c.Sets, Set{Name: name, Value: w.At(len(name) + 1), Word: w})
		words = words[1:]
	}
	return words
}

// checkSudo finds the command of sudo [NAME=VALUE] COMMAND.
func checkSudo(c *Call) {
	if words := variables(c, c.Operands); len(words) > 0 {
		c.Run(words)
	}
}

// checkBusybox runs an applet.
func checkBusybox(c *Call) {
	if len(c.Words) == 0 || c.Words[0].Is("--list") || c.Words[0].Is("--list-full") || c.Words[0].Is("--help") {
		return
	}
	if w := c.Words[0]; !w.Fixed || strings.ContainsAny(w.Text, "/") || strings.HasPrefix(w.Text, "-") {
		c.Grey(w, "word-unknown", "the applet is not known")
		return
	}
	if len(c.Words) == 1 {
		c.Grey(c.Words[0], "operand-count", "an applet without arguments may take what it does from its input")
	}
	c.Run(c.Words)
}

// checkLoader runs a program by its path. Its options load other libraries.
func checkLoader(c *Call) {
	if len(c.Words) == 0 {
		return
	}
	w := c.Words[0]
	switch {
	case w.Is("--help") || w.Is("--version"):
	case !w.Fixed || !strings.HasPrefix(w.Text, "/"):
		c.Network(w, "code-runs", "loads code that is not known")
	default:
		c.Run(c.Words)
	}
}

// checkXargs judges the command with words behind it that are not known: they may be
// options of it.
func checkXargs(c *Call) {
	if len(c.Operands) == 0 {
		return
	}
	// Of -I and -n or -L the last one holds, or the first: both are judged.
	marker, replaces, counts := "", false, false
	for _, o := range c.Options {
		switch o.Name {
		case "-I":
			marker, replaces = o.Value.Text, true
		case "-i", "--replace":
			marker, replaces = "{}", true
			if o.Has && o.Value.Text != "" {
				marker = o.Value.Text
			}
		case "-n", "-L", "-l", "--max-args", "--max-lines":
			counts = true
			continue
		default:
			continue
		}
		if o.Has && !o.Value.Fixed || marker == "" {
			c.Grey(o.Word, "word-unknown", "what is replaced is not known")
			return
		}
	}
	if !replaces {
		c.Run(append(c.Operands[:len(c.Operands):len(c.Operands)], Unknown()))
		return
	}
	words := make([]Word, len(c.Operands))
	for i, w := range c.Operands {
		if k := strings.Index(w.Text, marker); k >= 0 {
			w.Text, w.Fixed = w.Text[:k], false
		}
		words[i] = w
	}
	if counts {
		words = append(words, Unknown())
	}
	c.Run(words)
}
