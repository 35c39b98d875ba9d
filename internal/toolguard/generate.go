package toolguard

//go:generate go run weir/scripts/rules ../../docs/rules.md
