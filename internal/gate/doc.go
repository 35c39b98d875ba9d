// Package gate makes every verdict: whether a command may run, and whether a connect of a tainted container may leave.
//
// cascade.go decides, step by step; dryrun.go shows what it would decide, and replay.go does that for recorded events under
// another policy. queue.go keeps the approvals: they are durable, bound to what was asked, have a deadline, and are used
// once (G15, G16, G17). match.go compares commands by what a shell makes of them, so that a command that was approved as
// text is recognised when it is executed (G26).
//
// The gate never touches the kernel: the caller opens what an approval allows, and calls Consume first. It shows nothing to
// anybody: notifications are made from the events that it writes. Each failure is a denial with a reason of its own (G9),
// and Verdict{} is a denial.
package gate
