package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"weir/deploy/policies"
	"weir/internal/agenthook"
	"weir/internal/bridge/wire"
	"weir/internal/policy"
	"weir/internal/runner"
	"weir/internal/vault"
)

// preset is what weir guard --preset does for an agent.
type preset struct {
	agent     string   // whose hook is installed for the run; empty: none
	api       string   // of its model; empty: it has none
	endpoints []string // hosts whose addresses are looked up at the start and stay open
	own       []string // directories below home in which it may change files
	files     []string // files below home that it may change
	env       []string
	limits    []string // what remains possible, beside remains
}

// caches are directories of build tools below home from which nothing is started by itself.
var caches = []string{".cache", ".npm/_cacache", ".npm/_logs", ".cargo/registry", ".cargo/git", "go/pkg"}

var presets = map[string]preset{
	"claude": {
		agent: "claude", api: "anthropic",
		own: []string{".claude/projects", ".claude/todos", ".claude/tasks", ".claude/shell-snapshots", ".claude/session-env", ".claude/sessions", ".claude/debug", ".claude/file-history",
			".claude/plans", ".claude/cache", ".claude/paste-cache", ".claude/backups", ".claude/statsig", ".claude/telemetry"},
		env: []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1"},
		limits: []string{
			"The agent can send anything to its own model endpoint, api.anthropic.com, also with another user's key, unless --model-key or --model-token-file puts the model's proxy before it.",
			"~/.claude.json cannot be written: settings that the agent keeps there last for this run only.",
		},
	},
	"codex": {
		agent: "codex", api: "openai",
		endpoints: []string{"api.openai.com", "chatgpt.com"},
		env:       []string{"CODEX_SQLITE_HOME=~/.codex/sqlite"},
		own:       []string{".codex/sqlite", ".codex/sessions", ".codex/archived_sessions", ".codex/thread-writer-locks", ".codex/log", ".codex/shell_snapshots", ".codex/.tmp", ".codex/tmp", ".codex/cache"},
		files:     []string{".codex/installation_id"},
		limits: []string{
			"The agent can send anything to the addresses of api.openai.com and chatgpt.com, also with another user's key, and other hosts share these addresses, unless --model-key or --model-token-file puts the model's proxy before them.",
			"Weir looks them up once, at the start. If they change during a long run, it asks about connections to the new ones.",
			"codex asks at its first start whether to trust the hook, and does not run it before. With weir-hook shell as its shell, no hook is needed.",
		},
	},
	"strict": {limits: []string{"No agent's hook is installed: Weir asks about commands when they connect."}},
}

const presetNames = "claude, codex, strict"

// protected says what a preset keeps from being written, and remains what it cannot do.
var (
	protected = []string{
		"Refused while tainted: all egress except the policy's allow and what the reviewer or you let out, and all Unix sockets outside (D-Bus, tmux, ssh-agent, docker, X11).",
		"A command that you are asked about waits until you answer in another terminal: sudo weir top.",
		"Not writable, whatever the taint: everything except the working directory, /tmp, /var/tmp, /dev, /proc and the directories named above. So start-up files, cron, ~/.ssh, user units of systemd, git's own settings, and the agent's settings and hooks stay as they are.",
		"Without effect: setuid and setgid programs (sudo, su, crontab, at, ping of some systems).",
	}
	remains = []string{
		"The command can change the project's own files, and what you run from there later (make, .git/hooks, an agent's .claude or .codex) runs outside. Look at the diff first.",
		"It can change caches of build tools too, and a later build uses them.",
		"Before the taint the network is open, and so are D-Bus and tmux: systemd-run --user can start something outside. --preset strict is tainted from the start.",
		"Once tainted, names are looked up only after an approval; a line for the model's endpoint in /etc/hosts avoids that.",
		"The terminal is shared: the command reads what you type while it runs, and your terminal interprets what it prints. Before Linux 6.2, truncate(2) can empty a file that cannot be written.",
	}
)

// explain prints what a preset does and what remains possible.
func (p preset) explain(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "weir guard --preset %s\n\nThe policy is deploy/policies/%s.yaml of this version.\n", name, name)
	if len(p.endpoints) > 0 {
		fmt.Fprintf(&b, "Open beside its allow: %s, port 443, at the addresses of the start.\n", strings.Join(p.endpoints, ", "))
	}
	if p.agent != "" {
		fmt.Fprintf(&b, "The hook is in the settings of this run, if CMD is %s. The files of its user stay as they are.\n", p.agent)
	}
	for _, kv := range p.env {
		fmt.Fprintf(&b, "Set in its environment: %s\n", kv)
	}
	fmt.Fprintf(&b, "Writable: the working directory, /tmp, /var/tmp, /dev, /proc")
	for _, d := range slices.Concat(p.own, p.files, caches) {
		fmt.Fprintf(&b, ", ~/%s", d)
	}
	b.WriteString("\n\nDenied:\n")
	for _, line := range protected {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	b.WriteString("\nWhat remains possible:\n")
	for _, line := range slices.Concat(p.limits, remains) {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	return b.String()
}

// lookupTime is how long the addresses of an agent's endpoints may take.
const lookupTime = 5 * time.Second

// policy is the preset's policy, with the addresses of its endpoints. missing are those that were not found.
func (p preset) policy(ctx context.Context, name string, lookup func(context.Context, string, string) ([]netip.Addr, error)) (text string, missing []string, err error) {
	if text, err = policies.Text(name); err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	var allow, trusted []string
	seen := map[netip.Prefix]bool{}
	for _, host := range p.endpoints {
		addrs, err := lookup(ctx, "ip", host)
		if err != nil || len(addrs) == 0 {
			missing = append(missing, host)
			continue
		}
		for _, a := range addrs {
			a = a.Unmap().WithZone("")
			if prefix := netip.PrefixFrom(a, a.BitLen()); a.IsGlobalUnicast() && !seen[prefix] {
				seen[prefix] = true
				allow = append(allow, fmt.Sprintf(`{prefix: "%s", protocol: tcp, ports: 443}`, prefix))
				trusted = append(trusted, fmt.Sprintf("%q", prefix))
			}
		}
	}
	if len(allow) > 0 {
		text = strings.Replace(text, "\nallow: []", "\nallow: ["+strings.Join(allow, ", ")+"]", 1)
		text = strings.Replace(text, "\n  trusted_networks: []", "\n  trusted_networks: ["+strings.Join(trusted, ", ")+"]", 1)
	}
	return text, missing, nil
}

// hooked is a command line with the hook in the settings of this run; false: the agent is another program, or has no such option.
func (p preset) hooked(argv []string, self string, more ...string) ([]string, bool, error) {
	if p.agent == "" || filepath.Base(argv[0]) != p.agent {
		return argv, false, nil
	}
	hook, err := agenthook.Settings(p.agent, self+" hook")
	if err != nil {
		return nil, false, err
	}
	var options []string
	switch p.agent {
	case "claude":
		options = []string{"--settings", hook}
	case "codex":
		options = []string{"-c", codexHook(self)}
	}
	return slices.Concat(argv[:1], options, more, argv[1:]), true, nil
}

// codexHook is the hook as an item of codex's configuration, which is TOML.
func codexHook(self string) string {
	return fmt.Sprintf(`hooks.PreToolUse=[{matcher="*",hooks=[{type="command",command=%q,timeout=%d}]}]`, self+" hook codex", agenthook.Timeout)
}

var errPresetRoot = errors.New("--preset is for a user without rights, and root can undo it: call weir by sudo as that user, or name one with --user")

// apply makes a session one of the preset's.
func (s *system) apply(ctx context.Context, name string, quiet bool, model *modelOptions, to *runner.Session) error {
	p := presets[name]
	if model.given() {
		p.endpoints = nil
	}
	if to.Who.Root() {
		return errPresetRoot
	}
	work, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	if to.Write, err = runner.Writable(work, to.Who.Home(), runner.Write{Dirs: slices.Concat(p.own, caches), Files: p.files}); err != nil {
		return err
	}
	text, missing, err := p.policy(ctx, name, net.DefaultResolver.LookupNetIP)
	if err != nil {
		return err
	}
	for _, host := range missing {
		s.note("weir guard: %s has no address: what the agent sends there will be asked about while tainted", host)
	}
	to.Request.Policy, to.Request.PolicyName = text, "preset "+name
	for _, kv := range p.env {
		to.Env = append(to.Env, strings.Replace(kv, "=~/", "="+to.Who.Home()+"/", 1))
	}
	var options []string
	if model.given() {
		if options, err = s.behindProxy(ctx, p, model, to); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	argv, hooked, err := p.hooked(to.Argv, self, options...)
	if err != nil {
		return err
	}
	if to.Argv = argv; p.agent != "" && !hooked && !quiet {
		s.note("weir guard: %s is not %s: its hook is not installed for this run", to.Argv[0], p.agent)
	}
	return nil
}

// behindProxy gives a session of the preset the model's proxy in place of the model's addresses. options are those that its agent needs.
func (s *system) behindProxy(ctx context.Context, p preset, o *modelOptions, to *runner.Session) (options []string, err error) {
	if err := vault.NoDumps(); err != nil {
		return nil, err
	}
	dir, err := s.stateDir(ctx)
	if err != nil {
		return nil, err
	}
	o.vault.file = filepath.Join(cmp.Or(dir, wire.State), "vault.age")
	login := o.key == ""
	if o.setup.API = p.api; login && p.agent == "codex" {
		o.setup.API = "codex"
	}
	if _, err := s.prepare(o); err != nil {
		return nil, err
	}
	w := s.world()
	as, err := w.Identify("nobody")
	if err != nil {
		return nil, err
	}
	uid := to.Who.UID()
	o.setup.User = &uid
	path := filepath.Join(s.runDir, fmt.Sprintf("model-%d.sock", os.Getpid()))
	if to.Request.Policy, err = closed(to.Request.Policy, path); err != nil {
		return nil, err
	}
	to.Model = &runner.Model{Setup: o.setup, Listen: "unix:" + path, As: as}
	for _, name := range []string{"NO_PROXY", "no_proxy"} { // else another proxy would be sent what is for this one
		to.Env = append(to.Env, name+"="+strings.TrimPrefix(os.Getenv(name)+",127.0.0.1", ","))
	}
	switch p.agent {
	case "claude":
		to.Env = append(to.Env, "ANTHROPIC_BASE_URL="+runner.ModelURL)
		if !login {
			// the user's own keys stay outside, too
			to.Env = append(to.Env, "ANTHROPIC_AUTH_TOKEN="+o.setup.Expect, "ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=")
		}
	case "codex":
		at, key := runner.ModelURL+"/v1", `env_key="WEIR_MODEL_KEY"`
		if login {
			at, key = runner.ModelURL, "requires_openai_auth=true"
		} else {
			to.Env = append(to.Env, "WEIR_MODEL_KEY="+o.setup.Expect, "OPENAI_API_KEY=", "CODEX_API_KEY=")
		}
		options = []string{
			"-c", `model_provider="weir"`, "-c", fmt.Sprintf(`model_providers.weir={name="weir",base_url=%q,wire_api="responses",%s}`, at, key), "-c", `web_search="disabled"`,
		}
	}
	return options, nil
}

// closed is a preset's policy that opens nothing but a Unix socket.
func closed(text, path string) (string, error) {
	text = regexp.MustCompile(`(?m)^allow:\n( .*\n)+`).ReplaceAllString(text, "allow: []\n")
	text = regexp.MustCompile(`(?m)^  trusted_networks:\n(    .*\n)+`).ReplaceAllString(text, "  trusted_networks: []\n")
	text = strings.Replace(text, "\nallow_unix_sockets: []", fmt.Sprintf("\nallow_unix_sockets: [%q]", path), 1)
	p, err := policy.Parse("preset", []byte(text))
	if err != nil {
		return "", err
	}
	if len(p.Allow)+len(p.Taint.TrustedNetworks) > 0 || !slices.Equal(p.AllowUnixSockets, []string{path}) {
		return "", errors.New("the preset's policy opens more than the model's proxy")
	}
	return text, nil
}
