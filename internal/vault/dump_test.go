package vault

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain is also the process whose core files are asked about.
func TestMain(m *testing.M) {
	if os.Getenv("WEIR_TEST_DUMPS") == "" {
		os.Exit(m.Run())
	}
	if err := NoDumps(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_CORE, &limit)
	dumpable, errno := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	fmt.Printf("core %d %d, dumpable %d, %v %v\n", limit.Cur, limit.Max, dumpable, err, errno)
	os.Exit(0)
}

// V3: who holds secrets leaves no core file.
func TestNoDumpsV3(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "WEIR_TEST_DUMPS=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "core 0 0, dumpable 0, <nil> <nil>") {
		t.Errorf("%s %v", out, err)
	}
}
