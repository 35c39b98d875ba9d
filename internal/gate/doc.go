// Package gate makes every verdict: whether a command may run and whether a
// tainted container's connect may leave. What it cannot decide it has a person
// asked, by package question. Its words are those of package verdict.
//
// It never touches the kernel: the caller opens what an approval allows, and
// calls Used first. It never shows anything to anybody: announcements are made
// from the events it writes. Every failure is a denial with a reason of its own
// (G9), and Verdict{} is a denial.
package gate
