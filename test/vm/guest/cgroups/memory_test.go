//go:build vmguest

package cgroups

import (
	"strconv"
	"testing"

	"weir/test/vm/guest/rig"
)

// leaves fills what room the kernel has for what it knows of processes, then moves a child out, which connects.
const leaves = `
import os, signal, socket, sys
out, host, port, text = sys.argv[1:]
for _ in range(1000):
    if os.fork() == 0:
        while True:
            signal.pause()
child = os.fork()
if child == 0:
    with open(out, "w") as f:
        f.write("0")
    socket.create_connection((host, int(port)), 5).send(text.encode())
    os._exit(0)
os.waitpid(child, 0)
os.killpg(0, signal.SIGKILL)
`

// TestB123NoMemory: without memory for what is known of a process, it does not leave its container unseen either (B123).
func TestB123NoMemory(t *testing.T) {
	world := rig.NewOutside(t)
	mkdir(t, "/aside")
	mkdir(t, "/small")
	sensor := rig.StartSensor(t, policy)
	sensor.Stop(t)
	rig.Must(t, "weir detach --force") // so that its maps are made anew
	sensor.Cgroup = root + "/small"
	sensor.Restart(t)
	s := sensor.Guard(t, "leaves", "--taint", "secret")
	sensor.Kill(t)
	rig.Must(t, "echo 0 >"+root+"/small/memory.max")
	to := world.Raw(t)
	s.Run(t, "setsid", "-w", "python3", "-c", leaves, root+"/aside/cgroup.procs", rig.World4, strconv.Itoa(to.Port), to.Text)
	to.Nothing(t)
}
