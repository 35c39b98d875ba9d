package vm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kernelTree makes a repository with one kernel of our own invention.
func kernelTree(t *testing.T, files map[string]string) (repo string) {
	t.Helper()
	repo = t.TempDir()
	for name, content := range files {
		path := filepath.Join(repo, ".cache/vm/kernels/9.9", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return repo
}

func TestKernels(t *testing.T) {
	repo := kernelTree(t, map[string]string{"release": "9.9.1-amd64\n"})
	for _, tt := range []struct{ name, env, want, err string }{
		{"one", "9.9", "9.9.1-amd64", ""},
		{"with blanks", " 9.9 ", "9.9.1-amd64", ""},
		{"unknown", "9.9,7.0", "", `find kernel "7.0": have 9.9: fix VMTEST_KERNELS or run scripts/vm`},
		{"a trailing comma", "9.9,", "", `find kernel "": have 9.9: fix VMTEST_KERNELS or run scripts/vm`},
		{"default", "", "", `find kernel "6.1": have 9.9: fix VMTEST_KERNELS or run scripts/vm`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("VMTEST_KERNELS", tt.env)
			ks, err := Kernels(repo)
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Fatalf("err = %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(ks) != 1 || ks[0].Release != tt.want {
				t.Errorf("kernels = %+v", ks)
			}
		})
	}
}

func TestModuleFiles(t *testing.T) {
	const dep = "fs/ext4/ext4.ko: lib/crc16.ko fs/jbd2.ko\nfs/jbd2.ko: lib/crc16.ko\nlib/crc16.ko:\n" +
		"d/virtio_blk.ko: d/virtio.ko\nd/virtio.ko:\nd/virtio_console.ko: d/virtio.ko\nc/crc32c_generic.ko:\n9/9p.ko: 9/9pnet.ko\n" +
		"9/9pnet.ko:\n9/9pnet-virtio.ko: d/virtio.ko 9/9pnet.ko\n"
	for _, tt := range []struct {
		name, builtin string
		want          []string
		err           string
	}{
		{"needs first, one built in", "kernel/d/virtio_pci.ko\n", []string{
			"d/virtio.ko", "d/virtio_blk.ko", "d/virtio_console.ko", "c/crc32c_generic.ko", "fs/jbd2.ko", "lib/crc16.ko", "fs/ext4/ext4.ko",
			"9/9pnet.ko", "9/9p.ko", "9/9pnet-virtio.ko",
		}, ""},
		{"one is nowhere", "kernel/d/other.ko\n", nil, "find module virtio_pci of kernel 9.9.1: neither a module nor built in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := kernelTree(t, map[string]string{
				"release": "9.9.1", "lib/modules/9.9.1/modules.dep": dep, "lib/modules/9.9.1/modules.builtin": tt.builtin,
			})
			k, err := FindKernel(repo, "9.9")
			if err != nil {
				t.Fatal(err)
			}
			got, err := moduleFiles(k)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("err = %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
