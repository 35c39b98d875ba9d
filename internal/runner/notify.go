package runner

import (
	"bufio"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What the sensor writes to weir run's pipe: a byte once it is ready, then, if
// systemd watches it, one with each turn of its heart.
const (
	readyByte = 1
	aliveByte = 2
)

// What systemd is told (sd_notify(3)).
const (
	nowReady    = "READY=1"
	nowStopping = "STOPPING=1"
	stillAlive  = "WATCHDOG=1"
)

// relay tells who started weir run what the sensor says, until that ends. It stops slow when the sensor is ready.
func (w World) relay(sensor io.Reader, readyFD int, slow *time.Timer) {
	watched := w.getenv("WATCHDOG_USEC") != ""
	r := bufio.NewReader(sensor)
	for {
		b, err := r.ReadByte()
		if err != nil {
			return
		}
		if b == readyByte {
			slow.Stop()
			w.Say("weir run: ready: what the policy guards is guarded from now on")
			if readyFD > 2 {
				f := os.NewFile(uintptr(readyFD), "ready")
				f.Write([]byte{readyByte}) // nobody may wait for it any more
				f.Close()
			}
			w.notify(nowReady)
		} else if watched {
			w.notify(stillAlive)
		}
	}
}

// notify tells systemd, if it wants to know.
func (w World) notify(state string) {
	path := w.getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if strings.HasPrefix(path, "@") {
		path = "\x00" + path[1:]
	}
	conn, err := net.Dial("unixgram", path)
	if err == nil {
		_, err = conn.Write([]byte(state + "\n"))
		conn.Close()
	}
	if err != nil {
		w.Say("weir run: tell systemd: %v", err)
	}
}

// Pulse is the sensor's end of the pipe to weir run. Its zero value tells nobody.
type Pulse struct {
	fd      int
	watched bool
}

// NewPulse takes the pipe's descriptor. environ says whether systemd wants to hear
// that the sensor is alive.
func NewPulse(fd int, environ []string) Pulse {
	syscall.CloseOnExec(fd)
	usec, err := strconv.ParseUint(Getenv(environ, "WATCHDOG_USEC"), 10, 64)
	watched := err == nil && usec > 0
	// a weir run that stands still must not stop the sensor
	if err := unix.SetNonblock(fd, true); err != nil {
		watched = false
	}
	return Pulse{fd, watched}
}

// Ready says that all is in force. It is called once, before Alive.
func (p Pulse) Ready() { p.write(readyByte) }

// Alive says that the sensor still goes round.
func (p Pulse) Alive() {
	if p.watched {
		p.write(aliveByte)
	}
}

func (p Pulse) write(b byte) {
	if p.fd > 0 {
		unix.Write(p.fd, []byte{b}) // its reader may be gone, and then nobody waits
	}
}
