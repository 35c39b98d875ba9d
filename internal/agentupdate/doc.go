// Package agentupdate replaces one file, the host's copy of the agent's program, by what was downloaded for it (K8, K10). It owns the
// download and the exchange of the file; from where, how much and how long is held against its limits, and what came against a SHA-256.
//
// It never runs what it downloaded, never decides whether an update is wanted, and takes the file's path from who starts it alone.
// Whatever fails leaves the file as it was.
package agentupdate
