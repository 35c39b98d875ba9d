// Package shell reads a text as bash and POSIX shells do, and walks all of it: lists,
// substitutions, redirections, assignments, expansions (G10). Where shells differ, or
// the parser from them, it refuses. What commands do is judged by package command.
package shell
