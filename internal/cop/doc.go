// Package cop owns the reviewers of commands (G11 to G14): what they are shown,
// what counts as an answer, and the limits around them: time, concurrency, cache.
// Reviewers are static (embedded, offline), anthropic and openai (a model, over
// the network).
//
// It never decides what an opinion means for a container; that is the gate's. It
// never treats a failure as an opinion, never logs, and never shows a key.
package cop
