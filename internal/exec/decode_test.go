package exec

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weir/internal/event"
)

// record is what the probe would write.
func record(t testing.TB, h execExec, path, filename, interp, argv, env string) []byte {
	t.Helper()
	h.PathLength, h.FilenameLength, h.InterpLength = uint32(len(path)), uint32(len(filename)), uint32(len(interp))
	h.ArgvLength, h.EnvLength = uint32(len(argv)), uint32(len(env))
	b, err := binary.Append(nil, binary.NativeEndian, &h)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, path+filename+interp+argv+env...)
}

func raw(name string) (c [16]int8) {
	for i := range name {
		c[i] = int8(name[i])
	}
	return c
}

func header() execExec {
	h := execExec{
		Time: 1, Container: 2, Cgroup: 3, Start: 4, Inode: 5, ArgvHash: 6, Device: 8<<20 | 300, Tgid: 7, Uid: 1000, Netns: 8, Pidns: 9,
		Taint: 1, Parents: 2, Comm: raw("curl"),
	}
	h.Parent[0].Start, h.Parent[0].Tgid, h.Parent[0].Comm = 10, 11, raw("0123456789abcdef")
	h.Parent[1].Start, h.Parent[1].Tgid, h.Parent[1].Comm = 12, 1, raw("init")
	return h
}

func command() Command {
	return Command{Container: 2, Cgroup: 3, Taint: 1, Time: 1, Process: event.Process{
		PID: 7, Start: 4, UID: 1000, Comm: "curl", ArgvHash: 6, NetNS: 8, PidNS: 9,
		Exe:      &event.File{Path: "/usr/bin/curl", Device: unix.Mkdev(8, 300), Inode: 5},
		Argv:     []string{"curl", "-s", ""},
		Ancestry: []event.Ancestor{{PID: 11, Start: 10, Comm: "0123456789abcdef"}, {PID: 1, Start: 12, Comm: "init"}},
	}}
}

func TestHeaderSize(t *testing.T) {
	if got, want := binary.Size(execExec{}), int(unsafe.Sizeof(execExec{})); got != want {
		t.Errorf("a header is read as %d bytes, it has %d", got, want)
	}
}

func TestDecode(t *testing.T) {
	const path, name, argv = "curl/bin/usr/", "/bin/curl\x00", "curl\x00-s\x00\x00"
	type parts struct{ path, filename, interp, argv, env string }
	for _, c := range []struct {
		name  string
		parts parts
		with  func(h *execExec)
		want  func(c *Command)
	}{
		{"plain", parts{path, name, name, argv, "A=b\x00"}, nil, nil},
		{"B02 cut argv", parts{path, name, name, "curl\x00-s", ""}, func(h *execExec) { h.Flags, h.ArgvHash = execExecFlagEXEC_ARGV_CUT, 0 },
			func(c *Command) {
				c.Process.Argv, c.Process.Truncated, c.Process.ArgvHash = []string{"curl", "-s"}, true, 0
			}},
		{"B02 argv without its end", parts{path, name, name, "curl", ""}, nil,
			func(c *Command) { c.Process.Argv, c.Process.Truncated = []string{"curl"}, true }},
		{"B02 argv that could not be read", parts{path, name, name, "", ""}, nil,
			func(c *Command) { c.Process.Argv, c.Process.Truncated = nil, true }},
		{"B06 memfd", parts{"memfd:x y/", name, name, argv, ""}, func(h *execExec) { h.Flags = execExecFlagEXEC_UNLINKED },
			func(c *Command) {
				c.Process.Exe.Path, c.Process.Exe.Memfd, c.Process.Exe.Deleted = "/memfd:x y", true, true
			}},
		{"B06 a file that is named like a memfd", parts{"memfd:x/", name, name, argv, ""}, nil,
			func(c *Command) { c.Process.Exe.Path = "/memfd:x" }},
		{"B06 deleted", parts{path, name, name, argv, ""}, func(h *execExec) { h.Flags = execExecFlagEXEC_UNLINKED },
			func(c *Command) { c.Process.Exe.Deleted = true }},
		{"B07 script", parts{path, "./x.sh\x00", "/usr/bin/curl\x00", argv, ""}, func(h *execExec) { h.Flags = execExecFlagEXEC_SCRIPT },
			func(c *Command) { c.Process.Script, c.Process.Interp = "./x.sh", "/usr/bin/curl" }},
		{"B07 names as long as their room", parts{path, strings.Repeat("x", 255) + "\x00", strings.Repeat("x", 255) + "\x00", argv, ""},
			func(h *execExec) { h.Flags = execExecFlagEXEC_SCRIPT },
			func(c *Command) {
				c.Process.Script, c.Process.Interp = strings.Repeat("x", 255)+"…", strings.Repeat("x", 255)+"…"
			}},
		{"B12 environment", parts{path, name, name, argv, "LD_PRELOAD=x\x00A=b\x00PATH=/bin:.\x00LD_PRELOAD=y\x00IFS"},
			func(h *execExec) { h.Flags = execExecFlagEXEC_ENV_CUT },
			func(c *Command) { c.Process.Env, c.Process.EnvCut = []string{"LD_PRELOAD", "PATH"}, true }},
		{"cut path", parts{"curl/bin/", name, name, argv, ""}, func(h *execExec) { h.Flags = execExecFlagEXEC_PATH_CUT },
			func(c *Command) { c.Process.Exe.Path = "…/bin/curl" }},
		{"no file", parts{"", name, name, argv, ""}, func(h *execExec) { h.Inode = 0 }, func(c *Command) { c.Process.Exe = nil }},
		{"the idle task", parts{path, name, name, argv, ""}, func(h *execExec) { h.Parent[1].Tgid = 0 },
			func(c *Command) { c.Process.Ancestry = c.Process.Ancestry[:1] }},
		{"bytes that are not text", parts{"\xff\x1b/", name, name, "\xfe\x00", ""}, nil,
			func(c *Command) { c.Process.Exe.Path, c.Process.Argv = "/\xff\x1b", []string{"\xfe"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, want := header(), command()
			if c.with != nil {
				c.with(&h)
			}
			if c.want != nil {
				c.want(&want)
			}
			got, err := newNames().decode(record(t, h, c.parts.path, c.parts.filename, c.parts.interp, c.parts.argv, c.parts.env))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v -want +got\n%s", err, diff)
			}
		})
	}
}

func TestDecodeMalformed(t *testing.T) {
	whole := record(t, header(), "a/", "a\x00", "a\x00", "a\x00", "A=b\x00")
	many := header()
	many.Parents = 9
	for name, bad := range map[string][]byte{
		"empty": nil, "half a header": whole[:100], "a byte short": whole[:len(whole)-1], "nine parents": record(t, many, "", "", "", "", ""),
	} {
		if c, err := newNames().decode(bad); !errors.Is(err, errRecord) {
			t.Errorf("%s: %+v, %v; errRecord expected", name, c, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(record(f, header(), "curl/bin/", "curl\x00", "curl\x00", "curl\x00-s\x00", "LD_PRELOAD=x\x00"))
	h := header()
	h.Parents, h.Flags = 8, 31
	f.Add(record(f, h, "memfd:x/", "", "", "", "PATH="))
	f.Add(record(f, execExec{}, "/", "\x00", "\x00", "\x00", "\x00"))
	n := newNames()
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := n.decode(data)
		if err != nil {
			if !errors.Is(err, errRecord) {
				t.Errorf("error %v is not errRecord", err)
			}
			return
		}
		if len(c.Process.Ancestry) > maxParents {
			t.Errorf("%d ancestors", len(c.Process.Ancestry))
		}
		for _, a := range c.Process.Argv {
			if strings.Contains(a, "\x00") {
				t.Errorf("argument %q", a)
			}
		}
	})
}

func TestDangerousEnv(t *testing.T) { // B12
	for entry, want := range map[string]bool{
		"LD_PRELOAD=/x": true, "LD_AUDIT=": true, "LD_ANYTHING=1": true, "LDFLAGS=-lm": false, "BASH_ENV=/x": true, "ENV=/x": true,
		"BASH_FUNC_curl%%=() { :; }": true, "NODE_OPTIONS=--require=/x": true, "NODE_ENV=test": false, "PYTHONSTARTUP=/x": true,
		"PYTHONUNBUFFERED=1": false, "GCONV_PATH=/x": true, "LESSOPEN=|x %s": true, "LESSCHARSET=utf-8": false,
		"RIPGREP_CONFIG_PATH=/x": true, "GIT_SSH_COMMAND=x": true, "GIT_CONFIG_KEY_0=core.pager": true, "GIT_AUTHOR_NAME=x": false,
		"PATH=/usr/bin:/bin": false, "PATH=/usr/bin:": true, "PATH=:/bin": true, "PATH=bin": true, "PATH=": true, "PATH=/a::/b": true,
		"IFS=x": true, "EDITOR=vi": true, "HOME=/root": false, "=": false, "": false, "LD_PRELOAD": false,
	} {
		if got := len(newNames().find([]byte(entry+"\x00"))) == 1; got != want {
			t.Errorf("%q dangerous: %v, want %v", entry, got, want)
		}
	}
	for _, v := range dangerous() {
		if v.name == "" || v.why == "" {
			t.Errorf("%+v lacks a name or a reason", v)
		}
	}
}
