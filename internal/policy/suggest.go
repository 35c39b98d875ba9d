package policy

import (
	"fmt"
	"strings"

	"weir/internal/redact"
)

// suggest ends a message about an unknown word: the nearest accepted one, or all.
func suggest(word string, accepted []string) string {
	best, least := "", 0
	for _, a := range accepted {
		if d := distance(strings.ToLower(word), a); best == "" || d < least {
			best, least = a, d
		}
	}
	if best != "" && least <= max(1, len(best)/3) {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return ": accepted are " + strings.Join(accepted, ", ")
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that lead from one word to the other. Long words are simply far.
func distance(from, to string) int {
	a, b := []rune(from), []rune(to)
	if len(a) > 64 {
		return len(a)
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := 1; j <= len(b); j++ {
			if i == 0 {
				rows[i][j] = j
				continue
			}
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(replace, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// yamlQuote quotes what a file has, for messages: its start, if it is long. What looks like a secret is hidden.
func yamlQuote(s string) string {
	const most = 64
	s = redact.Likely(s[:min(len(s), 1<<10)])
	if len(s) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(s[:most], ""))
	}
	return fmt.Sprintf("%q", s)
}
