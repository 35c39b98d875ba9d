package gate

import (
	"path"
	"slices"

	"weir/internal/event"
)

// ranOf tells what program a process runs: for a script, the script.
func ranOf(p event.Process) ranCommand {
	r := ranCommand{Argv: p.Argv}
	if p.Exe != nil && !p.Exe.Memfd && !p.Exe.Deleted {
		r.File = p.Exe.Path
	}
	if i := slices.Index(p.Argv, p.Script); p.Script != "" && i >= 0 {
		r = ranCommand{p.Script, p.Argv[i:]}
	}
	return r
}

// Shell says whether the program is a shell.
func (r ranCommand) Shell() bool { return len(r.Argv) > 0 && shells[path.Base(r.Argv[0])] }
