//go:build vmguest

package bridge

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/gate"
	"weir/test/vm/guest/rig"
)

const home = "/home/agent"

// originals are files that are started by themselves, and an agent's settings.
var originals = []string{
	home + "/.bashrc", home + "/.profile", home + "/.gitconfig", home + "/.config/autostart/a.desktop", home + "/.config/systemd/user/a.service", home + "/.ssh/authorized_keys",
	home + "/.claude/settings.json", home + "/.codex/hooks.json", "/var/spool/cron/crontabs/agent",
}

// house makes a user's home as it was. The project's directory stays the same: tests are in it.
func house(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(home)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "project" {
			err = errors.Join(err, os.RemoveAll(home+"/"+e.Name()))
		}
	}
	err = errors.Join(err, os.MkdirAll(home+"/project", 0o755), os.MkdirAll(home+"/.cache", 0o755))
	for _, path := range originals {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(original), 0o644))
	}
	err = errors.Join(err, os.Chown("/var/spool/cron/crontabs/agent", 1000, 1000), filepath.WalkDir(home, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, 1000, 1000))
	}))
	if err != nil {
		t.Fatal(err)
	}
}

const original = "# original\n"

// changed is what differs from what house made: files that are no longer what they were, and new ones that would be started or read.
func changed() (found []string) {
	for _, path := range originals {
		if data, err := os.ReadFile(path); err != nil || string(data) != original {
			found = append(found, path)
		}
	}
	for _, path := range []string{".bash_profile", ".bash_login", ".claude-2", ".config/systemd/user/evil.service", ".claude/settings.local.json"} {
		if _, err := os.Lstat(home + "/" + path); err == nil {
			found = append(found, path)
		}
	}
	return found
}

// startups are ways to leave something that runs later, outside.
var startups = map[string]string{
	"append":          "echo evil >> ~/.bashrc",
	"new file":        "echo evil > ~/.bash_profile",
	"rename over":     "echo evil > /tmp/evil-$$; mv -f /tmp/evil-$$ ~/.config/autostart/a.desktop",
	"new unit":        "echo evil > ~/.config/systemd/user/evil.service",
	"remove":          "rm -f ~/.config/systemd/user/a.service",
	"move parent":     "mv ~/.claude ~/.claude-2; mkdir ~/.claude; echo '{}' > ~/.claude/settings.json",
	"hook settings":   `echo '{"disableAllHooks":true}' > ~/.claude/settings.json`,
	"local settings":  `echo '{"disableAllHooks":true}' > ~/.claude/settings.local.json`,
	"codex's hooks":   "rm ~/.codex/hooks.json",
	"git's settings":  "git config --global core.hooksPath /tmp/x || echo evil >> ~/.gitconfig",
	"cron":            "echo '* * * * * evil' > /var/spool/cron/crontabs/agent",
	"by a link":       "ln -sf ~/.bashrc /tmp/link-$$; echo evil > /tmp/link-$$",
	"by a hard link":  "ln ~/.profile ~/project/hard-$$ && echo evil > ~/project/hard-$$",
	"by /proc":        "echo evil > /proc/self/root" + home + "/.bashrc",
	"user namespace":  "unshare -Ur sh -c 'echo evil > " + home + "/.bashrc'",
	"mount namespace": "unshare -Urm sh -c 'mount --bind " + home + " /tmp && echo evil > /tmp/.bashrc'",
}

// TestB52Presets: what works in an ordinary session leaves nothing in one of a preset, and work goes on in the project.
func TestB52Presets(t *testing.T) {
	rig.Must(t, "mkdir -p /run/weir-hooks")
	f := &fixture{world: rig.NewOutside(t)}
	f.sensor = rig.StartSensor(t, policy)
	house(t)
	t.Chdir(home + "/project")
	plain := f.sensor.Guard(t, "plain", "--user", "agent")
	for name, script := range startups {
		house(t)
		r := plain.Run(t, "bash", "-c", "cd ~; "+script)
		if changed() == nil {
			t.Errorf("%s does nothing without a preset either: %s", name, r)
		}
	}
	for _, preset := range []string{"claude", "codex", "strict"} {
		t.Run("B52_"+preset, func(t *testing.T) {
			house(t)
			s := f.sensor.Guard(t, "preset-"+preset, "--user", "agent", "--preset", preset)
			for name, script := range startups {
				if preset != "claude" && !slices.Contains([]string{"append", "hook settings", "codex's hooks", "cron"}, name) {
					continue // it is the same kernel
				}
				r := s.Run(t, "bash", "-c", "cd ~; "+script)
				if left := changed(); left != nil {
					t.Errorf("%s: %s: %s", name, left, r)
					house(t)
				}
			}
			work := `cd ~/project && rm -rf a b && mkdir a b && echo x > a/f && mv a/f b/g && ln b/g b/h && rm b/h && echo y >> b/g && echo z > /tmp/z-$$ && echo > /dev/null && echo c > ~/.cache/c && : > b/g`
			if r := s.Run(t, "bash", "-c", work); r.Exit != 0 {
				t.Errorf("the work itself: %s", r)
			}
			if r := s.Run(t, "sh", "-c", "grep -c NoNewPrivs:.1 /proc/self/status"); r.Exit != 0 {
				t.Errorf("setuid programs keep their rights: %s", r)
			}
		})
	}
	t.Run("B52_peers", f.peers)
}

// peers: Unix sockets outside (tmux, D-Bus, docker) are closed once tainted.
func (f *fixture) peers(t *testing.T) {
	rig.Must(t, "rm -f /run/peer.sock")
	peer := f.world.Agent.Start(t, "socat", "-t", "60", "UNIX-LISTEN:/run/peer.sock,fork,mode=666", "SYSTEM:echo reached")
	defer peer.Signal(t, 9)
	listening(t, "/run/peer.sock")
	s := f.sensor.Guard(t, "preset-peers", "--user", "agent", "--preset", "claude")
	ask := []string{"sh", "-c", "echo x | socat -t 60 - UNIX:/run/peer.sock"}
	rig.Eventually(t, "clean, it is a limit that this works", func() bool { // once everybody may
		return strings.Contains(s.Run(t, ask...).Stdout, "reached")
	})
	f.sensor.Taint(t, s.Name, "secret")
	if r := s.Run(t, ask...); strings.Contains(r.Stdout, "reached") {
		t.Errorf("tainted: %s", r)
	}
}

// TestFolder: G20 without a socket. A command that was approved in the folder is known when it runs; a folder of two sessions is nobody's.
func TestFolder(t *testing.T) {
	f := &fixture{world: rig.NewOutside(t)}
	f.sensor = rig.StartSensor(t, policy+"ipc: /workspace/ipc\n")
	rig.Must(t, "mkdir -p /run/weir-hooks /workspace/ipc && chown agent: /workspace/ipc && chmod 700 /workspace/ipc")
	s, to := f.guard(t, "corruption", "secret"), f.web(t)
	alive(t)
	ask := func(s *rig.Session, command string) *rig.Proc {
		p := s.StartEnv(t, []string{"WEIR_BRIDGE=/nonexistent"}, "weir-hook", "claude")
		p.Input(t, `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"`+command+`"}}`)
		p.Close(t)
		return p
	}
	p := ask(s, to.curl())
	q := f.sensor.Asked(t, func(q gate.Question) bool { return q.Text == to.curl() })
	if q.Container.Name != s.Name {
		t.Errorf("the question is about %+v", q.Container)
	}
	f.sensor.Approve(t, q.ID)
	passes(t, p)
	if r := s.Run(t, codex(to.curl())...); r.Exit != 0 || !strings.Contains(r.Stdout, "answer") {
		t.Errorf("got %s", r)
	}
	to.Arrived(t)
	to.unasked(t)
	refused := f.web(t)
	p = ask(s, refused.curl())
	q = f.sensor.Asked(t, func(q gate.Question) bool { return q.Text == refused.curl() })
	f.sensor.Deny(t, q.ID)
	denies(t, p, "a person looked at this command and refused it")
	refused.Nothing(t)
	denies(t, ask(s, "rm -rf /"), "rule linux-delete:")
	// what is being written has another name, and the sensor removes a request after it answered
	rig.Eventually(t, "nothing is left in the folder", func() bool {
		return strings.TrimSpace(rig.Must(t, "ls -A /workspace/ipc")) == "sensor.alive"
	})
	// A session that sees the same folder takes it from both: whose requests there are cannot be told.
	other := f.guard(t)
	rig.Eventually(t, "the folder is nobody's", func() bool {
		r := ask(other, "curl http://10.77.0.2:9/").Wait(t)
		return strings.Contains(r.Stdout, "cannot be asked")
	})
}

func alive(t *testing.T) {
	t.Helper()
	rig.Eventually(t, "the folder is served", func() bool {
		_, err := os.Stat("/workspace/ipc/sensor.alive")
		return err == nil
	})
}
