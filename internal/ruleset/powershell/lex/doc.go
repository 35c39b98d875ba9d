// Package lex has the letters, names, aliases and keywords of PowerShell. It reads no grammar.
package lex
