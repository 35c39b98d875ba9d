// Package ruleset is the guard of tool calls: it refuses calls that are catastrophic by themselves, by rules that are compiled in (K1 to K8) and those
// that an operator appended (K12). It knows no policy, no taint and no approval, has no switch, and runs and opens nothing.
package ruleset
