package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"weir/internal/control"
)

// modelFD is where the proxy of a model finds its socket.
const modelFD = 3

// Model is the proxy of a model that is to run.
type Model struct {
	Setup  any      // as internal/modelproxy has it
	Socket *os.File // that listens
	As     Identity // root stays as it is
}

// RunModel runs the proxy of a model as a process of its own without rights, until ctx or the proxy ends. What it refuses goes to the sensor, or where
// none runs, to the operator.
func (w World) RunModel(ctx context.Context, m Model) error {
	cmd := exec.Command(self, "model-proxy-init")
	cmd.Args[0] = "weir"
	cmd.Dir, cmd.Env, cmd.Stderr = "/", []string{}, w.Stderr
	cmd.ExtraFiles = []*os.File{m.Socket}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is for the command
	if !m.As.Root() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: m.As.uid, Gid: m.As.gid}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start the model's proxy: %w", err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start the model's proxy: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the model's proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { in.Close() }) // upon which it ends
	defer stop()
	if err := json.NewEncoder(in).Encode(m.Setup); err != nil {
		in.Close()
		return errors.Join(fmt.Errorf("start the model's proxy: %w", err), cmd.Wait())
	}
	w.tellRefusals(context.WithoutCancel(ctx), out)
	err = cmd.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the model's proxy has ended: %w", errors.Join(exitOf(err)))
}

func (w World) tellRefusals(ctx context.Context, lines io.Reader) {
	d := json.NewDecoder(lines)
	for {
		var r control.ModelRefusal
		if d.Decode(&r) != nil {
			return // it has ended
		}
		err := w.client().ModelRefused(ctx, r)
		if errors.Is(err, control.ErrNotRunning) {
			w.Say("weir model-proxy: refused: %s, process %d", r.Code, r.PID)
		} else if err != nil {
			w.Say("weir model-proxy: refused: %s, process %d: tell the sensor: %v", r.Code, r.PID, err)
		}
	}
}

// ModelSocket listens at unix:PATH, where only the user may connect, or on an address of loopback.
func ModelSocket(at string, of Identity) (socket *os.File, addr net.Addr, err error) {
	var l net.Listener
	if path, ok := strings.CutPrefix(at, "unix:"); ok {
		if !filepath.IsAbs(path) {
			return nil, nil, control.Errorf(control.Usage, "--listen %s: give an absolute path", at)
		}
		l, err = control.ListenUnix(path, 0o600)
		if err == nil {
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			err = os.Chown(path, int(of.uid), -1)
		}
	} else {
		host, port, _ := net.SplitHostPort(at)
		if _, number := strconv.ParseUint(port, 10, 16); number != nil || net.ParseIP(host) == nil || !net.ParseIP(host).IsLoopback() {
			return nil, nil, control.Errorf(control.Usage, "--listen %s: give unix:/a/path, or an address of loopback with a port, such as 127.0.0.1:8087", at)
		}
		l, err = net.Listen("tcp", at)
	}
	if l != nil {
		defer l.Close()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("listen for the model's clients: %w", err)
	}
	socket, err = l.(interface{ File() (*os.File, error) }).File()
	return socket, l.Addr(), err
}

// ModelListener is the socket that RunModel handed over.
func ModelListener() (net.Listener, error) {
	f := os.NewFile(modelFD, "socket")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("take the socket: %w: weir model-proxy starts this", err)
	}
	return l, nil
}

// UID is the user's.
func (i Identity) UID() uint32 { return i.uid }
