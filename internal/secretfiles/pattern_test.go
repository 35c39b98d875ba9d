package secretfiles

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weir/internal/linux"
	"weir/internal/policy"
)

// same compares a name as named in bpf/files.bpf.c does.
func same(n filesSecretName, name string) bool {
	if len(name) < int(n.Length) || n.Exact != 0 && len(name) != int(n.Length) {
		return false
	}
	padded := strings.Repeat("x", part) + name + strings.Repeat("y", part)
	head, tail := []byte(padded[part:]), []byte(padded[len(name):])
	for w := range n.Head {
		h, t := binary.NativeEndian.Uint64(head[w*8:]), binary.NativeEndian.Uint64(tail[w*8:])
		if (h^n.Head[w])&n.HeadMask[w]|(t^n.Tail[w])&n.TailMask[w] != 0 {
			return false
		}
	}
	return true
}

func TestNames(t *testing.T) { // G2
	long := strings.Repeat("abcdefgh", 8)
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{".env", ".env", true},
		{".env", ".env2", false},
		{".env", "x.env", false},
		{"*", "anything", true},
		{"*.pem", "key.pem", true},
		{"*.pem", ".pem", true},
		{"*.pem", "key.pem.bak", false},
		{"id_*", "id_rsa", true},
		{"id_*", "xid_rsa", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"secret_*_key", "secret_x_key", true},
		{"secret_*_key", "secret_key", false},
		{long, long, true},
		{long, long[:63] + "x", false},
		{long, "x" + long[1:], false},
		{long, long[:63], false},
		{long[:40], long[:40], true},
		{long[:40], long[:20] + "x" + long[21:40], false},
	} {
		if got := same(nameOf(c.pattern), c.name); got != c.want {
			t.Errorf("%s, %s: %v", c.pattern, c.name, got)
		}
	}
}

func TestLengths(t *testing.T) {
	var got, starred [4]uint64
	lengths([]policy.SecretFile{{Name: ".env"}, {Dir: "/a", Name: "shadow"}, {Dir: "/b"}, {Dir: "/c", Name: "id_*"}}, &got, &starred)
	all := ^uint64(0)
	if diff := cmp.Diff([2][4]uint64{{1 << 4}, {all << 3, all, all, all}}, [2][4]uint64{got, starred}); diff != "" {
		t.Error(diff)
	}
	lengths([]policy.SecretFile{{Name: "*" + strings.Repeat("x", 32)}}, &got, &starred)
	if got[0] != 0xffffffff00000010 || got[3] != 0xffffffffffffffff {
		t.Errorf("%x", got)
	}
}

// TestResolve looks a list up below a directory that stands for a root.
func TestResolve(t *testing.T) {
	top := t.TempDir()
	for _, file := range []string{
		"etc/shadow", "etc/other", "srv/a/keys/one", "srv/b/keys/two", "root/.ssh/id_rsa", "root/.ssh/known", "home/bob/.ssh/id_x", "data/real/token",
	} {
		at := filepath.Join(top, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/data/real", filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	ask := func(fd int) (inode, error) {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return inode{}, err
		}
		id := inode{device: uint32(st.Dev), number: st.Ino, directory: st.Mode&unix.S_IFMT == unix.S_IFDIR}
		return id, nil
	}
	fd, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	v := &view{fd: fd, mounts: "/dev/null", ask: ask, most: maxFound}
	defer v.close()
	found, err := v.resolve([]policy.SecretFile{
		{Dir: "/etc", Name: "shadow"}, {Dir: "/srv/*/keys"}, {Dir: "~/.ssh", Name: "id_*"}, {Dir: "/link", Name: "token"}, {Dir: "/", Name: "data"},
		{Dir: "/nowhere"}, {Name: ".env"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]filesSecretNode{
		"": {Names: 1 << 3}, "etc": {Names: 1}, "etc/shadow": {Self: 1}, "srv/a/keys": {Below: 1}, "srv/b/keys": {Below: 1},
		"root/.ssh": {Names: 2}, "root/.ssh/id_rsa": {Self: 1}, "home/bob/.ssh": {Names: 2}, "home/bob/.ssh/id_x": {Self: 1},
		"data/real": {Names: 4}, "data/real/token": {Self: 1}, "data": {Below: 1},
	}
	got := map[string]filesSecretNode{}
	err = filepath.WalkDir(top, func(at string, _ os.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(at, &st)
		}
		id := inode{device: uint32(st.Dev), number: st.Ino, directory: st.Mode&unix.S_IFMT == unix.S_IFDIR}
		if node, ok := found[id]; ok {
			got[strings.TrimPrefix(strings.TrimPrefix(at, top), "/")] = node
			delete(found, id)
		}
		return err
	})
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(found) > 0 {
		t.Errorf("want - got +\n%s, %v, and also %v", diff, err, found)
	}
	v.most = 2
	if _, err := v.resolve([]policy.SecretFile{{Text: "/etc/*", Dir: "/etc", Name: "*"}}); err == nil || !strings.Contains(err.Error(), "/etc/* stands for more than 2 files") {
		t.Errorf("too many: %v", err)
	}
}

func TestMountsBelow(t *testing.T) {
	info := "22 1 0:20 / / rw - ext4 /dev/vda rw\n30 22 0:5 / /run/secrets rw - tmpfs x rw\n31 30 0:6 / /run/secrets/db\\040one rw - tmpfs x rw\n32 22 0:7 / /run/secretsx rw - tmpfs x rw\nshort\n"
	if got := linux.MountsBelow(info, "/run/secrets"); !slices.Equal(got, []string{"/run/secrets/db one"}) {
		t.Errorf("%q", got)
	}
}

func TestSticky(t *testing.T) {
	moved, file, kept := inode{number: 1, directory: true}, inode{number: 2}, inode{number: 3, directory: true}
	for turned, want := range map[bool]nodes{
		false: {kept: {Below: 1, Names: 2}, moved: {Below: 1}},
		true:  {kept: {Below: 1, Names: 2}, moved: {Below: 1}, file: {Self: 1}}, // it may be where another process's root is
	} {
		got := sticky(nodes{kept: {Below: 1}}, nodes{moved: {Below: 1}, file: {Self: 1}, kept: {Names: 2}}, turned)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(inode{})); diff != "" {
			t.Errorf("turned %v (-want +got):\n%s", turned, diff)
		}
	}
}
