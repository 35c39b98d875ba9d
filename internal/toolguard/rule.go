package toolguard

import "slices"

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

// condition says whether a command is the refused thing, and by what words such a command is known.
type condition struct {
	is func(*Command) bool
	// words are what must be in a text for the condition to be met by one of its commands: a word of each list. The prefilter goes by them alone,
	// so a list that lacks a word makes a hole. They are written as prefilter.go has them.
	words [][]string
}

// when is a condition of which these words are known, one of which it takes.
func when(is func(*Command) bool, words ...string) condition {
	if len(words) == 0 {
		return condition{is: is}
	}
	return condition{is, [][]string{words}}
}

// always is met by every command.
var always = when(func(*Command) bool { return true })

// allOf is met when each of its conditions is.
func allOf(conds ...condition) condition {
	out := condition{is: func(c *Command) bool {
		return !slices.ContainsFunc(conds, func(cond condition) bool { return !cond.is(c) })
	}}
	for _, cond := range conds {
		out.words = append(out.words, cond.words...)
	}
	return out
}

// anyOf is met when one of its conditions is.
func anyOf(conds ...condition) condition {
	return condition{func(c *Command) bool {
		return slices.ContainsFunc(conds, func(cond condition) bool { return cond.is(c) })
	}, eitherWords(conds)}
}

// maxLists bounds the lists of words of one condition.
const maxLists = 4

// eitherWords are the lists for one condition or another: a word of each pair of lists.
func eitherWords(conds []condition) [][]string {
	out, n := conds[0].words, 1
	for _, cond := range conds {
		n *= len(cond.words)
	}
	for _, cond := range conds[1:] {
		list := cond.words
		if n > maxLists {
			out, list = shortest(out), shortest(list)
		}
		var pairs [][]string
		for _, a := range out {
			for _, b := range list {
				pairs = append(pairs, slices.Concat(a, b))
			}
		}
		out = pairs
	}
	return out
}

// shortest is the one of several lists that has the fewest words.
func shortest(lists [][]string) [][]string {
	return [][]string{slices.MinFunc(lists, func(a, b []string) int { return len(a) - len(b) })}
}

// isNot turns a condition around.
func isNot(cond condition) condition {
	return when(func(c *Command) bool { return !cond.is(c) })
}
