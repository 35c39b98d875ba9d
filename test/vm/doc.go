// Package vm boots Debian kernels in QEMU and runs test programs in them, whose results come out as ordinary Go tests.
//
// It owns how a VM is made (kernel, initramfs, root image, shares) and how results travel. It never loads anything into the
// machine's own kernel, and it knows nothing of what the tests check.
package vm
