package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

const repo = "../.."

func must(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// build makes a release of a clone of the last commit, as somebody who has only that would, at another place each time.
func build(t *testing.T, key string) string {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "weir")
	must(t, "", "git", "clone", "-q", "--no-hardlinks", repo, clone)
	t.Setenv("RELEASE_KEY", key)
	must(t, clone, "scripts/release")
	return filepath.Join(clone, "dist")
}

// everything in a directory, by name.
func everything(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			all[name], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRelease builds the last commit twice, at two places, and looks at what came out as its users do.
func TestRelease(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	must(t, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key)
	dist := build(t, key)
	first, second := everything(t, dist), everything(t, build(t, key))
	for name, data := range first {
		if !bytes.Equal(data, second[name]) {
			t.Errorf("%s is another one when it is built again", name)
		}
	}
	if len(first) != len(second) || len(first) < 70 {
		t.Errorf("%d and %d files", len(first), len(second))
	}
	one := func(pattern string) string {
		found, err := filepath.Glob(filepath.Join(dist, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		return found[0]
	}
	deb, rpm := one("weir_*_amd64.deb"), one("weir-*.x86_64.rpm")

	t.Run("version", func(t *testing.T) {
		commit := strings.TrimSpace(must(t, repo, "git", "rev-parse", "HEAD"))
		if out := must(t, dist, "./weir", "--version"); !strings.Contains(out, "commit "+commit+", ABI ") {
			t.Errorf("the program of commit %s says %s", commit, out)
		}
	})
	t.Run("sums", func(t *testing.T) {
		must(t, dist, "sha256sum", "--quiet", "-c", "SHA256SUMS")
		if n := strings.Count(string(first["SHA256SUMS"]), "\n"); n != len(first)-2 { // not of itself, nor of its signature
			t.Errorf("%d sums of %d files", n, len(first))
		}
	})
	t.Run("signature", func(t *testing.T) { // with the commands of docs/deploy.md
		doc, err := os.ReadFile(filepath.Join(repo, "docs/deploy.md"))
		if err != nil {
			t.Fatal(err)
		}
		verify := regexp.MustCompile(`(?m)^ssh-keygen -Y verify .*$`).FindString(string(doc))
		public, err := os.ReadFile(key + ".pub")
		if err != nil || verify == "" {
			t.Fatalf("docs/deploy.md has %q, %v", verify, err)
		}
		if err := os.WriteFile(filepath.Join(dist, "allowed_signers"), []byte("weir "+string(public)), 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, dist, "bash", "-c", verify)
		if err := os.WriteFile(filepath.Join(dist, "SHA256SUMS"), append(first["SHA256SUMS"], '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("bash", "-c", verify)
		cmd.Dir = dist
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("changed sums have a signature: %s", out)
		}
	})
	t.Run("chart", func(t *testing.T) {
		version := strings.Fields(string(first["VERSION"]))[1]
		text := must(t, "", "tar", "xzOf", one("weir-*.tgz"), "weir/Chart.yaml")
		if want := "\nversion: " + strings.TrimPrefix(version, "v") + "\nappVersion: " + strings.ReplaceAll(version, "+", "-") + "\n"; !strings.Contains(text, want) {
			t.Errorf("want %s in %s", want, text)
		}
	})
	t.Run("image", func(t *testing.T) {
		holds(t, must(t, "", "tar", "tf", filepath.Join(dist, "weir-root.tar")), "./usr/local/bin/weir\n", "./usr/local/bin/weir-hook\n", "./usr/local/bin/weir-fleet\n", "./usr/local/bin/weir-otel\n", "./etc/ssl/certs/ca-certificates.crt\n")
	})
	t.Run("lintian", func(t *testing.T) {
		if out := must(t, "", "lintian", "--allow-root", "--fail-on=error,warning", "--tag-display-limit=0", deb); strings.TrimSpace(out) != "" {
			t.Error(out)
		}
		for _, script := range []string{"preinst", "postinst", "prerm", "postrm"} {
			if text := must(t, "", "dpkg-deb", "-I", deb, script); strings.Contains(text, "@") {
				t.Errorf("%s:\n%s", script, text)
			}
		}
	})
	t.Run("deb", func(t *testing.T) {
		if out := must(t, "", "dpkg-deb", "-I", deb, "conffiles"); out != "/etc/weir/policy.yaml\n" {
			t.Errorf("conffiles: %s", out)
		}
		holds(t, must(t, "", "dpkg-deb", "-c", deb), "./etc/weir/policy.yaml", "./usr/share/zsh/vendor-completions/_weir")
		root := t.TempDir()
		must(t, "", "dpkg-deb", "-x", deb, root)
		installed(t, root)
	})
	t.Run("rpm", func(t *testing.T) {
		holds(t, must(t, "", "rpm", "-qpl", rpm), "/etc/weir/policy.yaml", "/usr/share/zsh/site-functions/_weir", "/usr/share/licenses/weir/NOTICE")
		if out := must(t, "", "rpm", "-qpc", rpm); !strings.Contains(out, "/etc/weir/policy.yaml\n") {
			t.Errorf("configuration: %s", out)
		}
		root := t.TempDir()
		must(t, "", "rpm", "-i", "--root", root, "--nodeps", "--noscripts", "--ignoreos", rpm)
		installed(t, root)
		for i, script := range regexp.MustCompile(`(?m)^(?:pre|post)(?:un)?install scriptlet .*$`).Split(must(t, "", "rpm", "-qp", "--scripts", rpm), -1)[1:] {
			cmd := exec.Command("sh", "-n")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(script, "@") {
				t.Errorf("script %d: %s\n%s", i, out, script)
			}
		}
	})
	t.Run("materials", func(t *testing.T) {
		bom := new(cyclonedx.BOM)
		if err := cyclonedx.NewBOMDecoder(bytes.NewReader(first["weir.cdx.json"]), cyclonedx.BOMFileFormatJSON).Decode(bom); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range *bom.Components {
			if c.Type == cyclonedx.ComponentTypeLibrary {
				names = append(names, c.Name+"@"+c.Version)
			}
		}
		for line := range strings.Lines(must(t, dist, "go", "version", "-m", "weir", "weir-hook", "weir-fleet", "weir-otel")) {
			if f := strings.Fields(line); f[0] == "dep" && !slices.Contains(names, f[1]+"@"+f[2]) {
				t.Errorf("%s is not in the bill of materials", f[1])
			}
		}
		if len(names) < 40 {
			t.Errorf("only %q", names)
		}
	})
	if debs := os.Getenv("VMTEST_DEBS"); debs != "" {
		keep(t, dist, deb, debs)
	}
}

func holds(t *testing.T, list string, files ...string) {
	t.Helper()
	for _, f := range files {
		if !strings.Contains(list, f) {
			t.Errorf("%s is missing among\n%s", f, list)
		}
	}
}

// installed looks at the files of a package as its users do.
func installed(t *testing.T, root string) {
	t.Helper()
	for _, page := range []string{"weir", "weir-hook", "weir-fleet", "weir-otel", "weir-guard", "weir-run"} {
		if out := must(t, "", "sh", "-c", fmt.Sprintf("zcat %s/usr/share/man/man1/%s.1.gz | mandoc -T utf8 | col -b", root, page)); !strings.Contains(out, "SYNOPSIS") {
			t.Errorf("%s(1): %s", page, out)
		}
	}
	for _, unit := range []string{"weir.service", "weir-watch.service"} {
		text, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system", unit))
		if err != nil || !bytes.Contains(text, []byte("ExecStart=/usr/bin/weir ")) || bytes.Contains(text, []byte("/usr/local")) {
			t.Errorf("%s: %v\n%s", unit, err, text)
		}
	}
	must(t, root, "usr/bin/weir", "policy", "validate", "etc/weir/policy.yaml")
	must(t, root, "bash", "-n", "usr/share/bash-completion/completions/weir")
	if info, err := os.Stat(filepath.Join(root, "etc/weir/policy.yaml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the policy: %v, %v", info, err)
	}
}

// keep makes the packages that the group deb of test/vm installs: two versions, and a third of another ABI.
func keep(t *testing.T, dist, deb, debs string) {
	t.Helper()
	if err := os.MkdirAll(debs, 0o755); err != nil {
		t.Fatal(err)
	}
	var told struct{ ABI int }
	if err := json.Unmarshal([]byte(must(t, dist, "./weir", "version", "--json")), &told); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"old": {"-version", "v1.0.0"}, "new": {"-version", "v2.0.0"}, "abi": {"-version", "v3.0.0", "-abi", fmt.Sprint(told.ABI + 1)}} {
		must(t, dist, "rm", "-f", deb)
		must(t, dist, "env", append(append([]string{"SOURCE_DATE_EPOCH=1", "go", "run", "-C", "../scripts/pack", "."}, args...), dist)...)
		deb = filepath.Join(dist, "weir_"+strings.TrimPrefix(args[1], "v")+"_amd64.deb")
		data, err := os.ReadFile(deb)
		if err == nil {
			err = os.WriteFile(filepath.Join(debs, name+".deb"), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
