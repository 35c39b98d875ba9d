package toolguard

import "slices"

// BuiltinRules are all that do not depend on the names of this installation, in the order in which they are asked.
func BuiltinRules() []Rule {
	var all []Rule
	all = append(all, windowsDisk...)
	all = append(all, eventLog, boot, encoded, download, defender, accounts, secrets)
	all = append(all, slices.Concat(linuxDisk, linuxSystem)...)
	return append(all, files...)
}
