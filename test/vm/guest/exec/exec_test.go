//go:build vmguest

package exec

import (
	"fmt"
	"math/bits"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
	"weir/internal/linux"
)

func TestPlainCommand(t *testing.T) {
	r := startRig(t)
	execs := attack(t, "execs")
	cmd := r.inside(execs, "report", "two words", "", "\xff\x1b[2J")
	cmd.Dir = "/usr"
	c, out := r.last(cmd)
	p := c.Process
	if diff := cmp.Diff(r.image(out).Argv[:3], p.Argv[:3]); diff != "" || p.Truncated {
		t.Error(diff)
	}
	if p.Argv[4] != "\xff\x1b[2J" {
		t.Errorf("bytes of an argument changed: %q", p.Argv)
	}
	if want := sip(key(), strings.Join(p.Argv, "\x00")+"\x00"); p.ArgvHash != want {
		t.Errorf("argv hash %x, want %x", p.ArgvHash, want)
	}
	isFile(t, p, execs)
	self, err := linux.ReadStat(os.Getpid())
	r.check(err)
	netns, err := linux.Namespace(os.Getpid(), "net")
	r.check(err)
	pidns, err := linux.Namespace(os.Getpid(), "pid")
	r.check(err)
	want := event.Process{
		PID: cmd.Process.Pid, Start: p.Start, UID: 0, Comm: "execs", Exe: &event.File{Path: execs, Device: p.Exe.Device, Inode: p.Exe.Inode},
		Argv: p.Argv, ArgvHash: p.ArgvHash, Ancestry: p.Ancestry, NetNS: netns, PidNS: pidns, Env: p.Env,
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if c.Cgroup != r.container || c.Time < p.Start || c.Taint != 0 {
		t.Errorf("%+v", c)
	}
	if len(p.Ancestry) == 0 || p.Ancestry[0].PID != self.PID || p.Ancestry[0].Comm != self.Comm ||
		!linux.SameStart(self.Start, p.Ancestry[0].Start) || p.Ancestry[len(p.Ancestry)-1].PID != 1 {
		t.Errorf("ancestry %+v of a child of %+v", p.Ancestry, self)
	}
}

func TestOutsideIsNotSeen(t *testing.T) {
	r := startRig(t)
	r.check(osexec.Command("true").Run())
	r.last(r.inside("true"))
	if all := r.commands(); len(all) != 1 {
		t.Errorf("%d commands, 1 was in the container: %+v", len(all), all)
	}
}

func TestChildCgroup(t *testing.T) {
	r := startRig(t)
	c, _ := r.last(r.inside("bash", "-c", "echo $$ >"+r.dir+"/inner/cgroup.procs; exec true"))
	if inner := stat(t, r.dir+"/inner").Ino; c.Cgroup != inner || c.Container != r.container {
		t.Errorf("cgroup %d in container %d, want %d in %d", c.Cgroup, c.Container, inner, r.container)
	}
}

func TestParentChain(t *testing.T) {
	r := startRig(t)
	cmd := r.inside("bash", "-c", "bash -c 'sh -c \"true; /bin/true; true\"; true'; true")
	r.last(cmd)
	for _, c := range r.commands() {
		if c.Process.Comm != "true" {
			continue
		}
		var comms []string
		for _, a := range c.Process.Ancestry[:3] {
			comms = append(comms, a.Comm)
		}
		if diff := cmp.Diff([]string{"sh", "bash", "bash"}, comms); diff != "" {
			t.Error(diff)
		}
		if c.Process.Ancestry[2].PID != cmd.Process.Pid || c.Process.Ancestry[3].PID != os.Getpid() {
			t.Errorf("ancestry %+v", c.Process.Ancestry)
		}
		return
	}
	t.Errorf("no record of true in %+v", r.commands())
}

// The arguments are those of the new image, whatever a second thread writes meanwhile (B01).
func TestB01RacingThread(t *testing.T) {
	r := startRig(t)
	seen := map[string]int{}
	for range 40 {
		c, out := r.last(r.inside(attack(t, "execs"), "race"))
		if diff := cmp.Diff(r.image(out).Argv, c.Process.Argv); diff != "" {
			t.Errorf("-image +event\n%s", diff)
		}
		seen[c.Process.Argv[2]]++
	}
	t.Logf("the image got %v", seen)
	if len(seen) < 2 {
		t.Error("the argument never changed during execve: nothing was tried")
	}
}

func TestB02LongArgv(t *testing.T) {
	r := startRig(t)
	const room = 16384 - len("true\x00")
	for _, tt := range []struct {
		length int
		cut    bool
	}{{room - 1, false}, {room, true}, {100_000, true}} {
		c, _ := r.last(r.inside("true", strings.Repeat("x", tt.length)))
		p := c.Process
		if kept := len(strings.Join(p.Argv, "\x00")); p.Truncated != tt.cut || tt.cut && kept != 16384 || (p.ArgvHash == 0) != tt.cut {
			t.Errorf("argument of %d bytes: truncated %v, %d bytes kept, hash %x", tt.length, p.Truncated, kept, p.ArgvHash)
		}
	}
	many := append([]string{"-c", "shift 2000; [ $# = 1 ]", "sh"}, slices.Repeat([]string{"abcdefghi"}, 2001)...)
	if c, _ := r.last(r.inside("sh", many...)); !c.Process.Truncated || len(c.Process.Argv) < 1000 {
		t.Errorf("2,001 arguments: truncated %v, %d kept", c.Process.Truncated, len(c.Process.Argv))
	}
}

// A program under another's name is the file that it is (B03).
func TestB03RenamedProgram(t *testing.T) {
	r := startRig(t)
	ls := workDir(t) + "/ls"
	copyFile(t, "/usr/bin/curl", ls, 0o755)
	c, _ := r.last(r.inside(ls, "--version"))
	isFile(t, c.Process, ls)
	if c.Process.Exe.Path != ls || c.Process.Comm != "ls" {
		t.Errorf("%+v", c.Process)
	}
}

// A link, a bind mount and /proc/self/root lead to the file that the kernel opened (B04).
func TestB04OtherWaysToAFile(t *testing.T) {
	r := startRig(t)
	dir := workDir(t)
	r.check(os.Symlink("/usr/bin/curl", dir+"/link"))
	r.check(os.Link("/usr/bin/curl", dir+"/hard"))
	shell(t, "touch "+dir+"/bound; mount --bind /usr/bin/curl "+dir+"/bound")
	t.Cleanup(func() { shell(t, "umount "+dir+"/bound") })
	for path, shown := range map[string]string{
		"/proc/self/root/usr/bin/curl": "/usr/bin/curl", "/usr/bin/../bin/./curl": "/usr/bin/curl", dir + "/link": "/usr/bin/curl",
		dir + "/hard": dir + "/hard", dir + "/bound": dir + "/bound",
	} {
		c, _ := r.last(r.inside(path, "--version"))
		isFile(t, c.Process, "/usr/bin/curl")
		if c.Process.Exe.Path != shown {
			t.Errorf("%s is shown as %s, want %s", path, c.Process.Exe.Path, shown)
		}
	}
}

// B04: where containers' files are
func TestB04Overlay(t *testing.T) {
	r := startRig(t)
	dir := workDir(t)
	copyFile(t, "/bin/busybox", dir+"/busybox", 0o755)
	shell(t, fmt.Sprintf("cd %s; mkdir lower upper work merged; mv busybox lower; mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged", dir))
	t.Cleanup(func() { shell(t, "umount "+dir+"/merged") })
	c, _ := r.last(r.inside(dir+"/merged/busybox", "true"))
	isFile(t, c.Process, dir+"/merged/busybox")
	if want := dir + "/merged/busybox"; c.Process.Exe.Path != want {
		t.Errorf("path %s, want %s", c.Process.Exe.Path, want)
	}
}

// B04: paths are as the process sees them
func TestB04OwnRoot(t *testing.T) {
	r := startRig(t)
	dir := workDir(t)
	c, _ := r.last(r.inside("unshare", "-m", "bash", "-euc", fmt.Sprintf(
		`mount -t tmpfs none %[1]s; cp /bin/busybox %[1]s; mkdir %[1]s/a %[1]s/old; mv %[1]s/busybox %[1]s/a
		cd %[1]s; pivot_root . old; exec /a/busybox true`, dir)))
	if c.Process.Exe.Path != "/a/busybox" {
		t.Errorf("path %s, want /a/busybox", c.Process.Exe.Path)
	}
}

func TestDeepPath(t *testing.T) {
	r := startRig(t)
	dir := workDir(t)
	deep := dir + strings.Repeat("/d", 70)
	r.check(os.MkdirAll(deep, 0o755))
	copyFile(t, "/bin/busybox", deep+"/busybox", 0o755)
	c, _ := r.last(r.inside(deep+"/busybox", "true"))
	isFile(t, c.Process, deep+"/busybox")
	if !strings.HasPrefix(c.Process.Exe.Path, "…/d/d/d") || !strings.HasSuffix(c.Process.Exe.Path, "/d/busybox") {
		t.Errorf("path %s", c.Process.Exe.Path)
	}
}

func TestB05Loader(t *testing.T) {
	r := startRig(t)
	const loader = "/lib64/ld-linux-x86-64.so.2"
	c, _ := r.last(r.inside(loader, "/usr/bin/curl", "--version"))
	isFile(t, c.Process, loader)
	if diff := cmp.Diff([]string{loader, "/usr/bin/curl", "--version"}, c.Process.Argv); diff != "" {
		t.Error(diff)
	}
}

func TestB06FileWithoutName(t *testing.T) {
	r := startRig(t)
	gone := workDir(t) + "/gone"
	copyFile(t, attack(t, "execs"), gone, 0o755)
	ino := stat(t, gone).Ino
	c, out := r.last(r.inside(attack(t, "execs"), "deleted", gone))
	if e := c.Process.Exe; !e.Deleted || e.Memfd || e.Inode != ino || e.Path != gone {
		t.Errorf("deleted file: %+v, want inode %d", e, ino)
	}
	if diff := cmp.Diff(r.image(out).Argv, c.Process.Argv); diff != "" {
		t.Error(diff)
	}
	c, _ = r.last(r.inside(attack(t, "execs"), "memfd"))
	if e := c.Process.Exe; !e.Memfd || !e.Deleted || e.Path != "/memfd:hidden" {
		t.Errorf("memfd: %+v", e)
	}
}

func TestB07Script(t *testing.T) {
	r := startRig(t)
	dir := workDir(t)
	write := func(path, text string) string {
		r.check(os.MkdirAll(filepath.Dir(path), 0o755))
		r.check(os.WriteFile(path, []byte(text), 0o755))
		return path
	}
	inner := write(dir+"/inner", "#!/usr/bin/perl -w\nprint 1;\n")
	outer := write(dir+"/outer", "#!"+inner+"\nprint 2;\n")
	// Longer than what is recorded of a name.
	long := dir + strings.Repeat("/"+strings.Repeat("l", 50), 5)
	copyFile(t, "/bin/busybox", write(long+"/busybox", ""), 0o755)
	r.check(os.Symlink("/bin/sh", "/var/tmp/"+strings.Repeat("s", 60)))
	t.Cleanup(func() { os.Remove("/var/tmp/" + strings.Repeat("s", 60)) })
	cut := write(long+"/script", "#!/var/tmp/"+strings.Repeat("s", 60)+"\n:\n")

	for path, want := range map[string]event.Process{
		inner: {Script: inner, Interp: "/usr/bin/perl", Argv: []string{"/usr/bin/perl", "-w", inner, "x"}},
		outer: {Script: outer, Interp: "/usr/bin/perl", Argv: []string{"/usr/bin/perl", "-w", inner, outer, "x"}},
		cut: {Script: cut[:255] + "…", Interp: "/var/tmp/" + strings.Repeat("s", 60),
			Argv: []string{"/var/tmp/" + strings.Repeat("s", 60), cut, "x"}},
	} {
		c, _ := r.last(r.inside(path, "x"))
		got := event.Process{Script: c.Process.Script, Interp: c.Process.Interp, Argv: c.Process.Argv}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", path, diff)
		}
	}
	c, _ := r.last(r.inside(inner))
	isFile(t, c.Process, "/usr/bin/perl")
	if c, _ := r.last(r.inside(long+"/busybox", "true")); c.Process.Script != "" || c.Process.Interp != "" {
		t.Errorf("a program with a long name counts as a script: %+v", c.Process)
	}
}

func TestB07BinfmtMisc(t *testing.T) {
	r := startRig(t)
	const dir = "/proc/sys/fs/binfmt_misc"
	if _, err := os.Stat(dir + "/register"); err != nil {
		shell(t, "modprobe binfmt_misc; mount -t binfmt_misc none "+dir)
		t.Cleanup(func() { shell(t, "umount "+dir) })
	}
	file := workDir(t) + "/program.weird"
	r.check(os.WriteFile(file, []byte("any bytes"), 0o755))
	r.check(os.WriteFile(dir+"/register", []byte(":weird:E::weird::/bin/echo:"), 0o200))
	t.Cleanup(func() { r.check(os.WriteFile(dir+"/weird", []byte("-1"), 0o200)) })
	c, _ := r.last(r.inside(file))
	isFile(t, c.Process, "/bin/echo")
	if c.Process.Script != file || c.Process.Interp != "/bin/echo" {
		t.Errorf("%+v", c.Process)
	}
}

func TestB40Setuid(t *testing.T) {
	r := startRig(t)
	file := workDir(t) + "/execs"
	copyFile(t, attack(t, "execs"), file, 0o755|os.ModeSetuid)
	as := func(args ...string) *osexec.Cmd {
		cmd := r.inside(file, args...)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 1000, Gid: 1000}
		return cmd
	}
	c, out := r.last(as("report"))
	if image := r.image(out); image.UID != 1000 || image.EUID != 0 || c.Process.UID != 1000 {
		t.Errorf("image %+v, event %+v", image, c.Process)
	}
	all, out := r.all(as("root", "x"))
	if image := r.image(out); image.UID != 0 || len(all) != 2 || all[0].Process.UID != 1000 || all[1].Process.UID != 0 {
		t.Errorf("image %+v, events %+v", image, all)
	}
}

func TestB41OtherSystemCalls(t *testing.T) {
	r := startRig(t)
	for _, cmd := range []*osexec.Cmd{
		r.inside(attack(t, "execs.386"), "report", "x"), r.inside(attack(t, "execs.386"), "memfd"),
		r.inside(attack(t, "execs"), "x32"), r.inside(attack(t, "execs"), "thread"),
	} {
		c, out := r.last(cmd)
		if diff := cmp.Diff(r.image(out).Argv, c.Process.Argv); diff != "" || c.Process.Truncated {
			t.Errorf("%s: -image +event\n%s", cmd, diff)
		}
		if !c.Process.Exe.Memfd {
			isFile(t, c.Process, cmd.Path)
		}
	}
}

func TestB12DangerousEnv(t *testing.T) {
	r := startRig(t)
	cmd := r.inside("true")
	cmd.Env = []string{"HOME=/root", "LD_AUDIT=/secret.so", "PATH=/bin:.", "BASH_FUNC_ls%%=() { :; }", "GIT_SSH_COMMAND=ssh"}
	c, _ := r.last(cmd)
	if diff := cmp.Diff([]string{"LD_AUDIT", "PATH", "BASH_FUNC_ls%%", "GIT_SSH_COMMAND"}, c.Process.Env); diff != "" || c.Process.EnvCut {
		t.Error(diff)
	}
	cmd = r.inside("true")
	cmd.Env = []string{"A=" + strings.Repeat("x", 9000), "LD_PRELOAD=/x"}
	if c, _ = r.last(cmd); !c.Process.EnvCut {
		t.Errorf("a long environment is not marked: %+v", c.Process)
	}
}

func TestNamespaces(t *testing.T) {
	r := startRig(t)
	c, out := r.last(r.inside("unshare", "-n", "readlink", "/proc/self/ns/net"))
	if want := fmt.Sprintf("net:[%d]\n", c.Process.NetNS); out != want {
		t.Errorf("network namespace %s, the program has %s", want, out)
	}
}

// sip is the hash of exec.bpf.c: SipHash-2-4 of the text padded with zeros to whole words, then of its length.
func sip(key [2]uint64, text string) uint64 {
	v := [4]uint64{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573}
	round := func() {
		v[0] += v[1]
		v[2] += v[3]
		v[1], v[3] = bits.RotateLeft64(v[1], 13)^v[0], bits.RotateLeft64(v[3], 16)^v[2]
		v[0] = bits.RotateLeft64(v[0], 32)
		v[2] += v[1]
		v[0] += v[3]
		v[1], v[3] = bits.RotateLeft64(v[1], 17)^v[2], bits.RotateLeft64(v[3], 21)^v[0]
		v[2] = bits.RotateLeft64(v[2], 32)
	}
	word := func(w uint64) {
		v[3] ^= w
		round()
		round()
		v[0] ^= w
	}
	for at := 0; at < len(text); at += 8 {
		var w uint64
		for i := range min(8, len(text)-at) {
			w |= uint64(text[at+i]) << (8 * i)
		}
		word(w)
	}
	word(uint64(len(text)))
	v[2] ^= 0xff
	for range 4 {
		round()
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}
