package commands

import "strings"

// anyFiles is why commands that only look at files are local for every argument.
const anyFiles = "looks at files and prints; nothing it can be given runs code, connects or writes"

var fileCommands = []*Command{
	{Names: "ls dir vdir", Class: Local, AnyArgs: true, Short: "aAbBcCdDfFgGhHikIlLmnNopqQrRsStTuUvw:xXZ1", Rest: Read, Env: "LS_COLORS QUOTING_STYLE", Why: anyFiles, Example: "ls -la --color=auto"},
	{Names: "du df", Class: Local, AnyArgs: true, Short: "aBcDd:hHiklLmPrsSt:TxX:", Rest: Read, Why: anyFiles, Example: "du -sh ."},
	{Names: "stat", Class: Local, AnyArgs: true, Short: "Lfc:t", Long: "format= printf=", Rest: Read, Why: anyFiles, Example: "stat -c %s go.mod"},
	{Names: "basename dirname", Class: Local, AnyArgs: true, Short: "as:z", Long: "suffix=", Rest: Data, Why: "cuts names and prints them", Example: "basename src/main.go .go"},
	{Names: "readlink realpath pathchk", Class: Local, AnyArgs: true, Long: "relative-to= relative-base=", Rest: Read, Why: anyFiles, Example: "realpath go.mod"},
	{Names: "lsblk mountpoint", Class: Local, AnyArgs: true, Rest: Data, Why: anyFiles, Example: "lsblk"},
	{
		Names: "file", Class: Local, Short: "bikLhnN0rsvm:e:f:F:P:",
		Long: "brief mime mime-type mime-encoding extension apple keep-going dereference no-dereference no-buffer no-pad print0 raw special-files " +
			"version help magic-file= exclude= exclude-quiet= files-from= separator= parameter=",
		Values: []Value{{Options: "-f --files-from -m --magic-file", Role: Read}},
		Refuse: []Refusal{
			{Options: "-z -Z --uncompress --uncompress-noreport", Why: "file runs unpackers that it finds on PATH"},
			{Options: "-C --compile", Why: "file writes a compiled magic file"},
			{Options: "-p --preserve-date", Why: "file sets times of files"},
			{Options: "-S --no-sandbox", Why: "file drops its sandbox"},
		},
		Rest: Read, Why: "tells what files are; options that unpack or write are not accepted", Example: "file -b --mime-type logo.png",
	},
	{
		Names: "mktemp", Class: Local, Short: "duqp:tV", Long: "directory dry-run quiet tmpdir=? suffix= help version",
		Values: []Value{{Options: "-p --tmpdir", Role: Write}},
		Lead:   []Role{Write}, Max: 1,
		Why: "makes a new empty file or directory, below /tmp or where it is told", Example: "mktemp -d",
	},
	{
		Names: "mkdir", Class: Local, Short: "pvm:", Long: "parents verbose mode= help version", Rest: Write,
		Why: "makes directories", Example: "mkdir -p build/out",
	},
	{
		Names: "rmdir", Class: Local, Short: "pv", Long: "parents verbose ignore-fail-on-non-empty help version", Rest: Write,
		Why: "removes empty directories", Example: "rmdir build",
	},
	{
		Names: "rm unlink", Class: Local, Short: "fivI", Long: "force verbose interactive=? help version", Rest: Write,
		Refuse: []Refusal{{Options: "-r -R --recursive", Why: "what is removed below a directory is not seen here"}},
		Why:    "removes single files", Example: "rm -f out.txt",
	},
	{
		Names: "cp", Class: Local, Short: "afHLPinprRuvx", Long: "archive recursive force interactive no-clobber no-dereference dereference preserve=? verbose update one-file-system help version", Rest: Data, Check: checkCopy,
		Refuse: []Refusal{
			{Options: "-l -s --link --symbolic-link", Why: "a link can lead a later write elsewhere"},
			{Options: "-t --target-directory= -T --no-target-directory --parents -b --backup -S --suffix=", Why: "what is written has another name than the operands"},
		},
		Why: "copies files to a place that may be written, and directories as a whole to a name of their own there", Example: "cp -r src /tmp/src.orig",
	},
	{
		Names: "mv", Class: Local, Short: "finuv", Long: "force interactive no-clobber verbose update help version", Rest: Data, Check: checkMove,
		Refuse: []Refusal{{Options: "-t --target-directory= -T --no-target-directory -b --backup -S --suffix=", Why: "what is written has another name than the operands"}},
		Why:    "moves files between places that may be written", Example: "mv old.txt new.txt",
	},
	{
		Names: "ln", Class: Local, Short: "fsnv", Long: "force symbolic no-dereference verbose help version", Rest: Data, Max: 2, Check: checkLink,
		Why: "links one file below the working directory or /tmp to another, since a later write follows it", Example: "ln -s data.csv latest.csv",
	},
	{
		Names: "tee", Class: Local, Short: "aip", Long: "append ignore-interrupts output-error=? help version", Rest: Write,
		Why: "copies its input to files that may be written", Example: "tee out.log",
	},
	{
		Names: "truncate", Class: Local, Short: "cos:r:", Long: "no-create io-blocks size= reference= help version", Rest: Write,
		Values: []Value{{Options: "-r --reference", Role: Read}}, Why: "sets the size of files that may be written", Example: "truncate -s 0 out.log",
	},
	{
		Names: "sync", Class: Local, Short: "df", Rest: Data, Why: "waits for the disk", Example: "sync",
	},
	{
		Names: "touch", Class: Local, Short: "acd:fhmr:t:", Long: "date= no-create no-dereference reference= time= help version", Rest: Write, Check: checkTouch,
		Values: []Value{{Options: "-r --reference", Role: Read}},
		Why:    "makes empty files that may be written, or sets their times; a name without a suffix is mostly a mark that another program waits for", Example: "touch pkg/__init__.py",
	},
	{Names: "patch", Class: Grey, AnyArgs: true, Rest: Read, Why: "the names of the files that are changed stand in the patch, and some patches are scripts of ed"},
	{
		Names: "tar bsdtar", Class: Grey, AnyArgs: true, Rest: Data, Check: checkTar,
		Why: "unpackers, checkpoints and remote shells can be named in options, TAR_OPTIONS or a file's name; a list of a file's contents alone (tar tzf FILE) is local",
	},
	{
		Names: "unzip", Class: Local, Short: "lvqtZ1C", Rest: Data, Lead: []Role{Read}, Check: checkUnzip,
		Why: "lists or tests what an archive holds, with -l, -v, -t or -Z; what it unpacks has names that are not seen here", Example: "unzip -l lib.zip",
	},
	{Names: "zipinfo", Class: Local, Short: "12smlvhtzC", Rest: Data, Lead: []Role{Read}, Why: "lists what an archive holds", Example: "zipinfo -1 lib.zip"},
	{
		Names: "gzip gunzip bzip2 bunzip2 xz unxz", Class: Local, Short: "cdfkltvq123456789", Facts: Encoder, Check: checkPacker,
		Long: "stdout to-stdout decompress uncompress force keep list test verbose quiet fast best help version",
		Refuse: []Refusal{
			{Options: "-N --name", Why: "the name that is written stands in the file"},
			{Options: "-r --recursive", Why: "what is packed below a directory is not seen here"},
			{Options: "-S --suffix=", Why: "what is written has another name"},
		},
		Why: "packs or unpacks single files in their place, or to the output", Example: "gzip -dc log.gz",
	},
	{
		Names: "bzcat xzcat", Class: Local, Short: "fqv", Rest: Read, Why: "unpacks files to its output", Example: "xzcat log.xz",
	},
	{
		Names: "chmod", Class: Local, Short: "cfv", Long: "changes silent quiet verbose help version", Lead: []Role{Data}, Rest: Write, Check: checkMode,
		Refuse: []Refusal{{Options: "-R --recursive", Why: "what is changed below a directory is not seen here"}, {Options: "--reference=", Why: "the mode is not seen here"}},
		Why:    "sets the mode of single files that may be written, without set-user-id and the like", Example: "chmod +x build.sh",
	},
	{Names: "chown chgrp install dd split csplit", Class: Grey, AnyArgs: true, Rest: Data, Why: "changes files in ways that are not judged"},
}

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
