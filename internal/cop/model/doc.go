// Package model owns the reviewers that ask a model over the network, and what a
// policy says of reviewers: prompt, what a model is shown and may answer, keys,
// HTTP (G11 to G14).
//
// It never follows a redirect, never takes an address or a key from the
// environment on its own, and never shows a key.
package model
