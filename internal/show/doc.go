// Package show words a question for the people who answer it: one text that is the
// same wherever it is shown, so that what an answer was given upon can be told
// afterwards. It makes everything that a container chose visible (B51), and takes
// out what looks like a secret where the text leaves the host (B50).
//
// It writes to nothing and decides nothing.
package show
