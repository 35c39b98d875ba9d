// Package gitguard finds in a shell text what no agent may do with git (G22): rewrite or delete what others have, or set what makes git
// run programs later. It looks at words in their place in the parsed command, is pure, and never says that something is harmless.
package gitguard
