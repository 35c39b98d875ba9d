// Package classifytest is for tests of the command classifier. It owns a generator of commands and a runner that
// executes commands under real shells and tells which programs they started and which sockets they asked for. It never judges a
// command itself.
//
// What it runs is harmless by construction: its own words only, as an unprivileged user, in an empty network namespace and a
// scratch folder, with limits on time, memory and file size. What an attack would start is a stub that does nothing.
package classifytest
