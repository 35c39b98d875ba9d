// Package watch tells when the policy's file has changed and is whole, whether somebody
// writes a file, and when a cgroup is made again. It never reads a file, and guards nothing.
package watch
