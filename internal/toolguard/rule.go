package toolguard

// Groups of rules, as they are counted in the documentation.
const (
	OnCommands = 1 // what commands may not do
	OnSelf     = 2 // the sensor's own service, files and kernel objects
	OnPaths    = 3 // files that hold credentials
	OnUpdate   = 4 // where updates may come from
	OnOperator = 5 // appended by the operator
)

// Rule is one thing that is refused, with all that people and models are told about it.
type Rule struct {
	ID      string // stable, such as shadow-copies
	Group   int
	Refuses string // completes "it …"
	Why     string // one sentence
	Instead string // one sentence: what to do
	Refused []Example
	Near    []Example // looks alike, and is not refused
	On      []trigger
	Files   []string // patterns, for tools that take paths; with ! before it: these not
	Changed []string // the same, for tools that change what stands there
	Deleted []string // the same, for tools that delete it
	Tools   []string // names of tools that are refused altogether
}

// Example is a call of a tool.
type Example struct {
	Tool string
	Text string // the script, the command, the path or the URL
}

// trigger says for which commands a condition is asked.
type trigger struct {
	Names []string // as script.Command has them
	When  condition
}

// condition says whether a command is the refused thing.
type condition func(*Command) bool

// always is met by every command.
func always(*Command) bool { return true }

// allOf is met when each of its conditions is.
func allOf(conds ...condition) condition {
	return func(c *Command) bool {
		for _, cond := range conds {
			if !cond(c) {
				return false
			}
		}
		return true
	}
}

// anyOf is met when one of its conditions is.
func anyOf(conds ...condition) condition {
	return func(c *Command) bool {
		for _, cond := range conds {
			if cond(c) {
				return true
			}
		}
		return false
	}
}

// isNot turns a condition around.
func isNot(cond condition) condition { return func(c *Command) bool { return !cond(c) } }
