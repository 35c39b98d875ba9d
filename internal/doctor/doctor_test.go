package doctor

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"
)

const goodMounts = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\nbpf /sys/fs/bpf bpf rw 0 0\n"

// gatewayRoute is a line without a gateway, and the default route with one.
const gatewayRoute = "fe800000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001   eth0.7\n" +
	"00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003   eth0.7\n"

// good is the tree of a machine that has all.
func good(t *testing.T) map[string]string {
	t.Helper()
	config := ""
	for _, o := range options() {
		config += o.name + "=y\n"
	}
	return map[string]string{
		"proc/sys/kernel/osrelease":                           "6.1.0-28-amd64\n",
		"proc/self/mounts":                                    goodMounts,
		"proc/sys/net/core/bpf_jit_enable":                    "1\n",
		"sys/kernel/security/lockdown":                        "[none] integrity confidentiality\n",
		"boot/config-6.1.0-28-amd64":                          config,
		"sys/kernel/btf/vmlinux":                              types(t, ""),
		"sys/module/tcp_diag/refcnt":                          "0\n",
		"proc/sys/net/ipv6/conf/eth0.7/router_probe_interval": "60\n",
		"proc/sys/net/ipv6/conf/all/forwarding":               "0\n",
		"lib/modules/6.1.0-28-amd64/modules.dep":              "kernel/net/ipv4/udp_diag.ko: kernel/net/ipv4/inet_diag.ko\n",
	}
}

// types is type information with all hooks but one.
func types(t *testing.T, but string) string {
	t.Helper()
	b, err := btf.NewBuilder(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hooks() {
		if h.name == but {
			continue
		}
		proto := &btf.FuncProto{Return: new(btf.Void)}
		var typ btf.Type = &btf.Func{Name: h.name, Type: proto}
		if h.tracepoint {
			typ = &btf.Typedef{Name: "btf_trace_" + h.name, Type: &btf.Pointer{Target: proto}}
		}
		if _, err := b.Add(typ); err != nil {
			t.Fatal(err)
		}
	}
	data, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func zipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func examine(t *testing.T, files map[string]string, o Options) Report {
	t.Helper()
	o.Root = t.TempDir()
	o.PinDir = "/sys/fs/bpf/weir"
	for name, text := range files {
		path := filepath.Join(o.Root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Examine(o)
}

func TestExamine(t *testing.T) {
	const release = "proc/sys/kernel/osrelease"
	const config = "boot/config-6.1.0-28-amd64"
	for _, tc := range []struct {
		name   string
		change func(files map[string]string, o *Options)
		check  string // the one that is not OK
		want   Result
		found  string
	}{
		{"all is there", func(map[string]string, *Options) {}, "", OK, ""},
		{"no root", func(_ map[string]string, o *Options) { o.EUID = 1000 }, "root", Fail, "uid 1000"},
		{"kernel 5.10", func(f map[string]string, _ *Options) {
			f[release] = "5.10.0-32-amd64\n"
			f["boot/config-5.10.0-32-amd64"] = f[config]
			f["lib/modules/5.10.0-32-amd64/modules.dep"] = "/udp_diag.ko:"
		}, "kernel", Fail, "Linux 5.10.0-32-amd64"},
		{"kernel 6.0", func(f map[string]string, _ *Options) {
			f[release] = "6.0-rc1\n"
			f["proc/config.gz"] = zipped(t, f[config])
			f["sys/module/udp_diag/refcnt"] = ""
		}, "kernel", Fail, "6.0-rc1"},
		{"no kernel version", func(f map[string]string, _ *Options) {
			f[release] = "next\n"
			f["proc/config.gz"] = zipped(t, f[config])
			f["lib/modules/next/modules.builtin"] = "kernel/net/ipv4/udp_diag.ko\n"
		}, "kernel", Fail, `"next"`},
		{"cgroup v1 only", func(f map[string]string, _ *Options) {
			f["proc/self/mounts"] = "cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\nbpf /sys/fs/bpf bpf rw 0 0\n"
		}, "cgroup v2", Fail, "version 1 only"},
		{"hybrid", func(f map[string]string, _ *Options) {
			f["proc/self/mounts"] = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\ncgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\nbpf /sys/fs/bpf bpf rw 0 0\n"
		}, "cgroup v2", Fail, "hybrid"},
		{"cgroup v2 elsewhere", func(f map[string]string, _ *Options) {
			f["proc/self/mounts"] = strings.Replace(goodMounts, "/sys/fs/cgroup", "/mnt", 1)
		}, "cgroup v2", Fail, "at /mnt"},
		{"no cgroups", func(f map[string]string, _ *Options) { f["proc/self/mounts"] = "bpf /sys/fs/bpf bpf rw 0 0\n" }, "cgroup v2", Fail, "not mounted"},
		{"no bpffs", func(f map[string]string, _ *Options) {
			f["proc/self/mounts"] = strings.Replace(goodMounts, "/sys/fs/bpf", "/sys/fs/bp", 1)
		}, "bpf file system", Fail, "none above /sys/fs/bpf/weir"},
		{"no compiler", func(f map[string]string, _ *Options) { f["proc/sys/net/core/bpf_jit_enable"] = "0\n" }, "BPF compiler", Fail, "is 0"},
		{"lockdown", func(f map[string]string, _ *Options) {
			f["sys/kernel/security/lockdown"] = "none integrity [confidentiality]\n"
		}, "lockdown", Fail, "confidentiality"},
		{"full preemption, now", func(f map[string]string, _ *Options) {
			f["sys/kernel/debug/sched/preempt"], f["proc/cmdline"] = "none voluntary (full)\n", "quiet preempt=none\n"
		}, "preemption", Warn, "full"},
		{"full preemption, booted", func(f map[string]string, _ *Options) { f["proc/cmdline"] = "quiet preempt=full ro\n" }, "preemption", Warn, "full"},
		{"full preemption, built", func(f map[string]string, _ *Options) { f[config] += "CONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y\n" }, "preemption", Warn, "full"},
		{"lazy preemption", func(f map[string]string, _ *Options) { f[config] += "CONFIG_PREEMPT_LAZY=y\n" }, "preemption", Warn, "lazy"},
		{"voluntary preemption, booted", func(f map[string]string, _ *Options) {
			f["proc/cmdline"] = "preempt=voluntary\n"
			f[config] += "CONFIG_PREEMPT=y\n"
		}, "", OK, ""},
		{"an option is off", func(f map[string]string, _ *Options) {
			f[config] = strings.Replace(f[config], "CONFIG_CGROUP_BPF=y", "# CONFIG_CGROUP_BPF is not set", 1)
		}, "configuration", Fail, "lacks CONFIG_CGROUP_BPF"},
		{"sockets cannot be closed", func(f map[string]string, _ *Options) {
			f[config] = strings.Replace(f[config], "CONFIG_INET_DIAG_DESTROY=y", "", 1)
		}, "configuration", Warn, "lacks CONFIG_INET_DIAG_DESTROY"},
		{"no configuration", func(f map[string]string, _ *Options) { delete(f, config) }, "configuration", Warn, "no file tells it"},
		{"a torn configuration", func(f map[string]string, _ *Options) {
			f["proc/config.gz"] = zipped(t, f[config])[:20]
			delete(f, config)
		}, "configuration", Warn, "/proc/config.gz: unexpected EOF"},
		{"no BTF", func(f map[string]string, _ *Options) { delete(f, "sys/kernel/btf/vmlinux") }, "BTF", Fail, "there is no /sys/kernel/btf/vmlinux"},
		{"broken BTF", func(f map[string]string, _ *Options) { f["sys/kernel/btf/vmlinux"] = "nonsense" }, "BTF", Fail, "cannot be read"},
		{"B117 no function tracing", func(f map[string]string, _ *Options) {
			f["proc/sys/kernel/ftrace_enabled"] = "0\n"
		}, "function tracing", Fail, "kernel.ftrace_enabled is 0"},
		{"a function is missing", func(f map[string]string, _ *Options) {
			f["sys/kernel/btf/vmlinux"] = types(t, "security_socket_sendmsg")
		}, "hooks", Fail, "missing: security_socket_sendmsg"},
		{"a tracepoint is missing", func(f map[string]string, _ *Options) {
			f["sys/kernel/btf/vmlinux"] = types(t, "cgroup_mkdir")
		}, "hooks", Fail, "missing: cgroup_mkdir"},
		{"B113 a function is missing that only some kernels have", func(f map[string]string, _ *Options) {
			f["sys/kernel/btf/vmlinux"] = types(t, "security_setselfattr")
		}, "", OK, ""},
		// B82
		{"an IPv6 gateway", func(f map[string]string, _ *Options) { f["proc/net/ipv6_route"] = gatewayRoute }, "IPv6 gateways", Warn, "those of eth0.7 by itself"},
		{"an IPv6 gateway that is asked for seldom", func(f map[string]string, _ *Options) {
			f["proc/net/ipv6_route"] = gatewayRoute
			f["proc/sys/net/ipv6/conf/eth0.7/router_probe_interval"] = "100000\n"
		}, "", OK, ""},
		{"an IPv6 router", func(f map[string]string, _ *Options) {
			f["proc/net/ipv6_route"] = gatewayRoute
			f["proc/sys/net/ipv6/conf/all/forwarding"] = "1\n"
		}, "", OK, ""},
		{"no modules", func(f map[string]string, _ *Options) {
			delete(f, "lib/modules/6.1.0-28-amd64/modules.dep")
		}, "socket diagnosis", Fail, "missing: udp_diag"},
		{"a sensor that does not answer", func(_ map[string]string, o *Options) {
			o.Sensor = func() (int, error) { return 0, errors.New("no answer") }
		}, "sensor", Warn, "no answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files, o := good(t), Options{Sensor: func() (int, error) { return 0, nil }}
			tc.change(files, &o)
			r := examine(t, files, o)
			var bad []string
			for _, c := range r {
				if c.Result == OK {
					continue
				}
				bad = append(bad, c.Name)
				if c.Result != tc.want || !strings.Contains(c.Found, tc.found) || c.Lost == "" || c.Do == "" {
					t.Errorf("got %+v, want %s with %q", c, tc.want, tc.found)
				}
			}
			var want []string
			if tc.check != "" {
				want = []string{tc.check}
			}
			if diff := cmp.Diff(want, bad); diff != "" {
				t.Error("checks that are not ok (-want +got):\n" + diff)
			}
			if got := r.Worst(); got != tc.want {
				t.Errorf("the worst is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestFoundInForce(t *testing.T) {
	files := good(t)
	files["sys/fs/bpf/weir/config"] = ""
	r := examine(t, files, Options{Sensor: func() (int, error) { return 77, nil }})
	want := map[string]string{
		"pins":   "in force from /sys/fs/bpf/weir; the next sensor adopts it, `weir detach` removes it",
		"sensor": "runs, pid 77",
	}
	for _, c := range r {
		if found, ok := want[c.Name]; ok && c.Found != found {
			t.Errorf("%s: got %q, want %q", c.Name, c.Found, found)
		}
	}
}

// An empty machine fails in all checks that read it, and breaks none.
func TestNothingThere(t *testing.T) {
	if r := Examine(Options{Root: t.TempDir(), PinDir: "/sys/fs/bpf/weir"}); r.Worst() != Fail {
		t.Error(r)
	}
}

// TestEveryHook: the doctor looks for each function and trace point that a program is attached to, and for no other.
func TestEveryHook(t *testing.T) {
	files, err := filepath.Glob("../../bpf/*.bpf.c")
	if err != nil || files == nil {
		t.Fatal(files, err)
	}
	section := regexp.MustCompile(`(?m)^SEC\("(fentry|fexit|fmod_ret|tp_btf)/(\w+)"\)`)
	var want, got []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range section.FindAllStringSubmatch(string(b), -1) {
			want = append(want, fmt.Sprint(m[2], m[1] == "tp_btf"))
		}
	}
	for _, h := range hooks() {
		got = append(got, fmt.Sprint(h.name, h.tracepoint))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Error(diff)
	}
}
