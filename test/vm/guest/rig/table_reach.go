//go:build vmguest

package rig

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Hears is a program for python3 -c, with how it hears, a key, an address, a port and a text. It says "listens" and its number, then
// sends what it has heard, and says so; or "refused".
const Hears = `
import ctypes, errno, os, resource, signal, socket, sys, time
how, key, host, port, say = sys.argv[1:]
key, libc = int(key), ctypes.CDLL(None, use_errno=True)
CREATE, GETALL = 0o1600, 13
def must(result):
    if result < 0:
        print("refused", os.strerror(ctypes.get_errno()), flush=True)
        sys.exit(1)
    return result
def until(look):
    while True:
        found = look()
        if found:
            return found
        time.sleep(0.01)
libc.shmat.restype, libc.shmat.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
buffer = ctypes.create_string_buffer(4096)
gets = {
    "message": lambda flags: libc.msgget(key, flags),
    "memory": lambda flags: libc.shmget(key, 4096, flags),
    "semaphore": lambda flags: libc.semget(key, 64, flags),
}
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
kind, _, whose = how.partition("-")
if kind in gets and not whose:
    at = must(gets[kind](CREATE))
print("listens", os.getpid(), flush=True)
if kind in gets and whose: # another process makes it
    def find():
        at = gets[kind](0)
        return at + 1 if at >= 0 or ctypes.get_errno() == errno.ENOENT else must(at)
    at = until(find) - 1
if kind == "signal":
    signal.sigwaitinfo([40])
    text = say.encode()
elif kind == "value":
    text = b""
    while b".end" not in text:
        text += (signal.sigwaitinfo([40]).si_status & 0xffffffff).to_bytes(4, "little")
elif kind == "message":
    size = must(libc.msgrcv(at, buffer, 4088, 0, 0))
    text = buffer.raw[8:8 + size]
elif kind == "memory":
    mapped = libc.shmat(at, None, 0)
    if mapped == ctypes.c_void_p(-1).value:
        must(-1)
    until(lambda: b".end" in ctypes.string_at(mapped, 4096))
    text = ctypes.string_at(mapped, 4096)
elif kind == "semaphore":
    until(lambda: must(libc.semctl(at, 0, GETALL, buffer)) == 0 and b".end" in buffer.raw)
    text = buffer.raw
elif kind == "limit":
    text = b"limit.%d.end" % until(lambda: max(resource.getrlimit(resource.RLIMIT_FSIZE)[0], 0))
elif kind == "key":
    until(lambda: say in open("/proc/keys").read())
    text = say.encode()
text = text.split(b"\0")[0]
print("heard", text.decode(), flush=True)
try:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(text, (host, int(port)))
except PermissionError:
    pass # it is guarded itself
`

// Way is how a process is heard by another one of its user (B67).
type Way struct {
	Name  string
	Hears string // how the other one hears it; ending in -theirs: of what it makes itself
	Words string // of the attack program; {pid} is the other one's number
	Late  bool   // opens something first

	// Own: it also works between processes of a container that is tainted. Theirs are the user's, and the session's keyring the one
	// that it got from outside.
	Own bool
}

// Ways are all of them that must be closed.
func Ways() []Way {
	return []Way{
		{Name: "sigqueue", Hears: "value", Words: "sigqueue -pid {pid}", Own: true},
		{Name: "sigqueue-thread", Hears: "value", Words: "tgsigqueue -pid {pid}", Own: true},
		{Name: "kill", Hears: "signal", Words: "kill -pid {pid}", Own: true},
		{Name: "tgkill", Hears: "signal", Words: "tgkill -pid {pid}", Own: true},
		{Name: "pidfd", Hears: "signal", Words: "pidfd-kill -pid {pid}", Own: true},
		{Name: "pidfd-older", Hears: "signal", Words: "pidfd-kill -pid {pid} -wait open", Late: true, Own: true},
		{Name: "message", Hears: "message", Words: "message -n {port}", Own: true},
		{Name: "message-older", Hears: "message", Words: "message -n {port} -wait open", Late: true, Own: true},
		{Name: "message-own", Hears: "message-theirs", Words: "message -n {port}", Own: true},
		{Name: "memory", Hears: "memory", Words: "memory -n {port}", Own: true},
		{Name: "memory-own", Hears: "memory-theirs", Words: "memory -n {port}", Own: true},
		{Name: "semaphore", Hears: "semaphore", Words: "semaphore -n {port}", Own: true},
		{Name: "semaphore-own", Hears: "semaphore-theirs", Words: "semaphore -n {port}", Own: true},
		{Name: "limit", Hears: "limit", Words: "limit -pid {pid} -n {port}", Own: true},
		{Name: "key", Hears: "key", Words: "key"},
		{Name: "key-session", Hears: "key", Words: "key -by session -after 3s"},
		{Name: "key-own", Hears: "key", Words: "key -by process -after 3s", Own: true},
		{Name: "key-own-uid", Hears: "key", Words: "key -by process -after 3s -then _uid.", Own: true}, // as a user's keyring is called
	}
}

// Hear starts who hears a way in a session, and returns its number.
func (w Way) Hear(t testing.TB, s *Session, port int, say string) (p *Proc, pid string) {
	t.Helper()
	p = s.Start(t, "python3", "-c", Hears, w.Hears, strconv.Itoa(port), World4, strconv.Itoa(port), say)
	line := strings.Fields(p.WaitLine("listens ", Late))
	if len(line) != 2 {
		t.Fatalf("%s: nobody listens: %s", w.Name, p.Wait(t))
	}
	return p, line[1]
}

// reachAttempts are heard by a process outside, which says it to the world (B67).
func reachAttempts() []Attempt {
	var all []Attempt
	for _, w := range Ways() {
		var hears *Proc
		theirs, network := strings.HasSuffix(w.Hears, "-theirs"), ""
		if strings.HasPrefix(w.Name, "key-") {
			theirs, network = true, "none" // nobody is refused: the kernel makes a keyring for it, and the key is not shown
		}
		all = append(all, Attempt{
			ID: "B67", Name: w.Name, Argv: egress(w.Words), Indirect: true, Opens: w.Late, Quiet: theirs, Network: network,
			Prepare: func(t testing.TB, e *Env) {
				if w.Hears == "limit" {
					e.Text = fmt.Sprintf("limit.%d.end", e.Port)
				}
				hears, e.Words["pid"] = w.Hear(t, e.Outside.Agent, e.Port, e.Text)
				e.Helpers = append(e.Helpers, hears)
			},
			Ended: func(t testing.TB, e *Env, r Result) {
				if r.Exit != 0 {
					return
				}
				if strings.HasSuffix(w.Hears, "-theirs") {
					hears.Wait(t) // it is refused, or has told
				} else if !theirs {
					e.Outside.WaitGot(e.Text, Late) // with the sensor it does not come
				}
			},
		})
	}
	return append(all, Attempt{
		ID: "B67", Name: "core", Argv: shell("printf {say} >/proc/self/comm; kill -ABRT $$"), Indirect: true, Quiet: true, Network: "none",
		// stands for apport and the like, which the kernel starts outside for each program that dies so
		Prepare: func(t testing.TB, e *Env) {
			e.Text = fmt.Sprintf("core.%d", e.Port) // 15 bytes at most
			e.Words["say"] = e.Text
			script := fmt.Sprintf("#!/bin/bash\ncat >/dev/null\necho \"$1\" >/dev/udp/%s/%d\n", World4, e.Port)
			if err := os.WriteFile("/run/core-handler", []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			Must(t, "echo '|/run/core-handler %e' >/proc/sys/kernel/core_pattern")
		},
		Ended: func(t testing.TB, _ *Env, _ Result) { Must(t, "echo core >/proc/sys/kernel/core_pattern") },
	})
}
