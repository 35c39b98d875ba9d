// Package agents runs Claude Code and Codex, as their makers ship them, against a model of the test's own that answers with tool calls:
// what the hook lets pass, what it denies, and that the reason reaches the model. They run in namespaces without a network. scripts/agents
// installs them.
package agents
