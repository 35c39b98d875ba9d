// Package toolguard refuses tool calls that are catastrophic by themselves, by rules that are compiled in (K1 to K8) and rules that an operator
// appended (K12). It knows no policy, no taint and no approval, and has no switch but the kill switch of guardrails.
//
// rules.txt has the compiled-in rules, and says how it is written: what is refused, why, what to do instead, and examples. rules.go reads it; rule.go,
// conditions.go and windows.go say what a condition is, and unixrules.go, windows_*.go and self.go have those that take more than words. parse.go (POSIX shells, by the classifier's parser), powershell_*.go and cmdexe_*.go read a text into commands with
// their words as they would arrive, as far as the text tells. They forgive malformed text and take time in proportion to it. path.go compares
// paths with patterns as the systems that open them would (K7). update.go says where an update of the agent may come from (K8), wire.go has the
// lines of the 0.5 channel.
//
// It runs nothing, and opens nothing but the files that it is asked about.
package toolguard

//go:generate go run weir/scripts/rules ../../docs/rules.md
