package toolguard

import (
	"errors"
	"strings"

	"weir/internal/shell"
)

// Reader finds the commands of a text, those that they run, and those of the texts that they run. The zero value is the guard's own.
type Reader struct {
	Dir     string // where a shell's text runs; empty: not known
	Unknown string // stands in a text that a command runs for what is not known of it
	Assigns bool   // gives variables that are set by themselves, as a command without a name
	Blind   bool   // takes the value of every variable for unknown; otherwise it is the last one that the text gave it
}

// Commands gives them to see, for as long as that says so. A command comes before what it runs. deep says that a text is nested too deep to be read as
// it is: then the commands are those of its lines and brackets.
func (r Reader) Commands(d Dialect, source string, see func(*Command) bool) (deep bool) {
	work := texts{{d, source}}
	budget, goOn := 2*len(source)+MaxValue, true
	for n := 0; goOn && n < len(work) && n < maxTexts; n++ {
		if budget -= len(work[n].text); budget < 0 && n > 0 {
			break
		}
		dir := ""
		deep = r.each(work[n], func(commands []*Command) bool {
			if work[n].dialect != POSIX {
				dir = walks(dir, commands)
			}
			commands, run := unwrapped(commands)
			for _, c := range commands {
				for e := c; e != nil; e = e.Runs {
					if goOn = see(e); !goOn {
						return false
					}
					work = r.add(work, inner(e))
				}
			}
			work = r.add(work, run)
			return true
		}) || deep
	}
	return deep
}

// add is work with more texts.
func (r Reader) add(work, more texts) texts {
	if len(work) >= maxTexts {
		return work
	}
	for i, t := range more {
		if t.dialect == POSIX {
			more[i].text = strings.ReplaceAll(t.text, shell.Hole, r.Unknown)
		}
	}
	return append(work, more...)
}

func (r Reader) each(t text, goOn func([]*Command) bool) (deep bool) {
	switch t.dialect {
	case PowerShell:
		eachPowerShell(t.text, goOn)
	case Cmd:
		eachCmd(cleanCmd(t.text), goOn)
	default:
		return r.shells(cleanPOSIX(t.text), goOn)
	}
	return false
}

func (r Reader) shells(text string, goOn func([]*Command) bool) (deep bool) {
	err := r.eachPOSIX(text, goOn)
	deep = errors.Is(err, shell.ErrDeep)
	if deep || err != nil && strings.Contains(text, "((") { // subshells that look like arithmetic
		_ = r.eachPOSIX(flat.Replace(text), goOn)
	} // behind another error there is nothing to find
	return deep
}

// flat takes brackets away: what stood in them stands on lines of its own.
var flat = strings.NewReplacer("(", "\n", ")", "\n", "{", "\n", "}", "\n")
