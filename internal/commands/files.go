package commands

import "strings"

// target notes what is written when files go to the last operand, be it a file or a directory.
func target(c *Call) (sources []Word, ok bool) {
	n := len(c.Operands) - 1
	if n < 1 {
		return nil, false
	}
	to := c.Operands[n]
	c.Write(to)
	for _, from := range c.Operands[:n] {
		name := strings.TrimRight(from.Text, "/")
		if !from.Fixed || !to.Fixed || name == "" {
			c.Grey(from, "word-unknown", "the name that is written is not literal")
			continue
		}
		into := to
		into.Text = strings.TrimRight(to.Text, "/") + "/" + name[strings.LastIndexByte(name, '/')+1:]
		c.Write(into)
	}
	return c.Operands[:n], true
}

func checkTouch(c *Call) {
	for _, w := range c.Operands {
		if base := w.Text[strings.LastIndexByte(w.Text, '/')+1:]; w.Fixed && !strings.Contains(base, ".") {
			c.Grey(w, "touch-mark", "a name without a suffix is mostly a mark that another program waits for")
		}
	}
}

func checkCopy(c *Call) {
	from, _ := target(c)
	if _, ok := c.Option("-r", "-R", "-a", "--recursive", "--archive"); ok {
		c.Brings = true
		for i, w := range c.Operands { // what is copied over a directory that is there has names that are not seen
			if base := w.Text[strings.LastIndexByte(strings.TrimRight(w.Text, "/"), '/')+1:]; Listed(". ..", strings.TrimRight(base, "/")) || i == len(c.Operands)-1 && w.Text != "/tmp" && strings.Trim(w.Text, "./") == "" {
				c.Grey(w, "copy-over", "the names below a directory, which are written, are not seen here")
			}
		}
	}
	for _, w := range from {
		c.Read(w)
	}
}

// checkMove writes at both ends.
func checkMove(c *Call) {
	c.Brings = true
	from, _ := target(c)
	for _, w := range from {
		c.Write(w)
	}
}

// checkLink takes what a link leads to for written, and wants it in the same directory:
// the target of a symbolic link counts from where the link is.
func checkLink(c *Call) {
	c.Brings = true
	for _, w := range c.Operands {
		if !w.Fixed || strings.Contains(strings.TrimPrefix(w.Text, "/tmp/"), "/") || Listed(". .. /tmp/", w.Text) {
			c.Grey(w, "link-elsewhere", "a link to or from another directory can lead later writes anywhere")
			return
		}
		c.Write(w)
	}
	if len(c.Operands) != 2 {
		for _, w := range c.Operands {
			c.Grey(w, "operand-count", "the name of the link is not given")
		}
	}
}

// checkMode accepts modes of the nine plain bits. They may begin with a dash (-w), which is no option here.
func checkMode(c *Call) {
	if len(c.Operands) == 0 {
		return
	}
	w := c.Operands[0]
	if !w.Fixed || strings.Trim(w.Text, "01234567") == "" && len(w.Text) != 3 || strings.Trim(w.Text, "01234567ugoarwxX+-=,") != "" {
		c.Grey(w, "chmod-mode", "this mode may give a file another user's rights")
	}
}

// packed are the packers and the suffixes that they give and take away.
var packed = map[string]string{"gzip": ".gz", "gunzip": ".gz", "bzip2": ".bz2", "bunzip2": ".bz2", "xz": ".xz", "unxz": ".xz"}

// checkPacker notes what is written in the place of each file.
func checkPacker(c *Call) {
	_, reads := c.Option("-c", "--stdout", "--to-stdout", "-l", "--list", "-t", "--test")
	_, unpack := c.Option("-d", "--decompress", "--uncompress")
	unpack = unpack || strings.HasPrefix(c.Name, "un") || strings.HasSuffix(c.Name, "unzip") || strings.HasPrefix(c.Name, "bun")
	for _, w := range c.Operands {
		if reads || w.Is("-") {
			c.Read(w)
			continue
		}
		other := w
		name, ok := strings.CutSuffix(w.Text, packed[c.Name])
		switch {
		case !w.Fixed:
		case !unpack:
			other.Text += packed[c.Name]
		case ok:
			other.Text = name
		default:
			c.Grey(w, "packer-name", "the name that is written is not known")
		}
		c.Write(w)
		c.Write(other)
	}
}

// checkUnzip wants an option with which nothing is unpacked.
func checkUnzip(c *Call) {
	if _, ok := c.Option("-l", "-v", "-t", "-Z"); !ok {
		c.Become(Grey)
	}
}

// tarLists are the options with which tar lists; each one with a value is followed by it.
const tarLists = "tvzjJaf:C:"

func checkTar(c *Call) {
	remoteTar(c)
	if c.Class() == Grey && listsTar(c.Words) {
		c.Become(Local)
	}
}

// listsTar tells whether tar only lists a file here that is named, by options that run nothing but the usual unpackers.
func listsTar(words []Word) bool {
	lists, file := false, false
	named := func(w Word) {
		slash, colon := strings.IndexByte(w.Text, '/'), strings.IndexByte(w.Text, ':') // host:file is remote
		file = (w.Fixed || slash >= 0) && (colon < 0 || slash >= 0 && slash < colon) && w.Text != "" && !w.Split
	}
	values := 0 // of old options, which are the next words
	for i := 0; i < len(words); i++ {
		w := words[i]
		text, old := w.Text, i == 0 && w.Fixed && w.Text != "" && w.Text[0] != '-'
		switch {
		case values > 0:
			values--
			named(w)
			continue
		case !w.Fixed && w.MayBeOption():
			return false
		case old:
		case text == "--":
			return lists && file
		case strings.HasPrefix(text, "--"):
			name, value, glued := strings.Cut(text[2:], "=")
			switch {
			case name == "file" && glued:
				named(w.At(len(text) - len(value)))
			case Listed("list verbose gzip gunzip bzip2 xz zstd auto-compress wildcards no-wildcards numeric-owner full-time", name) && !glued:
				lists = lists || name == "list"
			case Listed("exclude directory", name) && glued:
			default:
				return false
			}
			continue
		case len(text) < 2 || text[0] != '-':
			continue
		default:
			text = text[1:]
		}
		for k := 0; k < len(text); k++ {
			switch ShortArity(tarLists, text[k]) {
			case Refused:
				return false
			case Flag:
				lists = lists || text[k] == 't'
				continue
			}
			switch {
			case old && text[k] == 'f':
				values++
				continue
			case old:
				return false
			case k+1 == len(text):
				if i++; i == len(words) {
					return false
				}
				if text[k] == 'f' {
					named(words[i])
				} else if words[i].Many() {
					return false
				}
			case text[k] == 'f':
				named(w.At(len(w.Text) - len(text) + k + 1))
			}
			break
		}
		if values > 1 {
			return false
		}
	}
	return lists && file && values == 0
}

// remoteTar tells host:file, which tar reaches over the network.
func remoteTar(c *Call) {
	for _, w := range c.Operands {
		if host, _, ok := strings.Cut(w.Text, ":"); ok && !strings.Contains(host, "/") {
			c.Network(w, "network", "tar reaches host:file over the network")
			c.Host(w)
		}
	}
}
