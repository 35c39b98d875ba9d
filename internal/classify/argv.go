package classify

import (
	"strings"

	"weir/internal/commands"
)

// Observed is a command as the kernel saw it start.
type Observed struct {
	Argv      []string
	Env       []string // dangerous variables that are set: NAME or NAME=value
	File      string   // path of the file that runs, when known
	Dir       string   // its working directory, when known
	Git       Git      // looks at its repository; nil: nobody can
	Truncated bool     // argv or the environment is not whole: never local
}

// Observed judges a command line that was seen to run.
func (j *judge) Observed(o Observed) {
	words := make([]commands.Word, len(o.Argv))
	offset := 0
	for i, s := range o.Argv {
		words[i] = commands.Word{Text: s, Fixed: true, Offset: offset, Length: len(s)}
		offset += len(s) + 1
	}
	if o.Truncated {
		j.findAt(0, max(0, offset-1), commands.Grey, "truncated", "the command line or its environment is not whole")
	}
	if len(words) == 0 {
		j.findAt(0, 0, commands.Grey, "word-unknown", "the command line is empty")
		return
	}
	if offset > MaxText {
		j.findAt(0, offset-1, commands.Grey, "limit-text", "is too long to be judged")
		return
	}
	if len(words) > MaxNodes {
		j.findAt(0, offset-1, commands.Grey, "limit-nodes", "has too many parts to be judged")
		return
	}
	name := j.identity(o, &words[0])
	var cmd *commands.Command
	if name != "" {
		cmd = commands.Lookup(name)
	}
	j.environment(o.Env, cmd)
	j.Run(words, program)
}

// identity makes the first word that of the file that runs, where it is known.
func (j *judge) identity(o Observed, first *commands.Word) string {
	text, name, another := identity(o.File, first.Text)
	if another {
		j.FindWord(*first, commands.Grey, "path", "the file that runs is known by another name")
	}
	first.Text = text
	return name
}

// Named is argv with the name of the file that runs, where it is known, for the one that it gives itself: a program
// chooses its argv[0] freely (B148).
func Named(argv []string, file string) []string {
	if len(argv) == 0 {
		return argv
	}
	text, _, _ := identity(file, argv[0])
	return append([]string{text}, argv[1:]...)
}

// identity is the first word and the command's name that a file has, which is executed as argv0, and whether both are known, but not as one.
func identity(file, argv0 string) (text, name string, another bool) {
	shown := argv0[strings.LastIndexByte(argv0, '/')+1:]
	if file == "" {
		return argv0, shown, false
	}
	slash := strings.LastIndexByte(file, '/')
	base := file[slash+1:]
	if slash < 0 {
		return "./" + file, "", false
	}
	switch file[:slash] {
	case "/bin", "/usr/bin":
	default:
		return file, base, false
	}
	shown = strings.TrimPrefix(shown, "-")
	switch base {
	case "busybox", "toybox", "coreutils":
		base = shown // one file with many names: it goes by argv[0]
	}
	is, says := commands.Lookup(base), commands.Lookup(shown)
	return base, base, is != nil && says != nil && is != says // it may behave by either name (sh, gawk)
}

// environment judges the variables that a program was started with.
func (j *judge) environment(env []string, cmd *commands.Command) {
	for _, e := range env {
		name, value, has := strings.Cut(e, "=")
		if commands.Inherited(name, value, has) || cmd != nil && commands.Listed(cmd.Env, name) {
			continue
		}
		j.findAt(0, 0, commands.Grey, "env", commands.Quote(name)+" is set, which is not known to be harmless")
	}
}
