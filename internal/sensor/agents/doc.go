// Package agents serves agents in containers: it opens the bridge's sockets and
// folders, says to the bridge who asks, reads the rules that people wrote, and carries
// out the tools and updates that are called. It makes no verdict: the bridge's order
// of checks and the gate do.
package agents
