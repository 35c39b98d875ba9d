package runner

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"weir/internal/control"
)

// modelFD is where the proxy of a model finds its socket.
const modelFD = 3

// Model is the proxy of a model that is to run.
type Model struct {
	Setup  any      // as internal/modelproxy has it
	Listen string   // unix:PATH, or an address of loopback
	As     Identity // root stays as it is
}

// RunModel runs the proxy of a model as a process of its own without rights, until ctx or the proxy ends, and closes its socket. What it refuses goes to the
// sensor, or where none runs, to the operator.
func (w World) RunModel(ctx context.Context, m Model, socket *os.File) error {
	defer socket.Close()
	cmd := exec.Command(self, "model-proxy-init")
	cmd.Args[0] = "weir"
	cmd.Dir, cmd.Env, cmd.Stderr = "/", []string{}, w.Stderr
	cmd.ExtraFiles = []*os.File{socket}
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
	socket.Close()                                        // whoever connects when it is dead is refused
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
	return fmt.Errorf("the model's proxy has ended: %w", cmp.Or(exitOf(err), errors.New("it was not asked to")))
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

// Socket opens what the proxy listens on. On a Unix socket only the user may connect.
func (m Model) Socket(of Identity) (socket *os.File, addr net.Addr, err error) {
	var l net.Listener
	at := m.Listen
	if path, ok := strings.CutPrefix(at, "unix:"); ok {
		if !filepath.IsAbs(path) {
			return nil, nil, control.Errorf(control.Usage, "--listen %s: give an absolute path", at)
		}
		l, err = control.ListenUnix(path, 0o600)
		if err == nil {
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			if os.Geteuid() == 0 {
				err = os.Lchown(path, int(of.uid), -1)
			}
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

// ModelURL stands for the address of the session's model in its command line and its environment.
const ModelURL = "{weir-model}"

func filled(list []string, url string) []string {
	list = slices.Clone(list)
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], ModelURL, url)
	}
	return list
}

// startModel runs the proxy beside a session. A session whose proxy has died goes on, and reaches no model.
func (w World) startModel(ctx context.Context, m Model, of Identity) (stop func(), err error) {
	socket, _, err := m.Socket(of)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.RunModel(ctx, m, socket); err != nil {
			w.Say("weir guard: %v: the session reaches no model", err)
		}
	})
	return func() {
		cancel()
		running.Wait()
		os.Remove(strings.TrimPrefix(m.Listen, "unix:")) // the next listener would replace it
	}, nil
}

// startRelay starts the session's own end of its way to the model: a process in its cgroup, with its rights, that listens on loopback there and passes all on to the
// proxy's socket. It knows nothing that the session does not.
func (w World) startRelay(dir *os.File, s Session) (url string, stop func(), err error) {
	wait, release, err := os.Pipe()
	if err != nil {
		return "", nil, fmt.Errorf("make pipe: %w", err)
	}
	defer release.Close()
	cmd := s.born(dir, wait, []string{self, "guard-relay", strings.TrimPrefix(s.Model.Listen, "unix:")})
	cmd.SysProcAttr.Setpgid = true // a terminal's Ctrl-C is for the command
	cmd.Env, cmd.Stderr = []string{}, w.Stderr
	in, err := cmd.StdinPipe() // it ends with this process, however that ends
	if err != nil {
		wait.Close()
		return "", nil, fmt.Errorf("start the way to the model: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	wait.Close()
	if err != nil {
		return "", nil, fmt.Errorf("start the way to the model: %w", err)
	}
	stop = func() {
		in.Close()
		cmd.Process.Kill() // it may have ended
		cmd.Wait()
	}
	if _, err = release.Write([]byte{1}); err == nil {
		url, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("start the way to the model: %w", err)
	}
	return "http://" + strings.TrimSpace(url), stop, nil
}

// maxRelayed is how many connections to the model a session may have at once.
const maxRelayed = 64

// Relay listens on loopback, tells out where, and joins each connection with one to the Unix socket at path, until in ends.
func Relay(path string, in io.Reader, out io.Writer) error {
	var c net.ListenConfig
	c.SetMultipathTCP(false) // which is refused once tainted (B16)
	l, err := c.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen on loopback: %w", err)
	}
	defer l.Close()
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return fmt.Errorf("tell where: %w", err)
	}
	go func() {
		io.Copy(io.Discard, in) // however it ends
		l.Close()
	}()
	room := make(chan struct{}, maxRelayed)
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // no descriptors are left
			continue
		}
		room <- struct{}{}
		go func() {
			defer func() { <-room }()
			defer c.Close()
			to, err := net.Dial("unix", path)
			if err != nil {
				return // who connected sees the end
			}
			defer to.Close()
			var both sync.WaitGroup
			both.Go(func() { pass(to.(*net.UnixConn), c) })
			both.Go(func() {
				pass(c.(*net.TCPConn), to)
				c.Close() // it has one request
			})
			both.Wait()
		}()
	}
}

// pass copies until from ends, and tells to of it.
func pass(to interface {
	io.Writer
	CloseWrite() error
}, from io.Reader) {
	io.Copy(to, from)
	to.CloseWrite() // it may have gone
}
