package secretfiles

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	v := viewAt(t, top)
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
		"srv": {}, "srv/a": {}, "srv/b": {}, "root": {}, "home": {}, "home/bob": {}, "link": {}, // who moves these away is tainted (B131)
	}
	got := map[string]filesSecretNode{}
	err = filepath.WalkDir(top, func(at string, _ os.DirEntry, err error) error {
		id := idOf(t, at)
		if node, ok := found[id]; ok {
			got[strings.TrimPrefix(strings.TrimPrefix(at, top), "/")] = node
			delete(found, id)
		}
		return err
	})
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(found) > 0 {
		t.Errorf("want - got +\n%s, %v, and also %v", diff, err, found)
	}
}

// idOf is what the kernel calls a file, on most file systems.
func idOf(t *testing.T, at string) inode {
	t.Helper()
	fd, err := unix.Open(at, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("open %s: %v", at, err)
	}
	defer unix.Close(fd)
	id, err := stat(fd)
	if err != nil {
		t.Fatalf("stat %s: %v", at, err)
	}
	return id
}

func stat(fd int) (inode, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return inode{device: unix.Major(st.Dev)<<20 | unix.Minor(st.Dev), number: st.Ino, directory: st.Mode&unix.S_IFMT == unix.S_IFDIR}, err
}

// viewAt looks from a directory that stands for a root; what is mounted there is the machine's.
func viewAt(t *testing.T, top string) *view {
	t.Helper()
	fd, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	v := &view{fd: fd, mounts: "/dev/null", ask: stat, most: maxFound, steps: map[string]step{}, traces: map[inode]trace{}}
	t.Cleanup(v.close)
	return v
}

// What a line does not get to is secret as well, and that is told: a container makes any number of files (B132).
func TestB132Many(t *testing.T) {
	top := t.TempDir()
	for i := range 300 {
		if err := os.MkdirAll(filepath.Join(top, "work", fmt.Sprint(i), "keys"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	work := filepath.Join(top, "work")
	keys := policy.SecretFile{Text: "/work/*/keys/", Dir: "/work/*/keys"}
	v := viewAt(t, top)
	for _, c := range []struct {
		most int
		over bool
	}{{300, false}, {299, true}} {
		v.most = c.most
		found, err := v.resolve([]policy.SecretFile{keys, {Text: "/work/7", Dir: "/work", Name: "7"}})
		if over := found[idOf(t, work)].Below == 1; over != c.over || (err != nil) != c.over {
			t.Errorf("at most %d: all below is secret: %v, %v", c.most, over, err)
		}
		if err != nil && !strings.Contains(err.Error(), "/work/*/keys/ stands for more than 299 files") {
			t.Error(err)
		}
		if node := found[idOf(t, filepath.Join(work, "7"))]; node.Below != 1 {
			t.Errorf("at most %d: a line without a pattern does not count: %v", c.most, node)
		}
	}
	v.most = maxFound
	for i := range maxFound {
		if err := os.WriteFile(filepath.Join(work, fmt.Sprint("f", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := v.resolve([]policy.SecretFile{keys}); found[idOf(t, work)].Below != 1 || err == nil {
		t.Errorf("files that a pattern fits: %v, %v", found[idOf(t, work)], err)
	}
	for _, c := range []struct {
		pattern string
		want    []string
	}{{"/srv/a*/keys", []string{"/srv/"}}, {"/*/keys", []string{"/"}}, {"/etc", []string{"/etc"}}, {"~/.k/[ab]", []string{"/root/.k/", "/home"}}} {
		if got := stems(c.pattern); !slices.Equal(got, c.want) {
			t.Errorf("%s begins with %q, want %q", c.pattern, got, c.want)
		}
	}
}

// What was found stays secret by whatever name it has until it is no more, and then its number is another's (B130).
func TestB130Fates(t *testing.T) {
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	for _, name := range []string{"real", "linked", "removed", "renewed"} {
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("real", at("link")), os.Link(at("linked"), at("older"))); err != nil {
		t.Fatal(err)
	}
	files := []policy.SecretFile{{Dir: top, Name: "link"}, {Dir: top, Name: "linked"}, {Dir: top, Name: "removed"}, {Dir: top, Name: "renewed"}}
	f, r := &Files{lists: map[uint32]*list{1: {files: files}}}, newRoot()
	look := func() {
		t.Helper()
		v := viewAt(t, "/")
		v.mounts = "/proc/self/mountinfo"
		g, err := v.look(f.lists, r.traces)
		if err = f.keep(r, 0, f.lists, g, err); err != nil || !g.whole {
			t.Fatalf("look: whole %v, %v", g.whole, err)
		}
	}
	look()
	real, linked, removed, renewed := idOf(t, at("real")), idOf(t, at("linked")), idOf(t, at("removed")), idOf(t, at("renewed"))
	if err := errors.Join(os.Remove(at("link")), os.Remove(at("linked")), os.Remove(at("removed")), os.WriteFile(at("new"), nil, 0o600), os.Rename(at("new"), at("renewed"))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		look()
		for id, want := range map[inode]uint32{real: 1, linked: 1, removed: 0, renewed: 0, idOf(t, at("renewed")): 1} {
			if got := r.found[1][id].Self; got != want && id != idOf(t, at("renewed")) {
				t.Errorf("%v: secret %d, want %d", id, got, want)
			}
		}
	}
	// without handles, or from another root, the path tells
	trace := r.traces[real]
	trace.handle = nil
	r.traces[real] = trace
	look()
	if r.found[1][real].Self != 1 {
		t.Error("what still is where it was is not secret any more")
	}
	if err := os.Rename(at("real"), at("elsewhere")); err != nil {
		t.Fatal(err)
	}
	trace = r.traces[real]
	trace.handle = nil
	r.traces[real] = trace
	look()
	if r.found[1][real].Self != 0 {
		t.Error("what may be no more is still secret")
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
		got, all := sticky(nodes{kept: {Below: 1}}, nodes{moved: {Below: 1}, file: {Self: 1}, kept: {Names: 2}}, map[inode]fate{file: away}, turned)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(inode{})); diff != "" || !all {
			t.Errorf("turned %v (-want +got):\n%s", turned, diff)
		}
	}
}

// However much is found, what was found before is not pushed out (B132), as long as there is not too much of that, which is told.
func TestB132PushedOut(t *testing.T) {
	many := func(from, n int) nodes {
		all := nodes{}
		for i := range n {
			all[inode{number: uint64(from + i), directory: true}] = filesSecretNode{Below: 1}
		}
		return all
	}
	moved := inode{number: 1, directory: true}
	now, all := sticky(many(10, maxFound), many(1, 1), nil, false)
	if now[moved].Below != 1 || len(now) != maxFound+1 || !all {
		t.Errorf("what was found before: %v of %d, all %v", now[moved], len(now), all)
	}
	if now, all = sticky(many(1, maxFound), many(maxFound+1, maxFound+1), nil, false); len(now) != 2*maxFound || all {
		t.Errorf("too much: %d, all %v", len(now), all)
	}
}
