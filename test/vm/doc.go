// Package vm boots Debian kernels in QEMU and runs test programs in them, whose results come out as ordinary Go tests.
//
// It owns how a VM is made (kernel, initramfs, root image, shares) and how results travel. It never loads anything into the
// machine's own kernel, and it knows nothing of what the tests check.
//
// A group of tests is a package in guest/NAME, its files tagged vmguest, with a TestMain that calls inside.Main. It runs as root in
// a VM of its own on each kernel, in its own directory under /weir (the repository, read-only), with weir and the programs of
// attack/ in PATH and /out to write to:
//
//	VMTEST_KERNELS=6.12 go test -v ./test/vm -run 'TestVM/6.12/boot/TestBTF'
//	go run ./test/vm/cmd/vmrun -kernel 6.1 -v -- bash -c 'uname -a; ls /weir'
//
// Nothing that a VM writes outside /out persists. VMTEST_QEMU replaces QEMU's program, accelerator and CPU; -parallel says how many
// VMs run at a time.
package vm
