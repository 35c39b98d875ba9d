package commands

import "testing"

// TestWritable: only literal paths under the working directory or /tmp, that nothing runs or obeys.
func TestWritable(t *testing.T) {
	for path, want := range map[string]bool{
		"out.txt": true, "src/a.go": true, "./a": true, "/tmp/a": true, "/dev/null": true, "/dev/stderr": true, ".gitignore": true,
		"": false, "/": false, "/etc/x": false, "/tmpx/a": false, "../a": false, "a/../b": false, "/tmp/../etc/x": false, "~/a": false,
		".bashrc": false, "a/.git/config": false, ".git/hooks/x": false, "bin/ls": false, "/dev/sda": false, "/proc/1/mem": false,
		"authorized_keys": false, "cron.d/x": false, "x.so": false, "x.so.1": false, "lib/x.pth": false, "a.service": false,
		"/repo/a": false,
	} {
		p := In("/w")
		if _, ok := p.Writable(path); ok != want {
			t.Errorf("Writable(%q) = %v, want %v", path, ok, want)
		}
	}
}

// TestEnter: what is written after cd.
func TestEnter(t *testing.T) {
	for _, tt := range []struct {
		dir, path string
		want      bool
	}{
		{"/repo", "a", true}, {"/repo", "/repo/a", true}, {"/repo", "/repos/a", false}, {"src", "a", true}, {".", "a", true},
		{"/home/me/x", "/home/me/x/a", true}, {"/etc", "a", false}, {"/usr/lib", "a", false}, {"..", "a", false}, {"~", "a", false},
		{"/", "a", false}, {"/home/me", "a", false}, {"/root", "a", false}, {"/root/x", "a", true}, {".git", "a", false}, {"-", "a", false},
		{"/repo/.git", "/repo/.git/config", false}, {"", "a", false}, {"/etc", "/tmp/a", true},
	} {
		p := In("/w")
		p.Enter(tt.dir)
		if _, ok := p.Writable(tt.path); ok != tt.want {
			t.Errorf("after cd %q, Writable(%q) = %v, want %v", tt.dir, tt.path, ok, tt.want)
		}
	}
}

// TestNames (B12): what changes programs may not be assigned, and only harmless names are set for commands.
func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"x": true, "file_name": true, "FILE": true, "": false, "1a": false, "a[1]": false, "PATH": false, "IFS": false, "LD_PRELOAD": false,
		"BASH_ENV": false, "RANDOM": false, "PS4": false, "GIT_DIR": false, "LESSOPEN": false, "http_proxy": false, "HTTPS_PROXY": false,
		"PYTHONPATH": false, "NODE_OPTIONS": false, "GCONV_PATH": false, "TMPDIR": false, "HOME": false,
	} {
		if got := Assignable(name); got != want {
			t.Errorf("Assignable(%q) = %v, want %v", name, got, want)
		}
	}
	for _, tt := range []struct {
		name, value string
		want        bool
	}{
		{"LC_ALL", "C", true}, {"LC_ALL", "../x", false}, {"LC_X", "C", false}, {"LANG", "de_DE.UTF-8", true}, {"TZ", "Europe/Berlin", true},
		{"TZ", "/etc/x", false}, {"TZ", ":x", false}, {"NO_COLOR", "1", true}, {"LD_PRELOAD", "", false}, {"ALL", "C", false}, {"FOO", "1", false},
	} {
		if got := HarmlessEnv(tt.name, tt.value); got != tt.want {
			t.Errorf("HarmlessEnv(%q, %q) = %v, want %v", tt.name, tt.value, got, tt.want)
		}
	}
}

// TestNetPath (B10): the paths that bash takes for connections, whole or begun.
func TestNetPath(t *testing.T) {
	for _, tt := range []struct {
		path   string
		prefix bool
		want   bool
	}{
		{"/dev/tcp/h/1", false, true}, {"/dev/udp/h/1", false, true}, {"//dev/tcp/h/1", false, false}, {"/dev/tcp", false, false},
		{"/dev/", true, true}, {"", true, true}, {"/tmp/", true, false}, {"/dev/tcp/", true, true},
	} {
		if got := NetPath(tt.path, tt.prefix); got != tt.want {
			t.Errorf("NetPath(%q, %v) = %v, want %v", tt.path, tt.prefix, got, tt.want)
		}
	}
}
