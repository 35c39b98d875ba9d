package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"weir/internal/vault"
)

const (
	phrase     = "correct horse battery"
	typed      = "ghp_0123456789abcdefghij"
	asksPhrase = "passphrase of the vault: "
	asksAgain  = "passphrase of the vault, again: "
)

// onTerminal runs weir vault as the leader of a terminal of its own. lines are typed, each when its prompt is there; stdin is the
// terminal, unless a text is given.
func onTerminal(t *testing.T, dir, stdin string, args []string, lines ...[2]string) (shown, out string, err error) {
	t.Helper()
	far, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	defer tty.Close()
	cmd := exec.Command("weir", append([]string{"vault", "--vault", filepath.Join(dir, "vault.age")}, args...)...)
	var stdout bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, &stdout, tty
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	cmd.Env = append(os.Environ(), "CREDENTIALS_DIRECTORY=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	var seen bytes.Buffer
	watch := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer watch.Stop()
	buf := make([]byte, 1024)
	for from := 0; ; {
		if len(lines) > 0 {
			if i := strings.Index(seen.String()[from:], lines[0][0]); i >= 0 {
				from += i + len(lines[0][0])
				for end := time.Now().Add(time.Minute); echoes(t, far) && time.Now().Before(end); { // the prompt comes before the echo goes
					time.Sleep(time.Millisecond)
				}
				if _, err := io.WriteString(far, lines[0][1]+"\n"); err != nil {
					t.Fatal(err)
				}
				lines = lines[1:]
				continue
			}
		}
		n, err := far.Read(buf)
		seen.Write(buf[:n])
		if err != nil { // nobody has the terminal any more
			break
		}
	}
	err = cmd.Wait()
	if len(lines) > 0 {
		t.Errorf("%v: %q was not asked: %q", args, lines[0][0], seen.String())
	}
	return seen.String(), stdout.String(), err
}

// echoes says whether a terminal shows what is typed.
func echoes(t *testing.T, terminal *os.File) bool {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return m.Lflag&unix.ECHO != 0
}

// V9: a passphrase is asked for on the terminal, twice for a new vault, and never shown; so is a secret.
func TestVaultPassphraseOnTerminalV9(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, stdin string
		args        []string
		lines       [][2]string
		fails       bool
		says, out   string
	}{
		{"no vault yet", "", []string{"list"}, nil, true, "there is no vault at", ""},
		{"not typed alike", typed, []string{"set", "gh"}, [][2]string{{asksPhrase, phrase}, {asksAgain, phrase + "x"}}, true, "the two are not alike", ""},
		{"too short", typed, []string{"set", "gh"}, [][2]string{{asksPhrase, "short"}, {asksAgain, "short"}}, true, "less than 8 characters", ""},
		{"a new vault", typed + "\n", []string{"set", "gh"}, [][2]string{{asksPhrase, phrase}, {asksAgain, phrase}}, false, "", ""},
		{"wrong", "", []string{"list"}, [][2]string{{asksPhrase, "wrong horse"}}, true, "passphrase", ""},
		{"a secret that is typed", "", []string{"set", "other"}, [][2]string{{asksPhrase, phrase}, {"secret: ", typed}, {"secret, again: ", typed}}, false, "", ""},
		{"both are there", "", []string{"list"}, [][2]string{{asksPhrase, phrase}}, false, "", "other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			shown, out, err := onTerminal(t, dir, c.stdin, c.args, c.lines...)
			if (err != nil) != c.fails || !strings.Contains(shown, c.says) || !strings.Contains(out, c.out) {
				t.Errorf("%v: shown %q, written %q", err, shown, out)
			}
			for _, hidden := range []string{phrase, "wrong horse", typed} {
				if strings.Contains(shown+out, hidden) {
					t.Errorf("%q was shown: %q %q", hidden, shown, out)
				}
			}
		})
	}
	data, err := os.ReadFile(filepath.Join(dir, "vault.age"))
	if err != nil || !bytes.HasPrefix(data, []byte("age-encryption.org/v1\n-> scrypt ")) {
		t.Errorf("the vault begins with %.40q, %v", data, err)
	}
	cmd := exec.Command("weir", "vault", "--vault", filepath.Join(dir, "vault.age"), "list")
	cmd.Env = append(os.Environ(), "CREDENTIALS_DIRECTORY=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "there is no terminal to ask on: give --key-file") {
		t.Errorf("without a terminal: %v %s", err, out)
	}
}

// V9: systemd's credentials open the vault, and nobody is asked.
func TestVaultCredentialsV9(t *testing.T) {
	for name, make := range map[string]func(dir string) error{
		vault.CredentialKey: func(dir string) error { return vault.MakeFile(filepath.Join(dir, vault.CredentialKey)) },
		vault.CredentialPassphrase: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, vault.CredentialPassphrase), []byte(phrase+"\n"), 0o400)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, credentials := t.TempDir(), t.TempDir()
			if err := make(credentials); err != nil {
				t.Fatal(err)
			}
			run := func(from, stdin string, args ...string) (string, error) {
				cmd := exec.Command("weir", append([]string{"vault", "--vault", filepath.Join(dir, "vault.age")}, args...)...)
				cmd.Env = append(os.Environ(), "CREDENTIALS_DIRECTORY="+from)
				cmd.Stdin = strings.NewReader(stdin)
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			if out, err := run(credentials, typed, "set", "gh"); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			if out, err := run(credentials, "", "list"); err != nil || !strings.Contains(out, "gh") {
				t.Errorf("%v %s", err, out)
			}
			if out, err := run("", "", "list"); err == nil || !strings.Contains(out, "no terminal") {
				t.Errorf("without the credential: %v %s", err, out)
			}
			other := t.TempDir()
			if err := vault.MakeFile(filepath.Join(other, vault.CredentialKey)); err != nil {
				t.Fatal(err)
			}
			if out, err := run(other, "", "list"); err == nil || strings.Contains(out, typed) {
				t.Errorf("with another credential: %v %s", err, out)
			}
		})
	}
}
