//go:build vmguest

// Package boot shows that a VM is what the other groups rely on.
package boot

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

func TestKernelVersion(t *testing.T) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	want := os.Getenv("WEIR_KERNEL")
	if got := unix.ByteSliceToString(u.Release[:]); want == "" || !strings.HasPrefix(got, want+".") {
		t.Errorf("kernel is %s, want %s", got, want)
	}
}

func TestBTF(t *testing.T) {
	if fi, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil || fi.Size() == 0 {
		t.Errorf("no BTF: %v", err)
	}
}

// A 64-bit program can make x32 calls (B41), which Debian's kernels know but leave off.
func TestX32(t *testing.T) {
	const x32 = 0x40000000
	pid, _, errno := unix.RawSyscall(x32+unix.SYS_GETPID, 0, 0, 0)
	if errno != 0 || int(pid) != os.Getpid() {
		t.Errorf("getpid as an x32 call = %d, %v, want %d", pid, errno, os.Getpid())
	}
}

func TestFilesystems(t *testing.T) {
	b, err := os.ReadFile("/proc/mounts")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 2 {
			have[f[1]] = f[2]
		}
	}
	for path, want := range map[string]string{
		"/": "ext4", "/sys/fs/cgroup": "cgroup2", "/sys/fs/bpf": "bpf", "/sys/kernel/tracing": "tracefs", "/tmp": "tmpfs", "/weir": "9p", "/out": "9p",
	} {
		if have[path] != want {
			t.Errorf("%s is of type %q, want %s", path, have[path], want)
		}
	}
}

func TestCgroupControllers(t *testing.T) {
	b, err := os.ReadFile("/sys/fs/cgroup/cgroup.subtree_control")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cpu", "memory", "pids"} {
		if !slices.Contains(strings.Fields(string(b)), want) {
			t.Errorf("controller %s is off: %s", want, b)
		}
	}
}

// Shares that say read-only must be so: tests of hostile programs see the repository.
func TestSharesReadOnly(t *testing.T) {
	if err := os.WriteFile("/weir/written", nil, 0o644); err == nil {
		os.Remove("/weir/written")
		t.Error("the repository can be written to")
	}
	if err := os.WriteFile("/out/written", []byte("x"), 0o644); err != nil {
		t.Error(err)
	}
}

func TestPrograms(t *testing.T) {
	for _, p := range []string{"bash", "busybox", "curl", "ip", "modprobe", "nc", "perl", "python3", "socat", "strace", "sudo", "unshare", "wget"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Error(err)
		}
	}
}

func TestModules(t *testing.T) {
	for _, m := range []string{
		"tcp_diag", "udp_diag", "raw_diag", "unix_diag", "af_packet_diag", "mptcp_diag", "veth", "dummy", "tun", "sctp", "dccp",
		"tipc", "vsock", "vsock_loopback", "af_key", "algif_skcipher", "nf_tables", "iptable_nat",
	} {
		if b, err := exec.Command("modprobe", m).CombinedOutput(); err != nil {
			t.Errorf("modprobe %s: %v: %s", m, err, b)
		}
	}
}

func TestLoopback(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "::1"} {
		if b, err := exec.Command("ping", "-c1", "-W60", addr).CombinedOutput(); err != nil {
			t.Errorf("ping %s: %v: %s", addr, err, b)
		}
	}
}

// Tests make namespaces of all kinds, also as an ordinary user.
func TestNamespaces(t *testing.T) {
	for _, args := range [][]string{
		{"unshare", "-Urnpf", "true"},
		{"setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "unshare", "-Urn", "true"},
	} {
		if b, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", strings.Join(args, " "), err, b)
		}
	}
}

// Orphans come to process 1, which must not let zombies pile up.
func TestOrphansReaped(t *testing.T) {
	b, err := exec.Command("bash", "-c", "for i in 1 2 3; do (sleep 0.1 >/dev/null 2>&1 & echo $!); done").CombinedOutput()
	orphans := strings.Fields(string(b))
	if err != nil || len(orphans) != 3 {
		t.Fatalf("%v: %s", err, b)
	}
	for _, pid := range orphans {
		rig.Eventually(t, "process "+pid+" has ended and was reaped", func() bool {
			_, err := os.Stat("/proc/" + pid)
			return os.IsNotExist(err)
		})
	}
}
