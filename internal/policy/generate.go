package policy

//go:generate go run weir/scripts/policy ../../docs/policy.md
