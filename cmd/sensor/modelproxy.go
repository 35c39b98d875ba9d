package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/modelproxy"
	"weir/internal/runner"
	"weir/internal/vault"
)

// modelOptions say what a model's proxy takes and sends.
type modelOptions struct {
	vault     vaultFlags
	key       string // of the vault
	tokenFile string
	ca        string
	setup     modelproxy.Setup
}

func (s *system) modelProxyCommand() *cobra.Command {
	var o modelOptions
	var listen, as, of string
	cmd := &cobra.Command{
		Use:   "model-proxy --listen ADDRESS --key KEY | --token-file FILE",
		Short: "pass requests with the user's own key on to a model, and no others",
		Long: `Serves the way of guarded containers to their model: it speaks TLS to one upstream, and lets through only the API's paths, and only requests that carry the
user's credential. With --key the vault's key is added here, so that it never enters the container: clients send a stand-in, which is printed, in its place.
With --token-file clients send what is in the file: a key or token alone, or the file in which Claude Code or Codex keeps a login.
Both are read once, at the start. Under root it runs as another user without rights.`,
		Example: `  sudo weir model-proxy --listen unix:/run/model.sock --key anthropic
  sudo weir model-proxy --listen 127.0.0.1:8087 --api openai --token-file /home/alice/.codex/auth.json`,
		Args:              args(0, 0, ""),
		PersistentPreRunE: s.ofSensor("vault", "vault.age"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if listen == "" || o.key == "" && o.tokenFile == "" {
				return usage(cmd, "give --listen, and --key or --token-file")
			}
			if _, ok := modelproxy.Find(o.setup.API); !ok {
				return usage(cmd, "--api %s: accepted are %s", o.setup.API, strings.Join(modelproxy.Names(), ", "))
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return s.serveModel(ctx, &o, listen, as, of)
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "", "`address` to serve: unix:/a/path, or a port of loopback such as 127.0.0.1:8087")
	f.StringVar(&o.setup.API, "api", "anthropic", "the upstream's `kind`: "+strings.Join(modelproxy.Names(), ", "))
	f.StringVar(&as, "as", "nobody", "the `user` that it runs as, when root starts it")
	f.StringVar(&of, "for", "", "the `user` whose processes may use the Unix socket (default: who called sudo)")
	o.add(cmd)
	completeFlag(cmd, "api", modelproxy.Names())
	return cmd
}

// add adds the flags that weir guard has as well.
func (o *modelOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.vault.file, "vault", wire.State+"/vault.age", "the vault's `file`, if not the sensor's own")
	f.StringVar(&o.vault.key, "key-file", "", "`file` of the key that opens the vault")
	f.StringVar(&o.key, "key", "", "the vault's `key` that is sent to the upstream; it must be bound to its host")
	f.StringVar(&o.tokenFile, "token-file", "", "`file` of what requests must carry; with --key a stand-in, else what is sent to the upstream")
	f.StringVar(&o.setup.Upstream, "upstream", "", "https `URL` of the upstream (default: the maker's own)")
	f.StringVar(&o.ca, "ca", "", "`file` of certificates that sign the upstream's, in place of the system's")
	f.BoolVar(&o.setup.Files, "files", false, "open the paths that store files and batches in the account, too")
	f.BoolVar(&o.setup.Fetch, "fetch", false, "let requests have the upstream contact addresses that they name (MCP servers, pages, images), and use stored prompts and skills")
}

// given says whether there is any flag of it.
func (o *modelOptions) given() bool {
	return o.key != "" || o.tokenFile != "" || o.ca != "" || o.setup.Upstream != ""
}

// prepare reads what the proxy has to know. standIn says that clients have to be told what to send.
func (s *system) prepare(o *modelOptions) (standIn bool, err error) {
	api, _ := modelproxy.Find(o.setup.API)
	if o.setup.Upstream == "" {
		o.setup.Upstream = api.Upstream
	}
	u, err := url.Parse(o.setup.Upstream)
	if err != nil {
		return false, errors.New("--upstream is no URL")
	}
	if o.key != "" {
		v, err := s.openVault(&o.vault, false)
		if err != nil {
			return false, err
		}
		secret, ca, err := v.Lend(o.key, u.Host)
		if err != nil {
			return false, err
		}
		defer clear(secret)
		o.setup.Send, o.setup.CA = string(secret), ca
	}
	if o.ca != "" {
		data, err := linux.ReadInput(o.ca, 1<<20)
		if err != nil {
			return false, fmt.Errorf("read CA: %w", err)
		}
		o.setup.CA = string(data)
	}
	if o.tokenFile == "" {
		o.setup.Expect = "weir-" + rand.Text()
		standIn = true
	} else if o.setup.Expect, err = readToken(o.tokenFile); err != nil {
		return false, err
	}
	_, err = o.setup.Proxy(func(modelproxy.Code, int) {})
	return standIn, err
}

// serveModel runs the proxy until a signal ends it.
func (s *system) serveModel(ctx context.Context, o *modelOptions, listen, as, of string) error {
	if err := vault.NoDumps(); err != nil {
		return err
	}
	standIn, err := s.prepare(o)
	if err != nil {
		return err
	}
	w := s.world()
	user, err := w.Identify(of)
	if err != nil {
		return err
	}
	m := runner.Model{Listen: listen}
	if s.euid == 0 {
		if m.As, err = w.Identify(as); err != nil {
			return err
		}
		if m.As.Root() {
			return errors.New("--as root: the proxy needs no rights: name another user")
		}
		if strings.HasPrefix(listen, "unix:") {
			uid := user.UID()
			o.setup.User = &uid
		}
	}
	socket, addr, err := m.Socket(user)
	if err != nil {
		return err
	}
	defer socket.Close()
	m.Setup = o.setup
	told := map[string]string{"listen": addr.String()}
	if standIn {
		told["key"] = o.setup.Expect
	}
	err = s.answer(told, func(w io.Writer) {
		fmt.Fprintf(w, "listens at %s\n", event.Visible(addr.String()))
		if standIn {
			fmt.Fprintf(w, "clients send the key %s\n", o.setup.Expect)
		}
	})
	if err != nil {
		return err
	}
	return w.RunModel(ctx, m, socket)
}

// readToken reads a file that has a key or a token alone, or a login of Claude Code or Codex.
func readToken(file string) (string, error) {
	data, err := linux.ReadInput(file, 64<<10)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	defer clear(data)
	text := strings.TrimSpace(string(data))
	if !strings.HasPrefix(text, "{") {
		if strings.ContainsAny(text, " \t\r\n") {
			return "", fmt.Errorf("read token: %s has more than one word", file)
		}
		return text, nil
	}
	var login struct {
		Claude struct {
			Token string `json:"accessToken"`
		} `json:"claudeAiOauth"`
		Codex struct {
			Token string `json:"access_token"`
		} `json:"tokens"`
		Key string `json:"OPENAI_API_KEY"`
	}
	if json.Unmarshal(data, &login) != nil { // its error would quote the file
		return "", fmt.Errorf("read token: %s is no JSON", file)
	}
	for _, token := range []string{login.Claude.Token, login.Codex.Token, login.Key} {
		if token != "" {
			return token, nil
		}
	}
	return "", fmt.Errorf("read token: %s has no login of Claude Code or Codex", file)
}

// modelInitCommand is the process without rights that weir model-proxy starts.
func (s *system) modelInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:         "model-proxy-init",
		Hidden:      true,
		Args:        args(0, 0, ""),
		Annotations: map[string]string{"as": "weir model-proxy"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(vault.NoDumps(), unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); err != nil {
				return err
			}
			l, err := runner.ModelListener()
			if err != nil {
				return err
			}
			return modelproxy.Run(cmd.Context(), s.stdin, s.stdout, l)
		},
	}
}
