// Package notify tells people elsewhere about questions, and takes their answers:
// a signed webhook, or that of a Slack-compatible chat, and a callback that takes
// signed answers only (B50).
//
// It owns what leaves the host about a question, its wording, signatures, retries
// and bounds. It never delays the gate: it reads events, and asks the gate for
// what is asked. It makes no verdict; an answer is the gate's to take or refuse.
// Nothing that it cannot deliver is a reason to open anything.
package notify
