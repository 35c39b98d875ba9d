// Package script has what every parser of the guard makes of a text: commands with their words as they would arrive, where that can be told
// from the text. It judges nothing and runs nothing.
package script
