package policy

import "regexp"

// Control says who may use the control socket besides root: members of groups, by name or number.
type Control struct {
	Look   []string `key:"look" list:"names of groups, and their numbers in quotes" most:"16" each:"group"`   // see what is
	Answer []string `key:"answer" list:"names of groups, and their numbers in quotes" most:"16" each:"group"` // and answer questions
	Taint  []string `key:"taint" list:"names of groups, and their numbers in quotes" most:"16" each:"group"`  // and taint containers
}

var group = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$`)

func groupName(s string) (string, string) {
	if !group.MatchString(s) {
		return s, "no name of a group"
	}
	return s, ""
}
