// Package witness says who and what a record of the kernel is about: it joins cgroup
// ids and pids with what the books, the exec probe and /proc know of them. It changes
// nothing and writes no event.
package witness
