package vm

import (
	"context"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// buildNext builds weir as a later version would be: it calls itself so, and each of its BPF programs is another one to the
// kernel, though it does the same.
func buildNext(t *testing.T, host *Host, file string) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	put := func(path string, data []byte) {
		changed := filepath.Join(dir, fmt.Sprint(len(replace), filepath.Ext(path)))
		if err := os.WriteFile(changed, data, 0o600); err != nil {
			t.Fatal(err)
		}
		replace[path] = changed
	}
	objects, err := filepath.Glob(filepath.Join(host.Repo, "internal/*/*_bpfel.o"))
	deeper, err2 := filepath.Glob(filepath.Join(host.Repo, "internal/*/*/*_bpfel.o"))
	objects = append(objects, deeper...)
	if err != nil || err2 != nil || len(objects) == 0 {
		t.Fatalf("no BPF objects: %v, %v", err, err2)
	}
	for _, path := range objects {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		retag(t, path, data)
		put(path, data)
	}
	path := filepath.Join(host.Repo, "cmd/sensor/version.go")
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	next := strings.Replace(string(source), `return "devel"`, `return "next"`, 1)
	if next == string(source) {
		t.Fatalf("%s: the version is not where it was", path)
	}
	put(path, []byte(next))
	overlay := filepath.Join(dir, "overlay.json")
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(overlay, data, 0o600)
	}
	if err == nil {
		err = host.Build(context.Background(), file, "./cmd/sensor", "amd64", false, "-overlay", overlay)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// retag changes one instruction of each program in an object: dst = imm in 64 bits becomes the same in 32 bits, or the
// other way round, which is the same value for one that is not negative.
func retag(t *testing.T, path string, data []byte) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const mov64, mov32, size = 0xb7, 0xb4, 8
	for _, s := range f.Sections {
		if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_EXECINSTR == 0 || s.Size == 0 {
			continue
		}
		changed := false
		for at := s.Offset; at < s.Offset+s.Size && !changed; at += size {
			in := data[at : at+size]
			if in[0] == 0x18 {
				at += size // takes two
			} else if (in[0] == mov64 || in[0] == mov32) && in[7] < 0x80 {
				in[0], changed = in[0]^mov64^mov32, true
			}
		}
		if !changed {
			t.Fatalf("%s: nothing to change in %s", path, s.Name)
		}
	}
}
