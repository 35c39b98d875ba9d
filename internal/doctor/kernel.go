package doctor

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// The oldest kernel that has all that the sensor needs.
const (
	minMajor = 6
	minMinor = 1
)

func (m machine) version() Check {
	c := Check{Name: "kernel", Result: OK, Found: "Linux " + m.release}
	major, rest, _ := strings.Cut(m.release, ".")
	minor, _, _ := strings.Cut(rest, ".")
	minor = strings.TrimRight(minor, "+-abcdefghijklmnopqrstuvwxyz")
	maj, err1 := strconv.Atoi(major)
	mnr, err2 := strconv.Atoi(minor)
	switch {
	case err1 != nil || err2 != nil:
		c.Result, c.Found = Fail, fmt.Sprintf("the release %q", m.release)
		c.Lost, c.Do = "its version is unknown", fmt.Sprintf("run Linux %d.%d or newer", minMajor, minMinor)
	case maj < minMajor || maj == minMajor && mnr < minMinor:
		c.Result = Fail
		c.Lost, c.Do = "it is too old to enforce", fmt.Sprintf("run Linux %d.%d or newer", minMajor, minMinor)
	}
	return c
}

// mount is a line of /proc/mounts.
type mount struct{ dir, kind, options string }

func (m machine) mounts() []mount {
	data, err := os.ReadFile(m.path("proc/self/mounts"))
	if err != nil {
		return nil
	}
	var list []mount
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) >= 4 {
			list = append(list, mount{f[1], f[2], f[3]})
		}
	}
	return list
}

const cgroupRoot = "/sys/fs/cgroup"

func (m machine) cgroup() Check {
	const boot = "boot with systemd.unified_cgroup_hierarchy=1"
	fail := Check{Name: "cgroup v2", Result: Fail, Lost: "nothing can be guarded", Do: boot}
	other, v1 := "", false
	for _, mt := range m.mounts() {
		switch {
		case mt.kind == "cgroup2" && mt.dir == cgroupRoot:
			return Check{Name: "cgroup v2", Result: OK, Found: "at " + cgroupRoot}
		case mt.kind == "cgroup2":
			other = mt.dir
		case mt.kind == "cgroup":
			v1 = true
		}
	}
	switch {
	case other != "" && v1:
		fail.Found = "hybrid: version 1 controllers, and version 2 at " + other
	case other != "":
		fail.Found, fail.Do = "at "+other, "mount it at "+cgroupRoot
	case v1:
		fail.Found = "version 1 only"
	default:
		fail.Found, fail.Do = "not mounted", "mount -t cgroup2 none "+cgroupRoot
	}
	return fail
}

func (m machine) bpffs() Check {
	for _, mt := range m.mounts() {
		if rel, err := filepath.Rel(mt.dir, m.pins); mt.kind == "bpf" && err == nil && filepath.IsLocal(rel) {
			return Check{Name: "bpf file system", Result: OK, Found: "at " + mt.dir}
		}
	}
	return Check{
		Name: "bpf file system", Result: Fail, Found: fmt.Sprintf("none above %s", m.pins),
		Lost: "what is denied would be open as soon as the sensor stops", Do: "mount -t bpf bpf /sys/fs/bpf",
	}
}

func (m machine) jit() Check {
	if m.line("proc/sys/net/core/bpf_jit_enable") == "0" {
		return Check{
			Name: "BPF compiler", Result: Fail, Found: "net.core.bpf_jit_enable is 0",
			Lost: "no program can be attached to a kernel function", Do: "sysctl net.core.bpf_jit_enable=1",
		}
	}
	return Check{Name: "BPF compiler", Result: OK, Found: "on"}
}

// tracing: with it off the kernel calls no program at its functions, though they stay attached (B117).
func (m machine) tracing() Check {
	if m.line("proc/sys/kernel/ftrace_enabled") == "0" {
		return Check{
			Name: "function tracing", Result: Fail, Found: "kernel.ftrace_enabled is 0",
			Lost: "the kernel calls no program at its functions, and only packets are checked", Do: "sysctl kernel.ftrace_enabled=1",
		}
	}
	return Check{Name: "function tracing", Result: OK, Found: "on"}
}

// Tracing says what is wrong with it, if anything is.
func Tracing() error {
	if c := at("/", "").tracing(); c.Result != OK {
		return errors.New(c.String())
	}
	return nil
}

func (m machine) lockdown() Check {
	if strings.Contains(m.line("sys/kernel/security/lockdown"), "[confidentiality]") {
		return Check{
			Name: "lockdown", Result: Fail, Found: "confidentiality",
			Lost: "no program may read the kernel's memory", Do: "boot with lockdown=integrity or without it",
		}
	}
	return Check{Name: "lockdown", Result: OK, Found: "does not forbid it"}
}

// preemption: where the kernel preempts itself, a task can come in between while one of the programs runs on its CPU, and is not judged by it:
// __bpf_prog_enter_recur of kernel/bpf/trampoline.c passes it over.
func (m machine) preemption() Check {
	model := m.preempts()
	if model == "none" || model == "voluntary" || model == "" {
		return Check{Name: "preemption", Result: OK, Found: cmp.Or(model, "not known to be full")}
	}
	return Check{
		Name: "preemption", Result: Warn, Found: model,
		Lost: "a process that preempts another within the same check on one CPU passes that check", Do: "boot with preempt=voluntary",
	}
}

// preempts is the kernel's model of preemption, as it is, as it was booted, or as it was built; empty: nobody says.
func (m machine) preempts() string {
	if _, rest, ok := strings.Cut(m.line("sys/kernel/debug/sched/preempt"), "("); ok {
		model, _, _ := strings.Cut(rest, ")")
		return model
	}
	for _, word := range strings.Fields(m.line("proc/cmdline")) {
		if model, ok := strings.CutPrefix(word, "preempt="); ok {
			return model
		}
	}
	set, _, err := m.readConfig()
	if err != nil {
		return ""
	}
	for _, built := range []struct{ option, model string }{
		{"CONFIG_PREEMPT_RT", "full"}, {"CONFIG_PREEMPT", "full"}, {"CONFIG_PREEMPT_LAZY", "lazy"}, {"CONFIG_PREEMPT_VOLUNTARY", "voluntary"},
	} {
		if set[built.option] {
			return built.model
		}
	}
	return ""
}

// probed is how often, in s, the kernel may ask for a gateway without saying much.
const probed = 100000

// gateways: of an IPv6 gateway that does not answer the kernel asks by itself when somebody looks for a way through it (rt6_probe of
// net/ipv6/route.c), unless it forwards IPv6 itself (B82).
func (m machine) gateways() Check {
	var asked, set []string
	routes, _ := os.ReadFile(m.path("proc/net/ipv6_route")) // none: no IPv6
	for line := range strings.Lines(string(routes)) {
		const flags, device, gateway = 8, 9, 2 // fields, and RTF_GATEWAY of linux/route.h
		f := strings.Fields(line)
		if len(f) <= device {
			continue
		}
		bits, _ := strconv.ParseUint(f[flags], 16, 32)
		name := "net.ipv6.conf." + strings.ReplaceAll(f[device], ".", "/") + ".router_probe_interval"
		every, err := strconv.Atoi(m.line("proc/sys/net/ipv6/conf/" + f[device] + "/router_probe_interval"))
		if bits&gateway != 0 && err == nil && every < probed && !slices.Contains(asked, f[device]) {
			asked, set = append(asked, f[device]), append(set, fmt.Sprintf("%s=%d", name, probed))
		}
	}
	if len(asked) == 0 || m.line("proc/sys/net/ipv6/conf/all/forwarding") == "1" {
		return Check{Name: "IPv6 gateways", Result: OK, Found: "the kernel asks for none by itself"}
	}
	return Check{
		Name: "IPv6 gateways", Result: Warn, Found: "the kernel asks for those of " + strings.Join(asked, ", ") + " by itself while they do not answer",
		Lost: "a tainted container chooses when, which tells the link a bit each time", Do: "sysctl " + strings.Join(set, " "),
	}
}

// options of the kernel's configuration, with what is lost without each.
func options() []struct{ name, lost string } {
	return []struct{ name, lost string }{
		{"CONFIG_BPF_SYSCALL", "no program can be loaded"},
		{"CONFIG_BPF_JIT", "no program can be attached to a kernel function"},
		{"CONFIG_BPF_EVENTS", "commands cannot be seen"},
		{"CONFIG_CGROUP_BPF", "packets cannot be checked"},
		{"CONFIG_DEBUG_INFO_BTF", "programs cannot know the kernel's types"},
		{"CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS", "no program can be attached to a kernel function"},
		{"CONFIG_INET_DIAG_DESTROY", "sockets from before a taint stall instead of being closed"},
	}
}

func (m machine) config() Check {
	set, where, err := m.readConfig()
	if err != nil {
		return Check{
			Name: "configuration", Result: Warn, Found: err.Error(),
			Lost: "it could not be checked", Do: "install the kernel's config file in /boot",
		}
	}
	var missing, lost []string
	result := OK
	for _, o := range options() {
		if set[o.name] {
			continue
		}
		missing = append(missing, o.name)
		if !slices.Contains(lost, o.lost) {
			lost = append(lost, o.lost)
		}
		if o.name != "CONFIG_INET_DIAG_DESTROY" {
			result = Fail
		} else if result == OK {
			result = Warn
		}
	}
	if result == OK {
		return Check{Name: "configuration", Result: OK, Found: where}
	}
	return Check{
		Name: "configuration", Result: result, Found: where + " lacks " + strings.Join(missing, ", "),
		Lost: strings.Join(lost, "; "), Do: "run a kernel that has them, such as Debian's",
	}
}

// readConfig returns the options that are on, and the file that says so.
func (m machine) readConfig() (set map[string]bool, where string, err error) {
	for _, name := range []string{"/boot/config-" + m.release, "/lib/modules/" + m.release + "/config", "/proc/config.gz"} {
		f, err := os.Open(m.path(name))
		if err != nil {
			continue
		}
		defer f.Close()
		var r io.Reader = f
		if strings.HasSuffix(name, ".gz") {
			if r, err = gzip.NewReader(f); err != nil {
				return nil, "", fmt.Errorf("%s: %w", name, err)
			}
		}
		set = make(map[string]bool)
		lines := bufio.NewScanner(io.LimitReader(r, 16<<20))
		for lines.Scan() {
			if option, value, ok := strings.Cut(lines.Text(), "="); ok && (value == "y" || value == "m") {
				set[option] = true
			}
		}
		if err := lines.Err(); err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
		return set, name, nil
	}
	return nil, "", errors.New("no file tells it")
}

// hook is a place in the kernel that the sensor attaches to.
type hook struct {
	name       string
	tracepoint bool
	lost       string // empty: only some kernels have it and need it
}

func hooks() []hook {
	fn := func(name, lost string) hook { return hook{name, false, lost} }
	some := func(name string) hook { return hook{name: name} }
	tp := func(name, lost string) hook { return hook{name, true, lost} }
	const passed, moved = "sockets passed in from outside are not refused", "processes that leave their container are not seen"
	const told = "processes outside can be told something without a socket"
	const secret = "listed secret files taint nobody"
	const volumes = "directories that containers share carry no taint"
	const chosen = "a message chooses the device that it leaves by"
	return []hook{
		fn("security_socket_connect", "connects are not held"),
		fn("security_socket_create", "socket families are not limited"),
		fn("security_socket_sendmsg", "sends without connect are not judged"),
		fn("security_unix_stream_connect", "Unix sockets outside the container stay open"),
		fn("security_unix_may_send", "Unix datagram sockets outside the container stay open"),
		fn("security_file_receive", passed),
		fn("security_socket_accept", passed),
		fn("security_socket_bind", passed),
		fn("security_socket_getsockopt", passed),
		fn("security_socket_listen", passed),
		fn("security_socket_recvmsg", passed),
		fn("security_socket_shutdown", passed),
		fn("security_socket_post_create", passed),
		fn("unix_accept", passed),
		fn("ip_cmsg_send", chosen),
		fn("udp_sendmsg", "UDP of tainted containers is dropped"),
		fn("udpv6_sendmsg", "UDP of tainted containers over IPv6 is dropped"),
		fn("ip6_datagram_send_ctl", chosen),
		fn("sock_dequeue_err_skb", "what untrusted hosts quote in ICMP taints nobody"),
		fn("security_file_open", secret),
		fn("security_inode_link", secret),
		fn("security_inode_rename", secret),
		fn("security_inode_follow_link", secret),
		fn("security_inode_create", volumes),
		fn("security_inode_mkdir", volumes),
		fn("security_inode_mknod", volumes),
		fn("security_inode_symlink", volumes),
		fn("security_inode_unlink", volumes),
		fn("security_inode_rmdir", volumes),
		fn("security_inode_setattr", volumes),
		fn("security_inode_setxattr", volumes),
		fn("security_inode_removexattr", volumes),
		fn("security_inode_getxattr", volumes),
		fn("security_inode_listxattr", volumes),
		fn("security_inode_readlink", volumes),
		fn("security_path_notify", volumes),
		fn("security_sb_mount", volumes),
		fn("security_move_mount", volumes),
		fn("security_kernel_module_request", "the kernel looks names up for who asks it to"),
		fn("security_ptrace_access_check", "processes outside can be steered"),
		fn("security_ptrace_traceme", "processes outside can be steered"),
		fn("security_socket_setsockopt", "joining a multicast group tells the link something"),
		fn("security_key_alloc", "the kernel looks names up for who asks it to"),
		fn("security_task_kill", told),
		fn("security_task_setrlimit", told),
		fn("security_task_setscheduler", told),
		fn("security_task_setnice", told),
		fn("security_task_setioprio", told),
		fn("ipc_addid", told),
		fn("security_ipc_permission", told),
		fn("security_msg_queue_msgctl", told),
		fn("security_sem_semctl", told),
		fn("security_shm_shmctl", told),
		fn("security_key_permission", told),
		fn("security_cred_alloc_blank", told),
		fn("security_setprocattr", "the kernel's log shows what a program says that it is to be"),
		some("security_setselfattr"),
		some("generic_splice_sendpage"),
		fn("security_tun_dev_open", "TUN devices of the host carry out what a container writes to them"),
		fn("security_capable", "privileged programs link a container's network to the machine's"),
		fn("create_user_ns", "networks of user namespaces that a container made cannot be told from others"),
		fn("security_sb_umount", "a container ends mounts among the machine's own"),
		fn("security_netlink_send", "a container makes devices in the machine's network"),
		fn("security_prepare_creds", "a program outside gets core dumps"),
		fn("security_xfrm_state_alloc_acquire", "the host's IPsec asks for what a container chose"),
		fn("unix_release", "a sensor that is killed counts as there for three seconds"),
		fn("unix_sock_destructor", "what is known of closed sockets stays"),
		fn("begin_new_exec", moved),
		fn("cgroup_attach_task", moved),
		tp("sched_process_exec", "commands are not seen"),
		tp("sched_process_fork", "processes born elsewhere are not seen"),
		tp("cgroup_mkdir", "new containers are not seen"),
		tp("cgroup_attach_task", moved),
	}
}

const btfFile = "/sys/kernel/btf/vmlinux"

// hooks checks the kernel's type information, and that all hooks are in it.
func (m machine) hooks() Report {
	spec, err := m.types()
	if err != nil {
		c := Check{Name: "BTF", Result: Fail, Found: fmt.Sprintf("%s cannot be read: %v", btfFile, err)}
		if errors.Is(err, os.ErrNotExist) {
			c.Found = "there is no " + btfFile
		}
		c.Lost, c.Do = "programs cannot know the kernel's types", "run a kernel with CONFIG_DEBUG_INFO_BTF, such as Debian's"
		return Report{c}
	}
	r := Report{{Name: "BTF", Result: OK, Found: btfFile}}
	var missing, lost []string
	for _, h := range hooks() {
		if h.lost == "" || h.in(spec) {
			continue
		}
		missing = append(missing, h.name)
		if !slices.Contains(lost, h.lost) {
			lost = append(lost, h.lost)
		}
	}
	if missing == nil {
		return append(r, Check{Name: "hooks", Result: OK, Found: "all are there"})
	}
	return append(r, Check{
		Name: "hooks", Result: Fail, Found: "missing: " + strings.Join(missing, ", "),
		Lost: strings.Join(lost, "; "), Do: "run another kernel, such as Debian's",
	})
}

func (m machine) types() (*btf.Spec, error) {
	if _, err := os.Stat(m.path(btfFile)); err != nil {
		return nil, err
	}
	if m.cache != nil {
		return m.cache.Kernel()
	}
	return btf.LoadSpec(m.path(btfFile))
}

func (h hook) in(spec *btf.Spec) bool {
	if h.tracepoint {
		var t *btf.Typedef
		return spec.TypeByName("btf_trace_"+h.name, &t) == nil
	}
	var f *btf.Func
	return spec.TypeByName(h.name, &f) == nil
}

// diag looks for the modules that list and close sockets.
func (m machine) diag() Check {
	var missing []string
	for _, name := range []string{"tcp_diag", "udp_diag"} {
		if !m.module(name) {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return Check{Name: "socket diagnosis", Result: OK, Found: "tcp_diag and udp_diag are there"}
	}
	return Check{
		Name: "socket diagnosis", Result: Fail, Found: "missing: " + strings.Join(missing, ", "),
		Lost: "sockets from before a taint stall instead of being closed", Do: "install the kernel's modules, or use weir run --degraded",
	}
}

// module says whether a module is loaded, built in, or can be loaded.
func (m machine) module(name string) bool {
	if _, err := os.Stat(m.path("sys/module/" + name)); err == nil {
		return true
	}
	for _, list := range []string{"modules.builtin", "modules.dep"} {
		data, err := os.ReadFile(m.path("lib/modules/" + m.release + "/" + list))
		if err == nil && strings.Contains(string(data), "/"+name+".ko") {
			return true
		}
	}
	return false
}
