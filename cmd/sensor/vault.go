package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"weir/internal/bridge/wire"
	"weir/internal/linux"
	"weir/internal/redact"
	"weir/internal/runner"
	"weir/internal/vault"
)

// vaultFlags are those of all its commands.
type vaultFlags struct{ file, key string }

func (s *system) vaultCommand() *cobra.Command {
	var f vaultFlags
	cmd := s.group(&cobra.Command{
		Use:   "vault",
		Short: "keep secrets for agents' HTTP requests; no secret enters a container",
		Long: `Keeps secrets in an encrypted file. An agent in a container asks for an HTTP request with a key's name, and gets the
answer; the secret is added on the host and taken out of the answer. It is for HTTP APIs: no command in a container gets a secret.

The vault is opened by --key-file, by systemd's credentials weir-vault-key or weir-vault-passphrase, by vault.key beside it, or by a
passphrase that is asked for. It is the one in the state directory of the sensor that runs (weir run --state), which is asked for it.`,
		PersistentPreRunE: s.ofSensor("vault", "vault.age"),
	})
	cmd.PersistentFlags().StringVar(&f.file, "vault", wire.State+"/vault.age", "the vault's `file`, if not the sensor's own")
	cmd.PersistentFlags().StringVar(&f.key, "key-file", "", "`file` of the key that opens it; weir vault set makes one that is not there")
	cmd.AddCommand(s.vaultSet(&f), s.vaultList(&f), s.vaultRemove(&f), s.vaultRotate(&f), s.vaultBind(&f), s.vaultTest(&f))
	return cmd
}

// open finds what opens the vault; create makes what is not there yet.
func (s *system) openVault(f *vaultFlags, create bool) (*vault.Vault, error) {
	if err := vault.NoDumps(); err != nil {
		return nil, err
	}
	if create {
		for _, file := range []string{f.file, f.key} {
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				return nil, fmt.Errorf("make the vault's folder: %w", err)
			}
		}
	}
	if f.key != "" {
		if _, err := os.Stat(f.key); errors.Is(err, fs.ErrNotExist) && create {
			if err := vault.MakeFile(f.key); err != nil {
				return nil, err
			}
			s.note("weir vault: made the key %s: keep a copy of it in a safe place", f.key)
		}
		k, err := vault.FromFile(f.key)
		return vault.New(f.file, k), err
	}
	k, found, err := vault.FromCredentials(runner.Getenv(s.environ, "CREDENTIALS_DIRECTORY"))
	if found || err != nil {
		return vault.New(f.file, k), err
	}
	beside := filepath.Join(filepath.Dir(f.file), "vault.key")
	if _, err := os.Stat(beside); err == nil {
		k, err := vault.FromFile(beside)
		return vault.New(f.file, k), err
	}
	_, err = os.Stat(f.file)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh && !create {
		return nil, fmt.Errorf("there is no vault at %s: make one with weir vault set KEY", f.file)
	}
	passphrase, err := s.askHidden("passphrase of the vault", fresh)
	if err != nil {
		return nil, fmt.Errorf("open vault: %w: give --key-file", err)
	}
	defer clear(passphrase)
	k, err = vault.FromPassphrase(passphrase)
	return vault.New(f.file, k), err
}

// askHidden reads a line from the terminal without showing it; twice: it has to be typed alike again.
func (s *system) askHidden(what string, twice bool) ([]byte, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("there is no terminal to ask on")
	}
	defer tty.Close()
	ask := func(prompt string) ([]byte, error) {
		fmt.Fprintf(tty, "%s: ", prompt)
		line, err := term.ReadPassword(int(tty.Fd()))
		fmt.Fprintln(tty)
		return line, err
	}
	first, err := ask(what)
	if err != nil || !twice {
		return first, err
	}
	again, err := ask(what + ", again")
	defer clear(again)
	if err == nil && !bytes.Equal(first, again) {
		err = errors.New("the two are not alike")
	}
	return first, err
}

// readSecret takes a secret from standard input, or asks for it; one newline at its end is not part of it.
func (s *system) readSecret() ([]byte, error) {
	if term.IsTerminal(int(s.stdin.Fd())) {
		return s.askHidden("secret", true)
	}
	data := make([]byte, redact.Most+3)
	n, err := io.ReadFull(s.stdin, data)
	if err == nil {
		clear(data)
		return nil, fmt.Errorf("read secret: standard input has more than %d bytes", redact.Most)
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(data[:n], []byte("\n")), []byte("\r")), nil
}

// withSecret reads a secret, and clears it after use.
func (s *system) withSecret(use func(secret []byte) error) error {
	secret, err := s.readSecret()
	if err != nil {
		return err
	}
	defer clear(secret)
	return use(secret)
}

// bindingFlags are those that say where a secret may go.
type bindingFlags struct {
	binding vault.Binding
	ca      string
}

func (b *bindingFlags) add(f *pflag.FlagSet) {
	f.StringSliceVar(&b.binding.Hosts, "host", nil, "`host` that it may go to, with its port where that is not 443; none: the first that a person approves")
	f.StringSliceVar(&b.binding.Methods, "method", nil, "`method` that it may be used with; none: all")
	f.StringSliceVar(&b.binding.Paths, "path", nil, "`path` that it may be used below; none: all")
	f.StringSliceVar(&b.binding.Networks, "network", nil, "private `address` or network that it may reach, such as 10.1.0.0/16")
	f.StringVar(&b.binding.Scheme, "scheme", "", "how it is sent, whatever an agent asks for: "+strings.Join(vault.Schemes(), ", ")+"; none: as asked, and a person is asked about custom")
	f.StringVar(&b.binding.Header, "header", "", "`name` of the header that it is sent in, with the scheme custom")
	f.StringVar(&b.ca, "ca", "", "`file` of certificates that sign the server's, in place of the system's")
}

func (b *bindingFlags) read() (vault.Binding, error) {
	if b.ca == "" {
		return b.binding, nil
	}
	data, err := linux.ReadInput(b.ca, 1<<20)
	if err != nil {
		return vault.Binding{}, fmt.Errorf("read CA: %w", err)
	}
	b.binding.CA = string(data)
	return b.binding, nil
}

func (s *system) vaultSet(f *vaultFlags) *cobra.Command {
	var b bindingFlags
	var user string
	cmd := &cobra.Command{
		Use:     "set KEY",
		Short:   "add a secret, from standard input or from a prompt",
		Example: "  weir vault set github-token --host api.github.com < token",
		Args:    keyAlone("a key: a name for the secret, not the secret"),
		RunE: func(_ *cobra.Command, args []string) error {
			binding, err := b.read()
			if err != nil {
				return err
			}
			return s.changeVault(f, true, args[0], "set", func(v *vault.Vault) error {
				return s.withSecret(func(secret []byte) error { return v.Set(args[0], user, secret, binding) })
			})
		},
	}
	b.add(cmd.Flags())
	cmd.Flags().StringVar(&user, "user", "", "`name` for basic authorization, with the secret as its password")
	return cmd
}

// keyAlone takes one argument, which what names, of commands that read a secret.
func keyAlone(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) > 1 {
			return usage(cmd, "unexpected argument: the secret is read from standard input or asked for, and never taken from the command line")
		}
		return args(1, 1, what)(cmd, given)
	}
}

// changeVault opens the vault, making one if create is set, changes it, and says that what is done to key.
func (s *system) changeVault(f *vaultFlags, create bool, key, what string, change func(*vault.Vault) error) error {
	v, err := s.openVault(f, create)
	if err != nil {
		return err
	}
	if err := change(v); err != nil {
		return err
	}
	return s.answer(map[string]any{"key": key, "done": what}, func(w io.Writer) { fmt.Fprintf(w, "%s: %s\n", key, what) })
}

func (s *system) vaultList(f *vaultFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "list the keys and where their secrets may go; no secret is shown",
		Args:  args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			v, err := s.openVault(f, false)
			if err != nil {
				return err
			}
			list, err := v.List()
			if err != nil {
				return err
			}
			return s.answer(list, func(w io.Writer) {
				rows := [][]string{}
				for _, i := range list {
					b := i.Binding
					rows = append(rows, []string{i.Key, orNone(b.Hosts), orNone(b.Methods), orNone(b.Paths), orNone(b.Networks), cmp.Or(b.Header, b.Scheme, "-"), i.Changed.Format(time.DateOnly)})
				}
				table(w, []string{"KEY", "HOSTS", "METHODS", "PATHS", "NETWORKS", "SENT AS", "CHANGED"}, rows)
			})
		},
	}
}

func (s *system) vaultRemove(f *vaultFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "rm KEY",
		Short: "remove a secret; the backup vault.age.bak still has it",
		Args:  args(1, 1, "a key"),
		RunE: func(_ *cobra.Command, args []string) error {
			return s.changeVault(f, false, args[0], "removed", func(v *vault.Vault) error { return v.Remove(args[0]) })
		},
	}
}

func (s *system) vaultRotate(f *vaultFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "rotate KEY",
		Short: "replace a secret, from standard input or from a prompt; its binding stays",
		Args:  keyAlone("a key"),
		RunE: func(_ *cobra.Command, args []string) error {
			return s.changeVault(f, false, args[0], "rotated", func(v *vault.Vault) error {
				return s.withSecret(func(secret []byte) error { return v.Rotate(args[0], secret) })
			})
		},
	}
}

func (s *system) vaultBind(f *vaultFlags) *cobra.Command {
	var b bindingFlags
	var free bool
	cmd := &cobra.Command{
		Use:     "bind KEY --host HOST…",
		Short:   "say where a secret may go, and replace what was said before",
		Example: "  weir vault bind github-token --host api.github.com --method GET --path /repos",
		Args:    args(1, 1, "a key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !free && len(b.binding.Hosts)+len(b.binding.Methods)+len(b.binding.Paths)+len(b.binding.Networks)+len(b.ca+b.binding.Scheme+b.binding.Header) == 0 {
				return usage(cmd, "give --host, --method, --path, --network, --scheme, --header or --ca, or --free to bind it to nothing")
			}
			binding, err := b.read()
			if err != nil {
				return err
			}
			return s.changeVault(f, false, args[0], "bound", func(v *vault.Vault) error { return v.Bind(args[0], binding) })
		},
	}
	b.add(cmd.Flags())
	cmd.Flags().BoolVar(&free, "free", false, "bind it to nothing: the first host that a person approves binds it")
	return cmd
}

func (s *system) vaultTest(f *vaultFlags) *cobra.Command {
	var scheme, header, proxy string
	cmd := &cobra.Command{
		Use:     "test KEY URL",
		Short:   "make one GET request with a secret, as for an agent, and print its status",
		Example: "  weir vault test github-token https://api.github.com/user",
		Args:    args(2, 2, "a key and a URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			input, err := json.Marshal(vault.Request{URL: args[1], Key: args[0], Scheme: scheme, HeaderName: header, Reason: "weir vault test"})
			if err != nil {
				return fmt.Errorf("read arguments: %w", err)
			}
			r, err := vault.ParseRequest(input)
			if err != nil {
				return err
			}
			v, err := s.openVault(f, false)
			if err != nil {
				return err
			}
			if _, err := v.List(); err != nil { // told in full here, which an agent is not
				return err
			}
			got, err := (&vault.Fetcher{Vault: v, Proxy: func() string { return proxy }}).Fetch(cmd.Context(), "", nil, r)
			if err != nil {
				return err
			}
			return s.answer(map[string]any{"key": args[0], "status": got.Status, "proto": got.Proto, "bytes": got.Bytes, "address": got.Address}, func(w io.Writer) {
				fmt.Fprintf(w, "%s: status %d over %s, %d bytes, from %s\n", args[0], got.Status, got.Proto, got.Bytes, got.Address)
			})
		},
	}
	cmd.Flags().StringVar(&scheme, "scheme", "", "how the secret is sent: "+strings.Join(vault.Schemes(), ", ")+"; none: as the key says, or bearer")
	cmd.Flags().StringVar(&header, "header", "", "`name` of the header, with --scheme custom")
	cmd.Flags().StringVar(&proxy, "proxy", "", "`URL` of a proxy, as vault.proxy in the policy names one")
	return cmd
}
