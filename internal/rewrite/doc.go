// Package rewrite puts a file in the place of another at once: whoever reads sees the
// old one or the new one, whole. It follows no link. What it reports done is there
// after a power cut.
package rewrite
