package classify_test

import (
	"strings"
	"testing"

	"weir/internal/classify"
)

// TestF16Dir: G5, relative paths are judged from the directory that a command runs in; where that is not known, nothing relative is written.
func TestF16Dir(t *testing.T) {
	for _, c := range []struct {
		dir, text string
		local     bool
	}{
		{"/w", "echo x > config", true}, {"/home/me/p", "echo x > y", true}, {"/tmp", "tee a b", true}, {"/usr/src/app", "echo x > y", true}, {"/var/www/site/", "mkdir -p css/new", true},
		{"/w/.git", "cat config", true}, {"/etc/cron.d", "ls > /tmp/x; grep -r x . 2>/dev/null", true}, {"", "echo x > /tmp/y", true}, {"", "ls", true}, {"/root", "head -1 bin/ls", true},
		{"/w", "echo x > /w/a/b", true}, {"/w", "cd a && echo x > y", true}, {"", "cd /w && echo x > y", true}, {"/etc", "cd /w/a && ls && cd b && echo x > y | cat", true}, {"", "cd /w && echo x > /w/a; echo > /w/b", true},
		{"/w", "cd /srv/p; echo x > y", true}, {"/w", "bash -c 'echo x > y'", true}, {"/w", "find . -name x -exec tee y {} +", false},
		{"/w/.git", "echo x > config", false}, {"/w/.git/hooks", "echo x > pre-commit", false}, {"/etc/cron.d", "echo x > y", false}, {"/root", "echo x > bin/ls", false}, {"/root", "echo x > y", false},
		{"/", "echo x > y", false}, {"/home/me", "echo x > y", false}, {"/usr/local/lib", "cp /tmp/x y", false}, {"/var/spool/cron", "tee me", false}, {"/usr/src", "echo x > y", false}, {"/w/bin", "echo x > ls", false},
		{"", "echo x > y", false}, {"w", "echo x > y", false}, {"~", "echo x > y", false}, {"", "tee y", false}, {"", "mkdir a", false}, {"", "sed -i s/a/b/ y", false}, {"/etc", "bash -c 'echo x > y'", false},
		{"", "cd a && echo x > y", false}, {"", "cd /w; echo x > y", false}, {"/etc", "cd /w || ls; echo x > y", false}, {"/etc", "cd /w && ls; echo x > y", false}, {"/etc", "cd /w || ls && echo x > y", false},
		{"/etc", "! cd /w && echo x > y", false}, {"/etc", "cd /w & echo x > y", false}, {"/etc", "cd /w | ls && echo x > y", false}, {"/w", "cd /etc; cd a; echo x > y", false}, {"/w", "cd .git/hooks && echo x > y", false},
		{"/etc", "cd . && echo x > y", false}, {"/w", "cd .. && echo x > y", false}, {"/w", "env -C /etc tee y", false}, {"/etc", "f() { echo x > y; }; f", false}, {"/w", "cd $d && echo x > y", false}, {"/etc", "(cd /w); echo x > y", false},
		{"/w", "find /etc/cron.d -execdir tee y \\;", false}, {"/w", "find a -exec tee y \\;", true},
		{"/etc", "ls || cd /w && echo x > y", false}, {"/etc", "ls || cd /w && ls && echo x > y", false}, {"/etc", "cd /w && ls || ls && echo x > y", false}, {"/etc", "cd /w && { cd /w/a; ls; } && echo x > y", true},
		{"/w", "cd / && cd etc && echo x > y", false}, {"/", "cd etc && echo x > y", false}, {"/home", "cd me && echo x > y", false}, {"/etc", "cd /w && { cd /etc; ls; } && echo x > y", false},
	} {
		r := classify.Shell(c.text, c.dir)
		if (r.Class == classify.Local) != c.local {
			t.Errorf("in %q: %s: %v, want local %v: %v", c.dir, c.text, r.Class, c.local, r.Reasons)
		}
		if words := strings.Fields(c.text); !strings.ContainsAny(c.text, "&;|<>'{!$(") && words[0] != "cd" {
			if got := classify.Argv(classify.Observed{Argv: words, Dir: c.dir}).Class; got != r.Class {
				t.Errorf("in %q: seen to run: %s: %v, want %v", c.dir, c.text, got, r.Class)
			}
		}
	}
}
