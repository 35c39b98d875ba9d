// Package runner starts the processes of weir: the sensor below the watcher that
// wakes what it leaves held, a sensor for the time of one command, and a guarded
// command. It owns their descriptors, signals, users and exit statuses. It
// decides nothing, and touches neither kernel nor cgroups but to be born in one.
package runner
