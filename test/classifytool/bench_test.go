package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkStart is the time from the start of the program to its end, for one command.
func BenchmarkStart(b *testing.B) {
	file := filepath.Join(b.TempDir(), "classifytool")
	build := exec.Command("go", "build", "-trimpath", "-o", file, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	for b.Loop() {
		if err := exec.Command(file, "find . -name '*.go' | xargs grep -n a").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
