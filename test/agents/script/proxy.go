package script

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Key is what the model behind a proxy knows.
const Key = "sk-own-0123456789abcdef"

// Proxy is weir model-proxy between an agent and its model.
type Proxy struct {
	Weir    string   // the program
	API     string   // of its --api
	Refused []string // what it told of
	Came    int      // requests that reached the model with the key
	Foreign int      // with anything else

	ca []byte
	mu sync.Mutex
}

func (p *Proxy) note(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range []string{r.Header.Get("X-Api-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")} {
		switch key {
		case "":
		case Key:
			p.Came++
		default:
			p.Foreign++
		}
	}
}

// start runs it before an upstream, and returns its address.
func (p *Proxy) start(upstream string) (address string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "proxy")
	if err != nil {
		return "", nil, err
	}
	ca, key := filepath.Join(dir, "ca"), filepath.Join(dir, "key")
	if err := errors.Join(os.WriteFile(ca, p.ca, 0o600), os.WriteFile(key, []byte(Key), 0o600)); err != nil {
		return "", nil, err
	}
	cmd := exec.Command(p.Weir, "--run", dir, "model-proxy", "--listen", "127.0.0.1:0", "--api", p.API, "--token-file", key, "--ca", ca, "--upstream", upstream)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	at, ok := strings.CutPrefix(strings.TrimSpace(line), "listens at ")
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = cmd.Wait()
		p.Refused = strings.Split(strings.TrimSpace(said.String()), "\n")
		os.RemoveAll(dir)
	}
	if !ok {
		stop()
		return "", nil, errors.Join(err, errors.New(said.String()))
	}
	return "http://" + at, stop, nil
}
