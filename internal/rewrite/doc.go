// Package rewrite puts a file in the place of another at once: whoever reads sees the
// old one or the new one, whole. It follows no link and makes no directory.
package rewrite
