package main

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestTool: a program that links only the classifier is static, small, and answers.
func TestTool(t *testing.T) {
	file := filepath.Join(t.TempDir(), "classifytool")
	build := exec.Command("go", "build", "-trimpath", "-o", file, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(8 << 20); info.Size() > most {
		t.Errorf("the program has %d bytes, want at most %d", info.Size(), most)
	}
	program, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a %v segment, want a static one", p.Type)
		}
	}
	for command, want := range map[string]int{"ls | wc -l": 0, "./ls": 1, "ls; curl x": 2} {
		err := exec.Command(file, command).Run()
		var exit *exec.ExitError
		if got := 0; err != nil {
			if !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got = exit.ExitCode(); got != want {
				t.Errorf("%q exits with %d, want %d", command, got, want)
			}
		} else if want != 0 {
			t.Errorf("%q exits with 0, want %d", command, want)
		}
	}
}
