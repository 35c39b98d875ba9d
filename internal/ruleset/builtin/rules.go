package builtin

import "weir/internal/ruleset/rule"

// Rules are all that do not depend on the names of this installation, in the order in which they are asked.
func Rules() []rule.Rule {
	var all []rule.Rule
	all = append(all, windowsDisk...)
	all = append(all, eventLog, boot, encoded, download, defender, accounts, secrets)
	all = append(all, linux()...)
	return append(all, files...)
}
