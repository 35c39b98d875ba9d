//go:build vmguest

package containers

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Images that are imported, never pulled.
const (
	pauseImage = "weir.test/pause:1"
	agentImage = "weir.test/agent:1"
)

// file is one of an image; a link if it leads somewhere.
type file struct {
	name, link string
	mode       int64
	data       []byte
}

// imported puts an image into the runtime's store.
func (h *host) imported(name string, files []file) {
	h.t.Helper()
	archive := filepath.Join(h.t.TempDir(), "image.tar")
	if err := os.WriteFile(archive, archived(h.t, name, files), 0o600); err != nil {
		h.t.Fatal(err)
	}
	h.ctr("-n", criNamespace, "images", "import", archive)
}

// archived is an image as docker save writes it.
func archived(t *testing.T, name string, files []file) []byte {
	layer := packed(t, files)
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{"Entrypoint": []string{"/" + files[0].name}, "Env": []string{"PATH=/bin:" + programs}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		t.Fatal(err)
	}
	return packed(t, []file{{name: "manifest.json", mode: 0o644, data: manifest}, {name: "config.json", mode: 0o644, data: config}, {name: "layer.tar", mode: 0o644, data: layer}})
}

func packed(t *testing.T, files []file) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		head := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), Typeflag: tar.TypeReg}
		switch {
		case f.link != "":
			head.Typeflag, head.Linkname = tar.TypeSymlink, f.link
		case f.mode&0o40000 != 0:
			head.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// pauseProgram is a static program that sleeps for ever: what a sandbox runs.
func pauseProgram() []byte {
	const base, size = 0x400000, 64 + 56
	code := []byte{
		0xb8, 34, 0, 0, 0, // mov eax, pause
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // again
	}
	var out bytes.Buffer
	for _, part := range []any{
		[16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, uint16(2), uint16(62), uint32(1), uint64(base + size), uint64(64), uint64(0), // an executable for x86-64
		uint32(0), uint16(64), uint16(56), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), uint64(size + len(code)), uint64(size + len(code)), uint64(0x1000), // loaded to be run
	} {
		_ = binary.Write(&out, binary.LittleEndian, part) // a buffer takes everything
	}
	return append(out.Bytes(), code...)
}

// agentFiles are a shell and a secret.
func agentFiles(t *testing.T) []file {
	t.Helper()
	data, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	files := []file{{name: "bin/busybox", mode: 0o755, data: data}}
	for _, name := range []string{"sh", "sleep", "cat", "echo", "ls", "stat", "id", "mount"} {
		files = append(files, file{name: "bin/" + name, mode: 0o777, link: "busybox"})
	}
	return append(files, file{name: "tmp/", mode: 0o41777}, file{name: "secret/", mode: 0o40755}, file{name: "secret/key", mode: 0o644, data: []byte("s3cret\n")})
}
