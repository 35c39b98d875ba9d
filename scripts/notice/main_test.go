package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNotice: NOTICE is that of the modules that the programs are built of.
func TestNotice(t *testing.T) {
	want, err := notice()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Error("NOTICE is of other modules: run `go generate ./scripts/notice` (-want +got):\n" + diff)
	}
}

// TestAllowed: the licence of each module lets it be part of a program under Apache-2.0.
func TestAllowed(t *testing.T) {
	parts, err := modules("weir/cmd/...")
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "(BSD-3-Clause OR GPL-2.0-only)"}
	for _, p := range parts {
		for licence := range strings.SplitSeq(p.licence, " AND ") {
			if !slices.Contains(allowed, licence) {
				t.Errorf("%s has the licence %s", p.path, p.licence)
			}
		}
	}
	if len(parts) < 40 {
		t.Errorf("%d modules were found", len(parts))
	}
}

// TestUnknown: a module whose licence nobody can tell is not passed over.
func TestUnknown(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("Ask me.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if p, err := of("example.org/secret", dir); err == nil {
		t.Errorf("the licence is %q", p.licence)
	}
}

// TestKernelPrograms: each source of the kernel's programs says its licence in its first line.
func TestKernelPrograms(t *testing.T) {
	files, err := filepath.Glob("../../bpf/*.[ch]")
	if err != nil || len(files) < 15 {
		t.Fatalf("find the sources: %v, %v", files, err)
	}
	says := regexp.MustCompile(`^/\* SPDX-License-Identifier: GPL-2\.0-only OR BSD-2-Clause \*/\n`)
	for _, file := range files {
		if data, err := os.ReadFile(file); err != nil || filepath.Base(file) != "vmlinux.h" && !says.Match(data) {
			t.Errorf("%s does not begin with its licence (%v)", file, err)
		}
	}
}
