// Package powershell reads PowerShell scripts as far as rules need it: commands, parameters and arguments, with escapes, aliases,
// concatenations, formats and variables resolved where they are literal (K4). It forgives what is malformed, takes time in proportion
// to the text, and runs nothing.
package powershell
