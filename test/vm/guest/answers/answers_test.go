//go:build vmguest

// Package answers has the ways out on which the kernel, or somebody outside, says what a container chose: an answer on loopback, a
// program that the kernel starts, a listed name that another socket took.
package answers

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"path/filepath"
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

//go:embed outside.py
var outsidePy string

//go:embed inside.py
var insidePy string

const secret = "/run/answers/secret"

// Unix sockets that tainted containers may talk to; the directory of linked is a link to peer's.
const (
	peer   = "/run/answers-peers/peer"
	linked = "/run/answers-linked/linked"
)

// privileged is a program that has CAP_NET_ADMIN, whoever runs it.
const privileged = "/usr/local/bin/answers-privileged"

// slow is how long it may take to make or to close 66,000 connections on a busy machine (B70).
const slow = 3 * rig.Late

const policy = `
hold: false
approver: none
allow_unix_sockets: ["@listed", ` + peer + `, ` + linked + `]
taint:
  secret_files: [` + secret + `]
`

// way is one attempt: outside listens, inside chooses what it hears.
type way struct {
	name, inside, outside string // functions of inside.py and outside.py
	text                  string // empty: one of its own
	root                  bool   // inside is
	opens                 bool   // inside opens something before the taint
	secret                bool   // and taints itself by a secret file
	first                 bool   // inside listens before outside begins
	alone                 bool   // outside does all
	path                  string // that is imitated; empty: the sensor's own socket
	told                  bool   // inside is told what outside says when it listens
	tainted               bool   // works for tainted containers only
	module                bool   // a program of the host's is replaced
}

var ways = []way{
	{name: "B68/keyctl", inside: "keyctl", outside: "module", module: true},
	{name: "B68/mount", inside: "mount", outside: "module", text: "chosenfs", module: true},
	{name: "B68/link", inside: "link", outside: "module", text: "chosenlink", module: true},
	{name: "B68/binfmt", inside: "binfmt", outside: "module", text: "binfmt-beef", module: true},
	{name: "B69/imitated", inside: "imitate", outside: "imitate"},
	{name: "B69/listed-imitated", inside: "imitate", outside: "imitate", path: peer},
	{name: "B69/listed-imitated-datagram", inside: "imitate_datagram", outside: "imitate_datagram", path: peer},
	{name: "B69/linked-imitated", inside: "imitate", outside: "imitate", path: linked},
	{name: "B69/file-like-abstract", inside: "atname", outside: "atname"},
	{name: "B110/longer-abstract", inside: "zeros", outside: "zeros"},
	{name: "B110/longer-abstract-datagram", inside: "zeros_datagram", outside: "zeros_datagram"},
	{name: "B70/full", inside: "full", outside: "full", root: true, opens: true},
	{name: "B71/session-to-parent", outside: "parent", alone: true},
	{name: "B72/unreachable", inside: "icmp", outside: "icmp"},
	{name: "B72/unreachable-shared", inside: "icmp_shared", outside: "icmp_shared"},
	{name: "B72/unreachable-shared6", inside: "icmp6_shared", outside: "icmp6_shared"},
	{name: "B56_B72/resolver", inside: "dns", outside: "dns", tainted: true},
	{name: "B72/resolver-late", inside: "dns_late", outside: "ears", tainted: true},
	{name: "B72/datagram-late", inside: "late", outside: "ears"},
	{name: "B48/vhost-vsock", inside: "vhost", outside: "vhost", root: true},
	{name: "B73/syn-ack6", inside: "synack6", outside: "synack6", first: true},
	{name: "B73/cookie", inside: "cookie", outside: "cookie", first: true},
	{name: "B73/cookie6", inside: "cookie6", outside: "cookie6", first: true},
	{name: "B61/loopback", inside: "timewait4", outside: "timewait4", opens: true, secret: true},
	{name: "B61/loopback6", inside: "timewait6", outside: "timewait6", opens: true, secret: true},
	{name: "B74/netlink", inside: "netlink", outside: "netlink", root: true, told: true},
	{name: "B75/acquire", inside: "acquire4", outside: "acquire4"},
	{name: "B75/acquire6", inside: "acquire6", outside: "acquire6"},
	{name: "B76/again6", inside: "again6", outside: "again6", first: true, opens: true, secret: true},
	{name: "B77/memory", inside: "left_memory", outside: "memory", root: true, told: true},
	{name: "B77/signal", inside: "left_signal", outside: "signalled", root: true, told: true},
	{name: "B81/tun", inside: "tun", outside: "tun", told: true},
	{name: "B83/user-map", inside: "uid_map", outside: "uid_map", told: true},
	{name: "B83/time-offset", inside: "time_offset", outside: "time_offset", told: true},
	{name: "B83/core-filter", inside: "dump_filter", outside: "dump_filter", told: true},
	{name: "B83/nice", inside: "nice", outside: "nice", told: true},
	{name: "B83/io-priority", inside: "io_priority", outside: "io_priority", told: true},
	{name: "B83/processors", inside: "processors", outside: "processors", told: true},
	{name: "B83/messages", inside: "messages", outside: "messages", told: true},
	{name: "B83/semaphores", inside: "semaphores", outside: "semaphores", told: true},
	{name: "B83/shared-memory", inside: "shared_memory", outside: "shared_memory", told: true},
	{name: "B77/user-map", inside: "left_user_map", outside: "uid_map", root: true, told: true},
	{name: "B77/message", inside: "left_message", outside: "message", root: true, told: true},
	{name: "B78/stream", inside: "takes_stream", outside: "takes_stream", first: true},
	{name: "B78/packets", inside: "takes_packets", outside: "takes_packets", first: true},
	{name: "B78/datagram", inside: "takes_datagram", outside: "takes_datagram", first: true},
	{name: "B78/older", inside: "takes_older", outside: "takes_older", opens: true},
	{name: "B78/older-accepted", inside: "takes_accepted", outside: "takes_accepted", opens: true},
	{name: "B93/second-message", inside: "takes_second", outside: "takes_second", opens: true},
	{name: "B93/waiting", inside: "takes_waiting", outside: "takes_waiting", opens: true, secret: true},
	{name: "B157/left", inside: "takes_left", outside: "takes_left", opens: true, secret: true},
	{name: "B157/left-closed", inside: "takes_left_closed", outside: "takes_left_closed", opens: true, secret: true},
	{name: "B78/credentials", inside: "credentials", outside: "credentials", first: true, root: true},
	{name: "B78/backlog", inside: "backlog", outside: "backlog", first: true},
	{name: "B80/asked-before", inside: "asked_before", outside: "asked_before", tainted: true},
	{name: "B87/key", inside: "md5", outside: "md5", first: true},
	{name: "B87/key-prefix", inside: "md5_prefix", outside: "md5_prefix", first: true},
	{name: "B91/least-ttl", inside: "min_ttl", outside: "min_ttl", first: true},
	{name: "B23/urgent", inside: "urgent", outside: "urgent", opens: true},
	{name: "B21/tls", inside: "tls", outside: "tls", opens: true},
	{name: "B100/name-stream", inside: "named_stream", outside: "named_stream", opens: true},
	{name: "B100/name-packets", inside: "named_packets", outside: "named_packets", opens: true},
	{name: "B100/name-shared", inside: "kept_bound", outside: "named_kept", opens: true},
	{name: "B100/peer-shared", inside: "kept_connected", outside: "named_kept", opens: true},
	{name: "B101/full", inside: "fills", outside: "sees_full", opens: true},
	{name: "B102/chosen", inside: "chooses", outside: "chooses"},
	{name: "B103/tap", inside: "tap", outside: "tap"},
	{name: "B106/linked", inside: "linked", outside: "tap"},
	{name: "B106/mirrored", inside: "mirrored", outside: "mirrored"},
	{name: "B106/device", inside: "made", outside: "made"},
	{name: "B106/route", inside: "routed", outside: "routed"},
	{name: "B106/setting", inside: "tagged", outside: "tagged"},
	{name: "B107/answers", inside: "set_answers", outside: "pinged", opens: true, root: true},
	{name: "B107/machine", inside: "set_machine", outside: "set_machine", opens: true, root: true},
	{name: "B108/pair", inside: "paired", outside: "made"},
	{name: "B118/message", inside: "sends_message", outside: "message_asleep", opens: true},
	{name: "B118/message-taken", inside: "takes_message", outside: "sender_asleep", opens: true},
	{name: "B118/message-removed", inside: "removes_messages", outside: "message_asleep", opens: true},
	{name: "B118/semaphore", inside: "adds_semaphore", outside: "semaphore_asleep", opens: true},
	{name: "B118/semaphore-set", inside: "sets_semaphore", outside: "semaphore_asleep", opens: true},
	{name: "B118/semaphore-removed", inside: "removes_semaphore", outside: "semaphore_asleep", opens: true},
	{name: "B120/join", inside: "join_begun", outside: "join_begun", opens: true, root: true},
	{name: "B120/sources", inside: "sources_begun", outside: "sources_begun", opens: true, root: true},
	{name: "B120/many-sources", inside: "many_sources_begun", outside: "many_sources_begun", opens: true, root: true},
	{name: "B120/signing-key", inside: "key_begun", outside: "key_begun", opens: true, root: true},
	{name: "B121/semaphores", inside: "semaphores_begun", outside: "semaphores_begun", opens: true, root: true, told: true},
	{name: "B121/own-semaphore", inside: "own_semaphore_begun", outside: "own_semaphore_begun", opens: true, root: true},
	{name: "B143/shut-write", inside: "shut_write", outside: "shut_write", opens: true},
	{name: "B143/shut-read", inside: "shut_read", outside: "shut_read", opens: true},
	{name: "B144/entered", inside: "enters", outside: "enters", opens: true, told: true},
	{name: "B144/entered-setting", inside: "enters_sets", outside: "enters_sets", opens: true, told: true},
	{name: "B145/taken", inside: "takes_port", outside: "takes_port"},
	{name: "B145/taken-mapped", inside: "takes_port6", outside: "takes_port"},
	{name: "B145/joined", inside: "joins_port", outside: "joins_port"},
	{name: "B146/route", inside: "asks_route", outside: "asks_route"},
	{name: "B170/login", inside: "logs_in", outside: "hears_login", root: true},
	{name: "B172/mount", inside: "mounts", outside: "sees_mounts", root: true},
	{name: "B172/moved", inside: "moves_mount", outside: "sees_mounts", root: true},
	{name: "B173/ended", inside: "begins_again", outside: "closes_first", opens: true, secret: true},
	{name: "B128/keyword", inside: "debug_keyword", outside: "kernel_log", root: true},
	{name: "B113/profile", inside: "profile", outside: "kernel_log"},
	{name: "B113/self-label", inside: "self_label", outside: "kernel_log"},
}

// told is what the log calls the calls in which some ways are refused (F45).
var told = map[string]string{
	"B68/keyctl": "module", "B71/session-to-parent": "session_to_parent", "B75/acquire": "ipsec", "B81/tun": "tun",
	"B83/nice": "priority", "B83/io-priority": "priority", "B83/processors": "priority", "B83/messages": "ipc",
	"B103/tap": "network", "B106/linked": "network", "B106/device": "network", "B108/pair": "network",
	"B118/message": "ipc", "B118/semaphore": "ipc", "B172/mount": "mount", "B113/profile": "label", "B113/self-label": "label",
}

func TestAnswers(t *testing.T) {
	f := &fixture{world: rig.NewOutside(t)}
	rig.Must(t, "modprobe -a vhost_vsock tls tun fuse overlay veth sch_ingress cls_u32 act_mirred && chmod 666 /dev/net/tun /dev/fuse && sysctl -qw net.ipv4.ip_forward=1 && mkdir -p /run/answers "+filepath.Dir(peer)+" && ln -s answers-peers "+filepath.Dir(linked)+" && chmod 1777 /run/answers && echo key >"+secret+" && chmod 644 "+secret)
	rig.Must(t, "install -m 755 $(readlink -f /usr/bin/python3) "+privileged+" && python3 -c 'import os, struct; os.setxattr(\""+privileged+"\", \"security.capability\", struct.pack(\"<5I\", 0x2000001, 1 << 12, 0, 0, 0))'")
	rig.Must(t, "ip netns add own && ip link add own0 type veth peer name eth0 netns own && ip addr add 10.80.0.1/24 dev own0 && ip link set own0 up && ip -n own addr add 10.80.0.2/24 dev eth0 && ip -n own link set eth0 up")
	f.sensor = rig.StartSensor(t, policy)
	f.control = rig.Bare(t, "control")
	f.tainted = f.sensor.Guard(t, "tainted", "--taint", "secret")
	for _, w := range rig.Some(ways, func(w way) string { return filepath.Dir(w.name) }) {
		t.Run(w.name, func(t *testing.T) {
			if rig.Controls() && !w.tainted && !f.try(t, w, f.control, false) {
				t.Fatal("nobody hears it without a guard")
			}
			s := f.tainted
			if w.opens {
				s = f.sensor.Guard(t, filepath.Base(w.name))
			}
			before := len(f.sensor.Events(t))
			if f.try(t, w, s, true) {
				t.Error("somebody outside hears it")
			}
			f.sensor.WaitHook(t, s, told[w.name], before)
		})
	}
	for name, fn := range map[string]func(*testing.T, *fixture){"B72_B73_talks_to_itself": talks, "B61_ends_as_ever": ends, "B69_listed": listed, "B135_other_directory": otherDirectory, "B83_own": own, "B81_B126_B169_B171_devices": devices, "B85_keyring": keyring, "B117_switch": switches, "B86_never_answers": never, "B119_killed": reborn((*rig.Sensor).Kill), "B119_stopped": reborn((*rig.Sensor).Stop), "B125_no_arguments": noArguments, "B139_obsolete_calls": obsolete, "B157_notes_end": notesEnd} {
		t.Run(name, func(t *testing.T) { fn(t, f) })
	}
}

type fixture struct {
	world            *rig.Outside
	sensor           *rig.Sensor
	control, tainted *rig.Session
}

// try says whether outside hears what s says.
func (f *fixture) try(t *testing.T, w way, s *rig.Session, guarded bool) bool {
	t.Helper()
	port := f.world.Port()
	f.world.Port() // the next one is used, too
	text := w.text
	if text == "" {
		text = "text." + strconv.Itoa(port) + ".end"
	}
	if w.module {
		defer rig.Must(t, "echo /sbin/modprobe >/proc/sys/kernel/modprobe")
	}
	if w.path == "" {
		w.path = "/run/weir/bridge/" + filepath.Base(f.tainted.Cgroup) + ".sock"
	}
	var in, out *rig.Proc
	begin := func() {
		out = f.world.Agent.Start(t, "python3", "-c", outsidePy, w.outside, strconv.Itoa(port), text, map[bool]string{false: w.path, true: s.Cgroup}[w.alone])
	}
	said := func(p *rig.Proc, prefix string) string {
		t.Helper()
		line := p.WaitLine(prefix, slow)
		if line == "" {
			t.Fatalf("it never says %q: %s", prefix, p.Wait(t))
		}
		return strings.TrimSpace(strings.TrimPrefix(line, prefix))
	}
	if !w.first {
		begin()
	}
	if !w.alone {
		arg := w.path
		if w.told || !w.opens && !w.first {
			if at := said(out, "listens"); w.told {
				arg = at
			}
		} else if !w.first {
			said(out, "serves")
		}
		argv := []string{"setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"}
		if w.root {
			argv = nil
		}
		argv = append(argv, "python3", "-c", insidePy, w.inside, strconv.Itoa(port), text)
		switch {
		case !w.secret:
			argv = append(argv, arg)
		case guarded:
			argv = append(argv, secret)
		}
		in = s.Start(t, argv...)
		if w.opens || w.first {
			said(in, "opened")
		}
		if w.opens && guarded && !w.secret {
			f.sensor.Taint(t, filepath.Base(w.name), "secret")
		}
		if w.first {
			begin()
		} else if w.opens {
			in.Input(t, "\n")
		}
		if w.secret {
			said(in, "closed")
			out.Input(t, "\n")
		}
	}
	said(out, "listens")
	heard := false
	if !guarded {
		heard = out.WaitLine("heard", rig.Late) != ""
	}
	if in != nil && (w.first || w.secret) {
		if w.first && guarded {
			said(out, "tried") // also when the listener is full
			f.world.Flush(t)
		}
		in.Input(t, "\n")
	}
	if in != nil {
		if r, ended := in.WaitFor(slow); !ended {
			t.Fatal("inside does not end")
		} else if w.tainted && !strings.Contains(r.Stdout, "answers") {
			t.Fatalf("inside: %s", r)
		}
	}
	if guarded {
		out.Input(t, "\n")
		r := out.Wait(t)
		heard = strings.Contains(r.Stdout, "\nheard")
		if !heard && !strings.Contains(r.Stdout, "\nnothing") {
			t.Fatalf("outside: %s", r)
		}
	}
	return heard
}

// reborn: while no sensor runs, nobody is the sensor, whatever number he got.
func reborn(end func(*rig.Sensor, testing.TB)) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		pid, path := strconv.Itoa(f.sensor.Pid()), "/run/weir/bridge/"+filepath.Base(f.tainted.Cgroup)+".sock"
		end(f.sensor, t)
		defer f.sensor.Restart(t)
		for s, want := range map[*rig.Session]bool{f.control: true, f.tainted: false} {
			out := f.world.Agent.Start(t, "python3", "-c", outsidePy, "reborn", "0", "text", path, pid)
			if out.WaitLine("listens", rig.Late) == "" {
				t.Fatal(out.Wait(t))
			}
			in := s.Run(t, append(rig.User(), "python3", "-c", insidePy, "imitate", "0", "text", path)...)
			out.Input(t, "\n")
			if r := out.Wait(t); strings.Contains(r.Stdout, "\nheard") != want || !want && !strings.Contains(in.Stdout, "refused EPERM") {
				t.Errorf("%s: %s: %s", s.Name, r, in)
			}
		}
	}
}

// noArguments: the kernel writes into its log what is first executed without arguments, and the sensor has been that.
func noArguments(t *testing.T, f *fixture) {
	const path = "/tmp/answers.no.arguments.end"
	rig.Must(t, "cp $(readlink -f $(type -P true)) "+path)
	r := f.tainted.Run(t, "python3", "-c", "import ctypes, sys; ctypes.CDLL(None).execve(sys.argv[1].encode(), None, None)", path)
	log := rig.Must(t, "dmesg")
	if r.Exit != 0 || strings.Contains(log, path) || !strings.Contains(log, "with NULL argv") {
		t.Errorf("%s: %s", r, log)
	}
}

// notesEnd: what is known of a connection that leads outside is forgotten once both ends are closed, whichever was first.
func notesEnd(t *testing.T, f *fixture) {
	notes := func() (n int) {
		noted, err := ebpf.LoadPinnedMap("/sys/fs/bpf/weir/outside_unix", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer noted.Close()
		key, value := make([]byte, noted.KeySize()), make([]byte, noted.ValueSize())
		for entries := noted.Iterate(); entries.Next(&key, &value); {
			n++
		}
		return n
	}
	s := f.sensor.Guard(t, "notes")
	const times = 64
	const serves = `
import socket, sys
l = socket.socket(socket.AF_UNIX)
l.bind("\0answers-notes")
l.listen(8)
print("serves", flush=True)
for i in range(int(sys.argv[1])):
    c = l.accept()[0]
    if i % 2:
        c.recv(1)
    c.close()
`
	const connects = `
import socket, sys
for i in range(int(sys.argv[1])):
    c = socket.socket(socket.AF_UNIX)
    c.connect("\0answers-notes")
    if not i % 2:
        c.recv(1)
    c.close()
print("connected")
`
	out := f.world.Agent.Start(t, "python3", "-c", serves, strconv.Itoa(times))
	if out.WaitLine("serves", rig.Late) == "" {
		t.Fatal(out.Wait(t))
	}
	before := notes()
	if r := s.Run(t, "python3", "-c", connects, strconv.Itoa(times)); r.Stdout != "connected\n" {
		t.Fatal(r)
	}
	out.Wait(t)
	rig.Eventually(t, "what is known of them is forgotten", func() bool { return notes() < before+times/4 })
}

// obsolete: so it does with the name of the first program that makes one of these calls.
func obsolete(t *testing.T, f *fixture) {
	const name = "obsolete.end" // of a thread: 15 bytes at most
	const calls = `
import ctypes, os, socket, struct, sys
libc = ctypes.CDLL(None)
libc.prctl(15, sys.argv[1].encode())
libc.syscall(216, 0, 0, 0, 0, 0)
libc.syscall(38, 0, 0, 0)
for version in 0x19980330, 0x20071026:
    libc.capget(struct.pack("Ii", version, 0), ctypes.create_string_buffer(24))
with open("/proc/self/oom_adj", "w") as f:
    f.write("0")
libc.socket(socket.AF_INET, 10, 0)
libc.memfd_create(b"x", 0)
`
	r := f.tainted.Run(t, append(rig.User(), "python3", "-c", calls, name)...)
	log := rig.Must(t, "dmesg")
	if r.Exit != 0 || strings.Contains(log, name) {
		t.Errorf("%s: %s", r, log)
	}
	for _, says := range []string{"remap_file_pages", "setitimer", "32-bit capabilities", "v2 capabilities", "oom_adj", "SOCK_PACKET"} {
		if !strings.Contains(log, says) {
			t.Errorf("nothing about %s: %s", says, log)
		}
	}
}

// talks: a tainted container goes on talking to itself on loopback.
func talks(t *testing.T, f *fixture) {
	if r := f.tainted.Run(t, "python3", "-c", insidePy, "own", strconv.Itoa(f.world.Port()), "text"); !strings.Contains(r.Stdout, "talks to itself") {
		t.Error(r)
	}
}

// ends: connections within a container that were half closed before the taint go on.
func ends(t *testing.T, f *fixture) {
	s := f.sensor.Guard(t, "older")
	p := s.Start(t, "python3", "-c", insidePy, "older", strconv.Itoa(f.world.Port()), "text")
	if p.WaitLine("opened", rig.Late) == "" {
		t.Fatal(p.Wait(t))
	}
	f.sensor.Taint(t, "older", "secret")
	p.Input(t, "\n")
	if r := p.Wait(t); !strings.Contains(r.Stdout, "ends as ever") {
		t.Error(r)
	}
}

// listed: a tainted container talks to the peers that its policy lists, also when a service makes its directory anew; and they answer. Sealed, it talks to none.
// otherDirectory: a directory that has the number of a listed peer's, on the same device, is not that one if it was made at another time,
// as in a subvolume of btrfs, which the kernels of these VMs do not have.
func otherDirectory(t *testing.T, f *fixture) {
	port := strconv.Itoa(f.world.Port())
	out := f.world.Agent.Start(t, "python3", "-c", outsidePy, "listed", port, "text", peer)
	if out.WaitLine("listens", rig.Late) == "" {
		t.Fatal(out.Wait(t))
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Dir(peer), &st); err != nil {
		t.Fatal(err)
	}
	peers, err := ebpf.LoadPinnedMap("/sys/fs/bpf/weir/unix_peers", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer peers.Close()
	// another changes the generation, in the upper half of the directory, where the lower one is its number
	another := func() (changed bool) {
		key, value := make([]byte, peers.KeySize()), make([]byte, peers.ValueSize())
		for entries := peers.Iterate(); entries.Next(&key, &value); {
			if bytes.Contains(key, append([]byte(peer), 0)) && binary.NativeEndian.Uint32(value[8:]) == uint32(st.Ino) {
				value[12] ^= 1
				if err := peers.Put(key, value); err != nil {
					t.Fatal(err)
				}
				changed = true
			}
		}
		return changed
	}
	refused := func() bool {
		return strings.Contains(f.tainted.Run(t, "python3", "-c", insidePy, "listed", port, "text", peer).Stdout, "refused EPERM")
	}
	rig.Eventually(t, "the directory is known", another)
	if !refused() {
		t.Error("where another directory is listed, the peer may be asked")
	}
	if !another() || refused() {
		t.Error("where its own is listed, it may not")
	}
	out.Input(t, "\n")
	if r := out.Wait(t); !strings.Contains(r.Stdout, "\nheard") {
		t.Error(r)
	}
}

func listed(t *testing.T, f *fixture) {
	for _, at := range []struct{ how, path string }{{"listed", peer}, {"listed", peer}, {"listed", linked}, {"listed_datagram", peer}} {
		port := strconv.Itoa(f.world.Port())
		out := f.world.Agent.Start(t, "python3", "-c", outsidePy, at.how, port, "text", at.path)
		if out.WaitLine("listens", rig.Late) == "" {
			t.Fatal(out.Wait(t))
		}
		var in rig.Result
		for until := time.Now().Add(rig.Late); time.Now().Before(until); {
			if in = f.tainted.Run(t, "python3", "-c", insidePy, at.how, port, "text", at.path); !strings.Contains(in.Stdout, "refused EPERM") {
				break
			}
		}
		out.Input(t, "\n")
		r := out.Wait(t)
		if !strings.Contains(r.Stdout, "\nheard") || (at.how == "listed_datagram" && !strings.Contains(in.Stdout, "answered")) {
			t.Errorf("%s %s: %s: %s", at.how, at.path, r, in)
		}
	}
	f.sensor.Must(t, "mode", "seal", "--why", "test")
	defer f.sensor.Must(t, "mode", "enforce", "--why", "test")
	for _, how := range []string{"listed", "listed_datagram"} {
		port := strconv.Itoa(f.world.Port())
		out := f.world.Agent.Start(t, "python3", "-c", outsidePy, how, port, "text", peer)
		if out.WaitLine("listens", rig.Late) == "" {
			t.Fatal(out.Wait(t))
		}
		in := f.tainted.Run(t, "python3", "-c", insidePy, how, port, "text", peer)
		out.Input(t, "\n")
		if r := out.Wait(t); strings.Contains(r.Stdout, "\nheard") || !strings.Contains(in.Stdout, "refused EPERM") {
			t.Errorf("sealed: %s: %s: %s", how, r, in)
		}
	}
}

// keyring: a tainted process gives its keyring to no parent: one in the container may end just then, and leave its place to somebody
// outside.
func keyring(t *testing.T, f *fixture) {
	for s, want := range map[*rig.Session]string{f.control: "gives 0 None\nanother keyring True\n", f.tainted: "gives -1 ENOMEM\nanother keyring False\n"} {
		if r := s.Run(t, "setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "python3", "-c", insidePy, "keyring", "0", "text"); r.Stdout != want {
			t.Errorf("%s: %s", s.Name, r)
		}
	}
}

// devices: a tainted container opens none but those that say nothing to anybody, whatever they are called (B48, B81, B126).
func devices(t *testing.T, f *fixture) {
	dir := rig.Must(t, "mktemp -d -p /dev")
	dir = strings.TrimSpace(dir)
	defer rig.Must(t, "rm -r "+dir)
	rig.Must(t, "(sed '/^$/,$d' /proc/devices; printf '508 nvidia-uvm\n507 kfd\n\nBlock devices:\n509 nvidia-uvm\n') >/run/devices && mount --bind /run/devices /proc/devices")
	defer rig.Must(t, "umount /proc/devices")
	rig.Eventually(t, "the sensor knows the drivers of processors", func() bool {
		settings, err := ebpf.LoadPinnedMap("/sys/fs/bpf/weir/config", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer settings.Close()
		value, err := settings.LookupBytes(uint32(0))
		return err == nil && bytes.Contains(value, binary.NativeEndian.AppendUint16(binary.NativeEndian.AppendUint16(nil, 508), 507))
	})
	const opens = `
import os, sys
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        print("opened")
    except OSError as e:
        print(e.strerror)
`
	type device struct {
		name, number string
		open         bool
	}
	all := []device{
		{"null", "1 3", true}, {"random", "1 8", true}, {"hwrng", "10 183", true}, {"kmsg", "1 11", false}, {"mem", "1 1", false}, {"ttyS65", "4 129", false}, {"tty", "5 0", true}, {"ptmx", "5 2", true},
		{"lp9", "6 9", false}, {"tun", "10 200", true}, {"uinput", "10 223", false}, {"fuse", "10 229", true}, {"kvm", "10 232", false}, {"vhost-net", "10 238", false},
		{"rfkill", "10 242", false}, {"event99", "13 163", false}, {"ppp", "108 0", false}, {"pcmC9D0p", "116 240", false}, {"pts", "137 99", true}, {"ttyACM9", "166 9", false},
		{"ttyUSB9", "188 9", false}, {"usb", "189 999", false}, {"nvidia9", "195 9", true}, {"renderD129", "226 129", true}, {"card9", "226 9", false}, {"console", "5 1", false}, {"disk", "b 259 99", false}, {"accel9", "261 9", true},
		{"vhost-vdpa-0", "509 77", false}, {"tap77", "240 77", false}, {"nvidia-uvm", "509 78", false}, {"kfd", "510 79", false}, {"of-a-processor", "508 77", true}, {"of-another", "507 0", true},
	}
	script, argv := "set -e\n", []string{"python3", "-c", opens}
	for _, d := range all {
		path := dir + "/" + d.name
		kind := "c "
		if strings.HasPrefix(d.number, "b ") {
			kind = ""
		}
		script += "mknod -m 666 " + path + " " + kind + d.number + "\n"
		argv = append(argv, path)
	}
	rig.Must(t, script)
	said := func(s *rig.Session) []string {
		t.Helper()
		r := s.Run(t, argv...)
		lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
		if r.Exit != 0 || len(lines) != len(all) {
			t.Fatal(r)
		}
		return lines
	}
	free, tainted := said(f.control), said(f.tainted)
	for i, d := range all {
		const refused = "Operation not permitted"
		if free[i] == refused {
			t.Errorf("%s without a guard: %s", d.name, free[i])
		}
		if (tainted[i] == refused) == d.open {
			t.Errorf("%s: %s", d.name, tainted[i])
		}
	}
}

// switches: root in a guarded container cannot turn off what calls the programs, not even while clean. Where root outside does, the
// sensor says so, guards no new session, and is in force again afterwards.
func switches(t *testing.T, f *fixture) {
	const file = "/proc/sys/kernel/ftrace_enabled"
	raw := []string{"python3", "-c", "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"}
	off := []string{"sh", "-c", "echo 0 >" + file}
	defer rig.Must(t, "echo 1 >"+file)
	if r := f.sensor.Guard(t, "switches").Run(t, off...); r.Exit == 0 || rig.Must(t, "cat "+file) != "1\n" {
		t.Errorf("a guarded session turns it off: %s", r)
	}
	if r := f.tainted.Run(t, raw...); r.Exit == 0 {
		t.Errorf("a packet socket: %s", r)
	}
	before := len(f.sensor.Events(t))
	if r := f.control.Run(t, off...); r.Exit != 0 {
		t.Errorf("without a guard: %s", r)
	}
	if r := f.tainted.Run(t, raw...); r.Exit != 0 {
		t.Errorf("the programs are called all the same: %s", r)
	}
	const says = "kernel.ftrace_enabled is 0"
	rig.Eventually(t, "the log says that it is off", func() bool {
		return slices.ContainsFunc(f.sensor.Events(t)[before:], func(e event.Event) bool { return strings.Contains(e.Message, says) })
	})
	for _, command := range []string{"weir doctor", "weir guard -q true"} {
		if r := f.control.Run(t, "sh", "-c", command); r.Exit == 0 || !strings.Contains(r.Stdout+r.Stderr, says) {
			t.Errorf("%s: %s", command, r)
		}
	}
	rig.Must(t, "echo 1 >"+file)
	if r := f.tainted.Run(t, raw...); r.Exit == 0 {
		t.Errorf("a packet socket afterwards: %s", r)
	}
}

// own: a tainted container goes on doing to its own processes and objects what it may not do to others'.
func own(t *testing.T, f *fixture) {
	user := []string{"setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"}
	if r := f.tainted.Run(t, append(user, "python3", "-c", insidePy, "tells_its_own", "77", "text")...); r.Stdout != "tells its own\n" {
		t.Error(r)
	}
	// sandboxes such as bubblewrap do this
	if r := f.tainted.Run(t, append(user, "unshare", "--map-root-user", "--net", "sh", "-c", "ip link set lo up && ip tuntap add t0 mode tap && ip link set t0 up && ip addr add 10.99.0.1/24 dev t0")...); r.Exit != 0 {
		t.Error(r)
	}
}
