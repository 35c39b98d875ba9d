package classify_test

import (
	"strings"
	"testing"

	"weir/internal/classify"
	"weir/test/classifytest/cases"
)

// observed are command lines as the kernel sees them, by the way out that each tries; none is local but those that end in "fine".
var observed = map[string][]struct {
	what string
	classify.Observed
}{
	"B05": {
		{"loader and curl", seen("/lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2", "/usr/bin/curl", "http://192.0.2.1/")},
		{"loader under another name", seen("/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "ls", "/usr/bin/curl")},
		{"loader with a library in front", seen("/lib64/ld-linux-x86-64.so.2", "ld.so", "--preload", "./x.so", "/bin/ls")},
		{"loader with another path of libraries", seen("", "/lib64/ld-linux-x86-64.so.2", "--library-path", ".", "/bin/ls")},
		{"loader with argv0", seen("", "/lib64/ld-linux-x86-64.so.2", "--argv0", "ls", "/usr/bin/curl")},
		{"loader of musl", seen("", "/lib/ld-musl-x86_64.so.1", "/usr/bin/wget", "x")},
		{"loader and a program of the folder", seen("", "/lib64/ld-linux-x86-64.so.2", "./ls")},
		{"curl that is called ls", seen("/usr/bin/curl", "ls", "-l")},
		{"ls that is another file", seen("/tmp/ls", "ls")},
		{"a file that is gone", seen("/usr/bin/ls (deleted)", "ls")},
		{"a file in memory", seen("/memfd:ls (deleted)", "ls")},
		{"a file without a path", seen("ls", "ls")},
		{"a busybox that is nc", seen("/usr/bin/busybox", "nc", "192.0.2.1", "9")},
		{"a busybox that is told so", seen("/usr/bin/busybox", "busybox", "wget", "x")},
		{"ls, fine", seen("/usr/bin/ls", "ls", "-l")},
	},
	"B08": {
		{"find -exec", seen("/usr/bin/find", "find", ".", "-exec", "./p", ";")},
		{"find -delete", seen("", "find", ".", "-delete")},
		{"awk system", seen("/usr/bin/gawk", "awk", `BEGIN{system("curl x")}`)},
		{"awk pipe", seen("", "awk", `{print | "sh"}`, "f")},
		{"awk file", seen("", "awk", "-f", "e.awk")},
		{"xargs", seen("", "xargs", "curl")},
		{"xargs sh", seen("", "xargs", "-I{}", "sh", "-c", "{}")},
		{"rg --pre", seen("/usr/bin/rg", "rg", "--pre", "./p", "x")},
		{"rg -z", seen("", "rg", "-nz", "x")},
		{"sed e", seen("/usr/bin/sed", "sed", "1e curl x", "f")},
		{"sed s///e", seen("", "sed", "s/a/b/e", "f")},
		{"sort", seen("", "sort", "--compress-prog=./p", "f")},
		{"fd -x", seen("", "fd", "-x", "./p")},
		{"less", seen("", "less", "+!./p", "f")},
		{"env -S", seen("", "env", "-S", "curl x")},
		{"sh -c", seen("/usr/bin/dash", "sh", "-c", "curl x")},
		{"bash -c in env in nice", seen("", "nice", "-n", "5", "env", "A=1", "bash", "-c", "curl x")},
		{"grep, fine", seen("/usr/bin/grep", "grep", "-rn", "--", "-x", ".")},
		{"find -exec grep, fine", seen("", "find", ".", "-name", "*.go", "-exec", "grep", "-n", "a", "{}", "+")},
		{"sh -c, fine", seen("/usr/bin/dash", "sh", "-c", "ls -l | head -3")},
	},
	"B09": {
		{"text with &", seen("", "sh", "-c", "ls & curl x")},
		{"text with a newline", seen("", "sh", "-c", "ls\ncurl x")},
		{"text with a carriage return", seen("", "sh", "-c", "ls\rcurl x")},
		{"text with back-ticks", seen("", "sh", "-c", "echo `curl x`")},
		{"text with <( )", seen("", "bash", "-c", "cat <(curl x)")},
		{"text with a here-document", seen("", "bash", "-c", "cat <<E\n$(curl x)\nE")},
		{"text with $IFS", seen("", "bash", "-c", "curl${IFS}x")},
		{"text with $'…'", seen("", "bash", "-c", `$'\x63url' x`)},
		{"text with braces", seen("", "bash", "-c", "{curl,x}")},
		{"text with an alias", seen("", "sh", "-c", "alias ls=curl\nls x")},
		{"text with a function", seen("", "sh", "-c", "ls() { curl x; }; ls")},
		{"text that cannot be parsed", seen("", "sh", "-c", "ls; (")},
		{"text from the input", seen("", "sh")},
		{"text from the input, said so", seen("", "bash", "-s")},
		{"text of a file", seen("", "bash", "f.sh")},
		{"a login shell", seen("/usr/bin/bash", "-bash")},
		{"words that mean something only to a shell, fine", seen("", "echo", "$(curl x)", "`curl x`", ";", "curl", "x")},
	},
	"B12": {
		{"LD_PRELOAD", set("LD_PRELOAD=./x.so")}, {"LD_PRELOAD without its value", set("LD_PRELOAD")}, {"LD_AUDIT", set("LD_AUDIT=./x.so")}, {"LD_LIBRARY_PATH", set("LD_LIBRARY_PATH=.")},
		{"BASH_ENV", set("BASH_ENV=f")}, {"ENV", set("ENV=f")}, {"NODE_OPTIONS", set("NODE_OPTIONS=-r./x")}, {"PYTHONSTARTUP", set("PYTHONSTARTUP=f")}, {"GCONV_PATH", set("GCONV_PATH=.")},
		{"LESSOPEN", set("LESSOPEN=|./p")}, {"RIPGREP_CONFIG_PATH", set("RIPGREP_CONFIG_PATH=f")}, {"PATH", set("PATH=.:/usr/bin")}, {"an exported function", set("BASH_FUNC_ls%%=() { curl x; }")},
		{"a name alone", set("=x")}, {"LC_ALL, fine", set("LC_ALL=C")},
	},
}

// seen is a command line of a file.
func seen(file string, argv ...string) classify.Observed {
	return classify.Observed{Argv: argv, File: file}
}

// set is an ls with a variable.
func set(variable string) classify.Observed {
	return classify.Observed{Argv: []string{"ls"}, File: "/usr/bin/ls", Env: []string{variable}}
}

// TestBypasses: B05, B08, B09 and B12, as texts and as observed command lines. B11 is TestB11LimitsG9 and TestB11WorstIsBoundedG9.
func TestBypasses(t *testing.T) {
	for id, lines := range observed {
		t.Run(id, func(t *testing.T) {
			for _, o := range lines {
				got := classify.Argv(o.Observed)
				if fine := strings.HasSuffix(o.what, "fine"); fine != (got.Class == classify.Local) {
					t.Errorf("%s: %q %q is %s: %v", o.what, o.Argv, o.Env, got.Class, got.Reasons)
				}
				if len(o.Argv) > 0 {
					o.Observed.Truncated = true
					if got := classify.Argv(o.Observed); got.Class == classify.Local || !hasRule(got, "truncated") && got.Class == classify.Grey {
						t.Errorf("%s: cut, it is %s: %v", o.what, got.Class, got.Reasons)
					}
				}
			}
			texts := 0
			for _, c := range cases.All() {
				if c.ID != id {
					continue
				}
				texts++
				if got := classify.Shell(c.Text, "/workspace"); (c.Class == "local") != (got.Class == classify.Local) {
					t.Errorf("%q is %s: %v", c.Text, got.Class, got.Reasons)
				}
			}
			if texts == 0 {
				t.Error("no case has this id")
			}
		})
	}
	if got := classify.Argv(classify.Observed{}); got.Class == classify.Local {
		t.Error("a command line without words is local")
	}
}
