package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script runs one of the rpm's, as rpm would with this number, from a package of this ABI, on a machine whose version has 14, and where systemd and programs in the kernel are. It returns
// what it printed, and which commands it gave.
func script(t *testing.T, name, number, abi, detach string) (out, calls string, failed bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repo, "deploy/package/rpm", name))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	stub := "#!/bin/sh\necho \"${0##*/} $*\" >>" + dir + "/calls\n"
	for program, does := range map[string]string{"systemctl": "", "weir": "case $1 in version) echo '{\"abi\":14,\"commit\":\"\"}' ;; detach) exit " + detach + " ;; esac\n"} {
		if err := os.WriteFile(filepath.Join(dir, program), []byte(stub+does), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	all := strings.NewReplacer("/run/systemd/system", dir, "/sys/fs/bpf/weir", dir, "@ABI@", abi).Replace(string(text))
	cmd := exec.Command("sh", "-c", all, name, number)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	said, err := cmd.CombinedOutput()
	given, _ := os.ReadFile(filepath.Join(dir, "calls")) // none: there is no such file
	return string(said), string(given), err != nil
}

// TestRPMScripts: the rpm is as careful as the deb, which test/vm installs.
func TestRPMScripts(t *testing.T) {
	for _, c := range []struct {
		about, name, number, abi, detach string
		fails                            bool
		says, calls                      string
	}{
		{"an upgrade to the same ABI", "pre", "2", "14", "0", false, "", "weir version --json\n"},
		{"an upgrade to another ABI", "pre", "2", "15", "0", true, "systemctl stop weir && weir detach", "weir version --json\n"},
		{"a first installation", "pre", "1", "14", "0", false, "", ""},
		{"a removal while something tainted lives", "preun", "0", "14", "3", true, "not removed", "systemctl -q is-active weir\nsystemctl stop weir\nweir detach\nsystemctl start weir\n"},
		{"a removal", "preun", "0", "14", "0", false, "", "systemctl -q is-active weir\nsystemctl stop weir\nweir detach\nsystemctl --no-reload disable --now weir weir-watch\n"},
		{"the old version, in an upgrade", "preun", "1", "14", "0", false, "", ""},
		{"the old version is gone, in an upgrade", "postun", "1", "14", "0", false, "", "systemctl daemon-reload\nsystemctl try-restart weir-watch weir\n"},
		{"it is removed", "postun", "0", "14", "0", false, "", "systemctl daemon-reload\n"},
		{"it is installed", "post", "1", "14", "0", false, "systemctl enable --now weir weir-watch", "systemctl daemon-reload\nweir doctor\n"},
	} {
		out, calls, failed := script(t, c.name, c.number, c.abi, c.detach)
		if failed != c.fails || !strings.Contains(out, c.says) || calls != c.calls {
			t.Errorf("%s: failed %v, said %q, gave\n%s", c.about, failed, out, calls)
		}
	}
}
