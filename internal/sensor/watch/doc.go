// Package watch tells when the policy's file has changed and is whole, and when a cgroup
// is made again. It never reads the file, and guards nothing.
package watch
