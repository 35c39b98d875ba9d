// Package keyfile reads keys from where people keep them: a file that others
// cannot read, or an environment variable. It never repeats a key, and keeps none.
package keyfile
