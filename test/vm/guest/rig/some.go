//go:build vmguest

package rig

import "os"

// asked is what of attempts is asked for: "all" in make failures, make load, make bypasses and by who names tests; "each" of the newest
// kernel in make test, but for Controls; and "first" of an older one.
var asked = os.Getenv("WEIR_ASKED")

// Some is those attempts that are asked for: of an older kernel, the first of each way out, as id gives it.
func Some[T any](attempts []T, id func(T) string) (some []T) {
	seen := map[string]bool{}
	for _, a := range attempts {
		if asked != "first" || !seen[id(a)] {
			some = append(some, a)
		}
		seen[id(a)] = true
	}
	return some
}

// Rounds is how often what may go either way is tried: a quarter of all in make test.
func Rounds(all int) int {
	if asked == "all" {
		return all
	}
	return (all + 3) / 4
}

// Controls says whether it is asked, too, that what an attempt sends arrives where nobody guards.
func Controls() bool { return asked == "all" }
