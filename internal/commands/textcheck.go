package commands

import "strings"

// checkSed joins the scripts of -e, or takes the first operand, and notes what -i writes.
func checkSed(c *Call) {
	files := c.Operands
	var parts []string
	var at Word
	for _, o := range c.Options {
		if o.Name != "-e" && o.Name != "--expression" {
			continue
		}
		if !o.Value.Fixed {
			c.Grey(o.Value, "code-unknown", "a sed script that is not literal cannot be judged")
			return
		}
		parts, at = append(parts, o.Value.Text), o.Value
	}
	switch {
	case len(parts) > 1:
		at = Word{Text: strings.Join(parts, "\n"), Fixed: true, Offset: at.Offset, Length: at.Length}
	case len(parts) == 0 && len(files) > 0:
		at, files = files[0], files[1:]
	case len(parts) == 0:
		return // it prints its usage
	}
	c.Script(at, Sed)
	o, inPlace := c.Option("-i", "--in-place")
	if inPlace && o.Has && (!o.Value.Fixed || strings.ContainsAny(o.Value.Text, "/*")) {
		c.Grey(o.Word, "sed-backup", "the backup of sed -i may have any name")
	}
	for _, f := range files {
		if !inPlace {
			c.Read(f)
			continue
		}
		c.Write(f)
		if o.Has && o.Value.Fixed && f.Fixed {
			f.Text += o.Value.Text
			c.Write(f)
		}
	}
}

// checkAwk refuses operands that some awk would not take as a file or an assignment.
func checkAwk(c *Call) {
	for i, w := range c.Operands {
		switch {
		case i == 0:
		case w.Text == "" && !w.Fixed, w.Split:
			c.Grey(w, "word-unknown", "this may be an option, or a network file of gawk")
		case w.Text != "-" && strings.HasPrefix(w.Text, "-"):
			c.Grey(w, "option-unknown", "some awks read options behind the program")
		case strings.HasPrefix(w.Text, "/inet"), !w.Fixed && strings.HasPrefix("/inet", w.Text):
			c.Network(w, "awk-inet", "gawk connects to the network through files below /inet")
		}
	}
}

// checkXxd reads words as xxd does: options first, whole words, then two files.
func checkXxd(c *Call) {
	words := c.Words
	back := false
	for len(words) > 0 {
		w := words[0]
		if !w.Fixed && w.MayBeOption() {
			c.Grey(w, "word-unknown", "this may be an option or the name of a file to write")
			return
		}
		if !strings.HasPrefix(w.Text, "-") || w.Text == "-" {
			break
		}
		words = words[1:]
		if w.Text == "--" {
			break
		}
		switch {
		case !w.Fixed:
			c.Grey(w, "word-unknown", "an option of xxd is not literal")
			return
		case w.Text == "-r":
			back = true
		case Listed("-a -b -e -E -i -p -ps -u -d -C -v -h", w.Text):
		case Listed("-c -g -l -s -o -n -R -cols -len -seek", w.Text):
			if len(words) == 0 || words[0].Many() {
				c.Grey(w, "word-unknown", "the value of this option is not one word")
				return
			}
			words = words[1:]
		case len(w.Text) > 2 && strings.IndexByte("cglso", w.Text[1]) >= 0 && strings.Trim(w.Text[2:], "0123456789abcdefx+-") == "":
		default:
			c.Grey(w, "option-unknown", "this option of xxd is not known")
			return
		}
	}
	for i, w := range words {
		switch {
		case w.Many():
			c.Grey(w, "operand-count", "the second file of xxd is written, and these may be several")
			return
		case i == 0:
			c.Read(w)
		case i == 1:
			c.Write(w)
		default:
			c.Grey(w, "operand-count", "xxd takes two files")
			return
		}
	}
	if back && len(words) > 1 {
		c.Grey(words[1], "xxd-patch", "xxd -r changes single bytes of this file")
	}
}

// checkLess accepts flags in clusters, and files that cannot be +COMMAND.
func checkLess(c *Call) {
	options := true
	for _, w := range c.Words {
		switch {
		case w.Text == "" && !w.Fixed, w.Split:
			c.Grey(w, "word-unknown", "this may be an option or a command of less")
		case w.Text == "--" && w.Fixed:
			options = false
		case strings.HasPrefix(w.Text, "+"):
			if !w.Fixed || len(w.Text) < 2 || strings.Trim(w.Text[1:], "0123456789") != "" && w.Text != "+G" && w.Text != "+F" {
				c.Grey(w, "less-command", "commands of less can run programs")
			}
		case len(w.Text) > 1 && w.Text[0] == '-' && options:
			flags := strings.Trim(w.Text[1:], "aABcCdeEfFgGiIJKLmMnNqQrRsSuUwWX~")
			if w.Fixed && (flags == "" || Listed("--help --version --raw-control-chars --RAW-CONTROL-CHARS --chop-long-lines --line-numbers --LINE-NUMBERS --quit-if-one-screen --no-init --ignore-case", w.Text)) {
				continue
			}
			c.Grey(w, "option-unknown", "this option of less is not known to be harmless")
		default:
			c.Read(w)
		}
	}
}

// noResponseFile refuses @FILE, from which binutils read options.
func noResponseFile(c *Call) {
	for _, w := range c.Words {
		if strings.HasPrefix(w.Text, "@") || w.Text == "" && !w.Fixed || w.Split {
			c.Grey(w, "response-file", "options would be read from the file behind @")
		}
	}
}
