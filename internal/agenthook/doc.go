// Package agenthook speaks to agents in their own way: the hooks of Claude Code and Codex, a generic one, and a shell that asks before it
// runs (G19). It runs inside the container: what is local by the classifier passes there (G5), all else is asked over the bridge's
// socket, and what cannot be asked is denied.
//
// It enforces nothing: an agent can go past its own hook, and then the kernel denies. So it never claims more than to tell in time.
package agenthook
