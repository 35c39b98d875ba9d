// Package secretfiles owns the taint that comes from secret files (G2): the programs that see them opened, the kernel's lists of them,
// and finding the inodes that the policy's paths stand for, in every mount namespace of a guarded container. It changes no taint
// but what its programs set; it closes nothing and opens no way out.
package secretfiles
