// Package strictyaml reads a small YAML file for people: every mistake is told with its line, what was found and what is accepted.
// It refuses what makes two readers of a file differ: aliases, keys set twice, numbers in other forms than decimal. It knows no keys
// of its own.
package strictyaml
