// Package shell has what is read of a shell's text without walking it: words from their
// parts, braces, where here-documents and continued lines are doubtful, and whether a
// text is too long or too deep for the parser.
package shell
