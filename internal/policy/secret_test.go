package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSecretFiles(t *testing.T) { // G2
	for _, c := range []struct {
		line  string
		want  SecretFile
		wrong string
	}{
		{line: "/etc/shadow", want: SecretFile{Dir: "/etc", Name: "shadow"}},
		{line: "/secret", want: SecretFile{Dir: "/", Name: "secret"}},
		{line: "/run/secrets/", want: SecretFile{Dir: "/run/secrets"}},
		{line: "~/.ssh/", want: SecretFile{Dir: "~/.ssh"}},
		{line: "~/.netrc", want: SecretFile{Dir: "~", Name: ".netrc"}},
		{line: "~/.ssh/id_*", want: SecretFile{Dir: "~/.ssh", Name: "id_*"}},
		{line: "/srv/*/keys/*.pem", want: SecretFile{Dir: "/srv/*/keys", Name: "*.pem"}},
		{line: "**/.env", want: SecretFile{Name: ".env"}},
		{line: "**/*.pem", want: SecretFile{Name: "*.pem"}},
		{line: "etc/shadow", wrong: "a path begins with /, ~/ or **/"},
		{line: "**/", wrong: "after **/ there is one file name"},
		{line: "**/a/b", wrong: "after **/ there is one file name"},
		{line: "/a/**/b", wrong: "** stands at the beginning only"},
		{line: "/", wrong: "nearly every file"},
		{line: "~/", wrong: "nearly every file"},
		{line: "/a//b", wrong: `write it as "/a/b"`},
		{line: "/a/../b/c", wrong: `write it as "/b/c"`},
		{line: "/a/..", wrong: "not a file's name"},
		{line: "/a/b?", wrong: "one * and no other pattern"},
		{line: "/a/*b*", wrong: "one * and no other pattern"},
		{line: "/a[/b", wrong: "a [ has no ]"},
		{line: "**/" + strings.Repeat("x", 65), wrong: "at most 64 bytes"},
		{line: "**/*" + strings.Repeat("x", 33), wrong: "at most 64 bytes, and 32 before and after a *"},
	} {
		p, err := Parse("p.yaml", []byte("taint:\n  secret_files:\n    - \""+c.line+"\"\n"))
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) || !strings.HasPrefix(err.Error(), "p.yaml:3:7: taint.secret_files has ") {
				t.Errorf("%s: %v, want %q", c.line, err, c.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		c.want.Text = c.line
		if diff := cmp.Diff([]SecretFile{c.want}, p.Taint.SecretFiles); diff != "" {
			t.Errorf("%s: want - got +\n%s", c.line, diff)
		}
	}
}

func TestTooManyNames(t *testing.T) {
	var b strings.Builder
	b.WriteString("taint:\n  secret_files:\n")
	for i := range MaxNames + 1 {
		b.WriteString("    - /a/" + strings.Repeat("x", i+1) + "\n")
	}
	if _, err := Parse("p", []byte(b.String())); err == nil || !strings.Contains(err.Error(), "more than 32 different file names") {
		t.Error(err)
	}
}
