// Package store is the database of what must outlive a reboot: it opens state.db, or
// says in one line why it cannot be used. It also owns the bucket of what the daemon
// itself has to know after a restart, by key. Buckets of others are theirs. It never
// replaces or mends a file that is there.
package store
