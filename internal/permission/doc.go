// Package permission holds the permission rules (P1 to P5, P7): the lists allow, deny and ask of permissions.yaml and
// managed-permissions.yaml, and what they say about one call of a tool. It is pure: it reads no file, asks nobody, and carries nothing
// out. Whoever calls it asks the person where it says ask.
//
//	set, warnings, err := permission.Parse(permission.File{Name: "permissions.yaml", Data: data})
//	result := set.Check(permission.Of("Bash", input), mode)
//
// A Result's zero value denies, and a nil Set has no rules. An error never widens: it leaves the caller with the Set it had.
package permission
