//go:build vmguest

package session

import (
	"strings"
	"syscall"
	"testing"

	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

// forOne: an approval lets out the one who was asked about, and nothing that another one adds or does with it (F01, B15, B30, G16).
func (f *fixture) forOne(t *testing.T) {
	t.Run("corked", func(t *testing.T) { f.adds(t, corks) })
	t.Run("deferred", func(t *testing.T) { f.adds(t, defers) })
	t.Run("claimed_by_another_user", func(t *testing.T) {
		f.claims(t, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
	})
	t.Run("claimed_by_another_program", f.claimsAsAnother)
	t.Run("B88_memory_beside_a_file_that_refuses", f.hidesMemory)
	t.Run("B124_traced_thread", f.tracedThread)
	t.Run("claimed_while_traced", func(t *testing.T) { f.claims(t, "strace", "-o", "/dev/null", "-e", "none") })
}

// corks has a datagram wait in the socket for more.
const corks = `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def begin(to, text):
    s.sendto(text, socket.MSG_MORE, to)
def add(to, text):
    s.sendto(text, to)
def end(text):
    s.setsockopt(socket.IPPROTO_UDP, 1, 0) # UDP_CORK
`

// defers has a connect wait in the socket for what goes into its first packet.
const defers = `
import socket
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, 30, 1) # TCP_FASTOPEN_CONNECT
s.setsockopt(socket.IPPROTO_TCP, 34, 1) # TCP_FASTOPEN_NO_COOKIE
def begin(to, text):
    s.connect(to)
def add(to, text):
    s.sendto(text, socket.MSG_FASTOPEN, to)
def end(text):
    s.send(text)
`

// shares has a child begin to send, adds another text, which it says is for loopback, and has the child end, which lives on with its grant.
const shares = `
import os, sys
host, port, text, other = sys.argv[1:]
own, childs = socket.socketpair()
if os.fork() == 0:
    begin((host, int(port)), text.encode())
    childs.send(b"begun")
    childs.recv(9)
    end(text.encode())
    childs.recv(9)
own.recv(9)
try:
    add(("127.0.0.1", int(port)), other.encode())
    print("added", flush=True)
except OSError as e:
    print(e.strerror, flush=True)
own.send(b"added")
sys.stdin.readline()
`

// adds: what somebody adds to an approved send on a socket that he shares does not go with it (B15).
func (f *fixture) adds(t *testing.T, how string) {
	to, s := f.raw(t), f.guard(t, "secret")
	other := to.intruder()
	p := s.Start(t, "python3", "-c", how+shares, rig.World4, itoa(to.Port), to.Text, other.Text)
	f.sensor.Approve(t, to.asked(t).ID)
	if said := p.WaitLine("", rig.Late); said != "Operation not supported" {
		t.Errorf("want what is added refused, got %q", said)
	}
	to.Arrived(t)
	f.world.Nothing(t, rig.Marks{}, other.Text, 0)
	p.Signal(t, syscall.SIGKILL)
	p.Wait(t)
}

// writes sends a datagram with a call that cannot be held; when it may not, and is told to, it becomes another command.
const writes = `
import os, socket, sys
host, port, text, *command = sys.argv[1:]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((host, int(port)))
try:
    os.pwritev(s.fileno(), [text.encode()], -1)
except PermissionError:
    print("refused", flush=True)
    if not sys.stdin.readline():
        sys.exit(3)
    os.execvp(command[0], command)
print("sent")
`

func (to target) writes(command ...string) []string {
	return append([]string{"python3", "-c", writes, rig.World4, itoa(to.Port), to.Text}, command...)
}

// claimable runs a command that is refused, and approves it, so that the next try may claim that.
func (to target) claimable(t *testing.T, s *rig.Session, argv []string) *rig.Proc {
	t.Helper()
	p := begins(t, s, "refused", argv...)
	q := to.asked(t)
	to.f.sensor.Approve(t, q.ID)
	to.f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Grant && e.Question == q.ID && e.Grant.Kind == "claim"
	})
	return p
}

// claims: an approval is not claimed by the same command of somebody else, who has the user or the tracer that with says. A tracer is
// older than the taint (B30, G16).
func (f *fixture) claims(t *testing.T, with ...string) {
	to, s := f.raw(t), f.guard(t)
	argv := to.writes()
	other := begins(t, s, "begun", append(append(with, "sh", "-c", `echo begun; read x; exec "$@"`, "sh"), argv...)...)
	f.sensor.Taint(t, s.Name, "secret")
	p := to.claimable(t, s, argv)
	p.Close(t)
	p.Wait(t)
	other.Input(t, "\n")
	if other.WaitLine("refused", rig.Late) == "" {
		t.Errorf("it was not refused: %s", other.Wait(t))
	}
	to.Nothing(t)
	if !t.Failed() {
		f.sensor.Deny(t, to.asked(t).ID)
		succeeded(t, s.Start(t, argv...), "sent")
		to.Arrived(t)
	}
}

// claimsAsAnother: nor by the same process, once that runs another program (B30, G16).
func (f *fixture) claimsAsAnother(t *testing.T) {
	to, s := f.raw(t), f.guard(t, "secret")
	other := to.intruder()
	argv := to.writes(other.Egress("udp-sendto")...)
	p := to.claimable(t, s, argv)
	p.Input(t, "\n")
	other.gotNothing(t, p)
	refused(t, p)
	if !t.Failed() {
		succeeded(t, s.Start(t, argv...), "sent")
		to.Arrived(t)
	}
}

// hidesMemory: who has a command's memory open cannot hide that by another descriptor, of a file system of its own that lets nobody look
// (B88).
func (f *fixture) hidesMemory(t *testing.T) {
	rig.Must(t, "modprobe -a fuse overlay && chmod 666 /dev/fuse")
	to, s := f.raw(t), f.guard(t)
	victim := s.Start(t, append(rig.User(), "egress", "victim", "-say", "untouched", "-to", to.To)...)
	at := strings.Fields(victim.WaitLine("victim ", rig.Late))
	if len(at) != 3 {
		t.Fatal(victim.Wait(t))
	}
	p := begins(t, s, "opened", append(rig.User(), "python3", "-c", rig.Never, "/mnt", "nothing", at[1], at[2], to.Text)...)
	f.sensor.Taint(t, s.Name, "secret")
	victim.Input(t, "\n")
	q := to.asked(t)
	p.Input(t, "\n")
	if p.WaitLine("written", rig.Late) == "" {
		t.Fatal(p.Wait(t))
	}
	f.sensor.Approve(t, q.ID)
	refused(t, victim)
	to.Nothing(t)
}

// threads connects, when it is told to; a second thread does nothing.
const threads = `
import socket, sys, threading
t = threading.Thread(target=threading.Event().wait, daemon=True)
t.start()
print("thread", t.native_id, flush=True)
host, port, text = sys.argv[1:]
sys.stdin.readline()
try:
    socket.create_connection((host, int(port))).send(text.encode())
except PermissionError:
    print("EPERM")
    sys.exit(3)
`

const seizes = `
import ctypes, sys
if ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0:
    print("begun", flush=True)
sys.stdin.readline()
`

// tracedThread: who traces a thread of a command that is not its first decides as well what the command does (B124).
func (f *fixture) tracedThread(t *testing.T) {
	to, s := f.raw(t), f.guard(t)
	p := s.Start(t, "python3", "-c", threads, rig.World4, itoa(to.Port), to.Text)
	at := strings.Fields(p.WaitLine("thread ", rig.Late))
	if len(at) != 2 {
		t.Fatal(p.Wait(t))
	}
	tracer := begins(t, s, "begun", "python3", "-c", seizes, at[1])
	f.sensor.Taint(t, s.Name, "secret")
	p.Input(t, "\n")
	f.sensor.Approve(t, to.asked(t).ID)
	if p.WaitLine("EPERM", rig.Late) == "" {
		t.Error("it is not refused")
	}
	tracer.Signal(t, syscall.SIGKILL) // what it traces cannot end before
	refused(t, p)
	to.Nothing(t)
}
