package main

import (
	"fmt"
	"io"
	"slices"

	"weir/internal/classify"
	"weir/internal/cop"
)

// outside are the indicators of a command that will try to get out when it runs.
const outside = cop.Contact | cop.Send | cop.DNS | cop.Device | cop.NetCode | cop.Install

// workspace is where the commands are said to run.
const workspace = "/workspace"

// calls prints how many of the agents' commands a reviewer would be asked about.
func calls(out io.Writer, dir string) error {
	sets, err := reviews(dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(sets, func(s reviewed) bool { return s.name == "agents" })
	rows := sets[i].rows
	var atExec, atOut int
	for _, r := range rows {
		if classify.Shell(r, workspace).Class == classify.Local {
			continue
		}
		atExec++
		if s := cop.Text(r); s.Has&outside != 0 {
			atOut++
		}
	}
	share := func(n int) float64 { return 100 * float64(n) / float64(max(1, len(rows))) }
	fmt.Fprintf(out, "\nOf %d agents' commands in a tainted container, the reviewer would be asked about\n"+
		"  review: exec    %d (%.1f %%), all that are not local\n"+
		"  review: egress  %d (%.1f %%), those whose text shows a way out; who is not seen to have one is asked about if it tries (wanted: at most 1 %%)\n",
		len(rows), atExec, share(atExec), atOut, share(atOut))
	return nil
}
