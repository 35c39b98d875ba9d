package vm

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree prints results one a line, indented, as NAME:ACTION.
func tree(r *result, indent string) string {
	var b strings.Builder
	for _, s := range r.subs {
		fmt.Fprintf(&b, "%s%s:%s\n%s", indent, s.name, s.action, tree(s, indent+" "))
	}
	return b.String()
}

func TestParse(t *testing.T) {
	const mark = "\x16"
	for _, tt := range []struct {
		name, output, want, stray string
	}{
		{"nothing", "", "", ""},
		{"a refusal", "refuse to run: no\n", "", "refuse to run: no\n"},
		{
			"passes and failures",
			mark + "=== RUN   TestA\n" + mark + "=== RUN   TestA/x/y\n" + mark + "--- PASS: TestA/x/y (0.00s)\n" + mark + "=== NAME  TestA\n" +
				mark + "--- PASS: TestA (0.10s)\n" + mark + "=== NAME  \n" + mark + "=== RUN   TestB\n    b_test.go:1: wrong\n" + mark +
				"--- FAIL: TestB (0.20s)\n" + mark + "=== NAME  \nFAIL\n",
			"TestA:pass\n x/y:pass\nTestB:fail\n", "FAIL\n",
		},
		{
			"a panic", mark + "=== RUN   TestA\n" + mark + "--- FAIL: TestA (0.00s)\npanic: oh\n\ngoroutine 1 [running]:\n",
			"TestA:\n", "",
		},
		{"a test cut off", mark + "=== RUN   TestA\nhalf a li", "TestA:\n", ""},
		{"a skip", mark + "=== RUN   TestA\n" + mark + "--- SKIP: TestA (0.00s)\n" + mark + "=== NAME  \nPASS\n", "TestA:skip\n", "PASS\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, err := parse(t.Context(), []byte(tt.output))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tree(root, "")); diff != "" {
				t.Error(diff)
			}
			if got := root.output.String(); !strings.Contains(got, tt.stray) {
				t.Errorf("stray output = %q, want %q", got, tt.stray)
			}
		})
	}
}

func TestPrefixer(t *testing.T) {
	var b bytes.Buffer
	w := prefixer(&b, "6.1 x")
	fmt.Fprint(w, "\x16=== RUN   Te")
	fmt.Fprint(w, "stA\r\nno end")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("[6.1 x] === RUN   TestA\n[6.1 x] no end\n", b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestConsole(t *testing.T) {
	for _, tt := range []struct{ name, printed, want string }{
		{"quiet", "[    1.0] reboot: Power down\r\n", ""},
		{"an oops in two writes", "[    1.0] BU|G: unable to handle page fault\r\n[    1.1] Call Trace:\r\n", "[    1.0] BUG: unable to handle page fault"},
		{"a panic", "x\n[    2.0] Kernel panic - not syncing: Attempted to kill init!\n", "[    2.0] Kernel panic - not syncing: Attempted to kill init!"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &console{}
			for part := range strings.SplitSeq(tt.printed, "|") {
				fmt.Fprint(c, part)
			}
			if got := c.trouble(); got != tt.want {
				t.Errorf("trouble = %q, want %q", got, tt.want)
			}
		})
	}
	c := &console{}
	for i := range 100 {
		fmt.Fprintf(c, "line %d\r\n", i)
	}
	if got := c.tail(); strings.Contains(got, "line 39\n") || !strings.Contains(got, "line 40\n") || !strings.HasSuffix(got, "line 99") {
		t.Errorf("tail = %q", got)
	}
}
