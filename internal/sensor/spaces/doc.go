// Package spaces keeps the lists of secret files up to date in every mount namespace that
// something guarded runs in. It finds the namespaces; which files are secret, and where
// they are, package files knows.
package spaces
