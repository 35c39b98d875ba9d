package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"weir/internal/control"
	"weir/internal/policy"
)

const (
	readyTime = time.Minute // for a sensor that weir guard starts; one that fails is told at once
	stopTime  = 15 * time.Second
)

// Where a sensor that Guard starts writes.
const (
	Events    = "/var/log/weir/events.jsonl"
	SensorLog = "/var/log/weir/sensor.log" // what it says that is no event
)

// ownSensor is a sensor that weir guard started.
type ownSensor struct {
	cmd  *exec.Cmd
	done chan error
}

// ensureSensor starts a sensor unless one runs; nil: one runs.
func (w World) ensureSensor(ctx context.Context, policyPath string) (*ownSensor, error) {
	if _, err := w.client().Status(ctx); !errors.Is(err, control.ErrNotRunning) {
		return nil, err
	}
	own, err := w.startSensor(ctx, policyPath)
	if err == nil {
		return own, nil
	}
	// Another weir guard may have been faster, and its sensor still be starting.
	if !strings.Contains(err.Error(), control.ErrRunning.Error()) {
		return nil, err
	}
	for deadline := time.Now().Add(readyTime); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		if _, other := w.client().Status(ctx); other == nil {
			return nil, nil
		}
	}
	return nil, err
}

// startSensor starts weir run in a session of its own and waits until it is ready.
func (w World) startSensor(ctx context.Context, policyPath string) (*ownSensor, error) {
	policyPath, err := w.ownPolicy(policyPath)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(SensorLog), 0o700); err != nil {
		return nil, fmt.Errorf("start a sensor: %w", err)
	}
	log, err := os.OpenFile(SensorLog, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start a sensor: %w", err)
	}
	defer log.Close()
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("start a sensor: %w", err)
	}
	events, err := os.OpenFile(Events, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start a sensor: %w", err)
	}
	defer events.Close()
	ready, childReady, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start a sensor: %w", err)
	}
	defer ready.Close()
	cmd := exec.Command(self, "run", "--ready-fd=3", "--run="+w.RunDir)
	if policyPath != "" {
		cmd.Args = append(cmd.Args, "--policy="+policyPath)
	}
	cmd.Args[0] = "weir"
	cmd.Dir = "/"
	cmd.Env = without(w.Environ, "NOTIFY_SOCKET")
	cmd.Stdout, cmd.Stderr = events, log
	cmd.ExtraFiles = []*os.File{childReady}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	childReady.Close()
	if err != nil {
		return nil, fmt.Errorf("start a sensor: %w", err)
	}
	own := &ownSensor{cmd: cmd, done: make(chan error, 1)}
	go func() { own.done <- cmd.Wait() }()
	isReady := make(chan bool, 1)
	go func() {
		n, _ := ready.Read(make([]byte, 1))
		isReady <- n == 1
	}()
	select {
	case ok := <-isReady:
		if ok {
			return own, nil
		}
		err = fmt.Errorf("start a sensor: %s", lastLine(log, begin))
	case <-time.After(readyTime):
		err = fmt.Errorf("start a sensor: not ready after %v: %s: look at %s", readyTime, lastLine(log, begin), SensorLog)
	case <-ctx.Done():
		err = ctx.Err()
	}
	own.stop()
	return nil, err
}

// ownPolicy is the policy of a sensor that weir guard starts: path's, or the
// default, with its events in a file that weir events finds.
func (w World) ownPolicy(path string) (string, error) {
	text := ""
	if path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", fmt.Errorf("find policy: %w", err)
		}
		if text, err = ReadPolicy(abs); err != nil {
			return "", err
		}
		if p, err := policy.Parse(abs, []byte(text)); err != nil || p.Events.File != "" {
			return abs, err
		}
		path = abs
		text = strings.TrimSuffix(text, "\n") + "\n"
	}
	text += "events:\n  file: " + Events + "\n"
	if _, err := policy.Parse(path, []byte(text)); err != nil {
		return path, nil // it says something about events itself: they go to standard output
	}
	own := filepath.Join(w.RunDir, fmt.Sprintf("guard-policy-%d.yaml", os.Getpid())) // a sensor loads its file again when it changes
	if err := os.MkdirAll(w.RunDir, 0o700); err != nil {
		return "", fmt.Errorf("write policy: %w", err)
	}
	if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write policy: %w", err)
	}
	return own, nil
}

// lastLine is what the sensor said last, from begin of its log on.
func lastLine(log *os.File, begin int64) string {
	data, err := io.ReadAll(io.NewSectionReader(log, begin, 1<<20))
	if err != nil {
		return err.Error()
	}
	data = bytes.TrimSpace(data)
	line := string(data[bytes.LastIndexByte(data, '\n')+1:])
	if line == "" {
		return "it said nothing"
	}
	return strings.TrimPrefix(line, "weir run: ")
}

// stopSensor ends the sensor unless something else is guarded by now.
func (w World) stopSensor(ctx context.Context, own *ownSensor) {
	list, err := w.client().Containers(ctx)
	for _, c := range list {
		if c.Live && err == nil {
			w.Say("weir guard: the sensor goes on (pid %d) since %s is live: stop it with kill %d", own.cmd.Process.Pid, c.ID, own.cmd.Process.Pid)
			return
		}
	}
	if err := own.stop(); err != nil {
		w.Say("weir guard: stop the sensor: %v: look at %s", err, SensorLog)
	}
}

func (o *ownSensor) stop() error {
	o.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case err := <-o.done:
		return err
	case <-time.After(stopTime):
		return fmt.Errorf("pid %d goes on after %v", o.cmd.Process.Pid, stopTime)
	}
}

// ReadPolicy returns the text of a policy file without mistakes.
func ReadPolicy(path string) (string, error) {
	if _, err := policy.Load(path); err != nil {
		return "", err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read policy: %w", err)
	}
	return string(data), nil
}
