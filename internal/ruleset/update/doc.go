// Package update says where an update of the agent may come from (K8). It fetches nothing.
package update
