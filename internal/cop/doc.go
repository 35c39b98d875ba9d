// Package cop owns the reviewers of commands (G11 to G14): what a case is, what
// counts as an opinion, the embedded reviewer, which is offline, and the limits
// around all of them: time, concurrency, cache. Reviewers that ask a model are in
// package model.
//
// It never decides what an opinion means for a container; that is the gate's. It
// never treats a failure as an opinion, never logs, and never shows a key.
package cop
