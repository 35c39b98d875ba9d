package commands

import "strings"

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
