//go:build vmguest

package egress

import (
	"fmt"
	"strings"
	"testing"

	"weir/test/vm/guest/rig"
)

// Sends each line of its input eight times from each of its sockets, and says how often it could.
const sender = `
import socket, sys
four, six, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
loose = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
loose6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
print("ready", flush=True)
for line in sys.stdin:
    text, sent = line.strip().encode(), 0
    for send in [lambda: loose.sendto(text, (four, port)), lambda: loose6.sendto(text, (six, port))]:
        for _ in range(8):
            try:
                send()
                sent += 1
            except ConnectionRefusedError:
                sent += 1
            except PermissionError:
                pass
    print(text.decode(), sent, flush=True)
`

// remembered: what the kernel remembers of its judgements holds until the first change of what they stand on, and not one packet
// longer (B20, B21, B31).
func remembered(t *testing.T, world *rig.Outside, sensor *rig.Sensor) {
	port := world.Port()
	world.World.Listen(t, "udp", fmt.Sprintf("[::]:%d", port))
	allow := policy
	for _, prefix := range []string{rig.World4 + "/32", rig.World6 + "/128"} {
		if !strings.Contains(allow, "allow:") {
			allow += "allow:\n"
		}
		allow += fmt.Sprintf("  - prefix: %q\n    protocol: udp\n    ports: [%d]\n", prefix, port)
	}
	session := sensor.Guard(t, "remembered")
	p := session.Start(t, "python3", "-c", sender, rig.World4, rig.World6, fmt.Sprint(port))
	if p.WaitLine("ready", rig.Late) == "" {
		t.Fatalf("sender: %v", p.Wait(t))
	}
	const all = 16
	for i, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"clean", func() {}, all},
		{"tainted", func() { sensor.Taint(t, "remembered", "secret") }, 0},
		{"listed", func() { sensor.Policy(t, allow) }, all},
		{"still listed", func() {}, all},
		{"listed no more", func() { sensor.Policy(t, policy) }, 0},
		{"listed again", func() { sensor.Policy(t, allow) }, all},
		{"sealed", func() { sensor.Must(t, "mode", "seal", "--why", "test") }, 0},
		{"enforced", func() { sensor.Must(t, "mode", "enforce", "--why", "test") }, all},
		{"cleared", func() { sensor.Policy(t, policy); sensor.Untaint(t, "remembered", "secret") }, all},
		{"tainted again", func() { sensor.Taint(t, "remembered", "corruption") }, 0},
	} {
		step.do()
		text := fmt.Sprintf("remembered.%d.%d.end", port, i)
		p.Input(t, text+"\n")
		if got, want := strings.TrimSpace(p.WaitLine(text, rig.Late)), fmt.Sprintf("%s %d", text, step.want); got != want {
			t.Errorf("%s: %q, want %q", step.name, got, want)
		}
		if step.want == 0 {
			world.Nothing(t, rig.Marks{}, text, 0)
		} else if !world.WaitGot(text, rig.Late) {
			t.Errorf("%s: nothing arrived", step.name)
		}
	}
	p.Close(t)
	p.Wait(t)
}
