// Package rule has what a rule of the guard is, and the conditions that rules put together. It holds no rule itself.
package rule
