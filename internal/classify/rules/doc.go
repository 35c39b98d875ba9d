// Package rules has the judgements that need no parsing: which variables may be set,
// which files may be written, what a name is. It never looks at the machine.
package rules
