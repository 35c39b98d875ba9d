// Package node keeps a Kubernetes node's taint true to its sensor: there while the sensor does not enforce, gone while it does.
// It owns the three requests that this needs, and nothing else of a cluster.
package node
