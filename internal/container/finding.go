package container

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"weir/internal/event"
	"weir/internal/linux"
)

// Severities of findings.
const (
	critical = "critical" // with it the container can undo the guard
	high     = "high"     // it has a way out that the guard does not see, or only partly
	medium   = "medium"   // it makes a way out more likely
)

// facts are what /proc and the file system say of a container beside its specification. The zero facts know nothing.
type facts struct {
	shared map[string]bool            // kinds of namespaces (pid, net, cgroup) that the first process has in common with the host
	fsType func(source string) string // name of a network file system that a path of the host is on; empty: it is on none
}

// findings looks at a specification for what undoes the guard. It is pure but for facts.
func findings(s *specs.Spec, f facts) []event.Finding {
	var found []event.Finding
	add := func(id, severity, format string, args ...any) {
		f := event.Finding{ID: id, Severity: severity, Text: fmt.Sprintf(format, args...)}
		if !slices.Contains(found, f) {
			found = append(found, f)
		}
	}
	once := func(id, severity, format string, args ...any) { // a host can have dozens of the same devices
		if !slices.ContainsFunc(found, func(f event.Finding) bool { return f.ID == id }) {
			add(id, severity, format, args...)
		}
	}
	caps := capabilities(s)
	if caps["CAP_SYS_ADMIN"] && caps["CAP_SYS_MODULE"] && allDevices(s) {
		add("privileged", critical, "it has every device and the capabilities of the host's root: it can load modules, mount, and undo the guard")
	}
	for _, c := range []struct{ name, id, severity, text string }{
		{"CAP_SYS_ADMIN", "cap_sys_admin", critical, "it may mount, enter namespaces and use bpf()"},
		{"CAP_BPF", "cap_bpf", critical, "it may load programs and change maps"},
		{"CAP_NET_ADMIN", "cap_net_admin", high, "it may redirect traffic with tc, tunnels and routes, and tell the link by addresses and neighbours that it sets"},
		{"CAP_NET_RAW", "cap_net_raw", medium, "it may open raw and packet sockets before it is tainted, and what a mapped ring sends is seen by no hook"},
	} {
		if caps[c.name] {
			add(c.id, c.severity, "it has %s: %s", c.name, c.text)
		}
	}
	if f.shared["pid"] || hasNo(s, specs.PIDNamespace) {
		add("host_pid", critical, "it sees the host's processes: it can read their memory and files, and enter their namespaces")
	}
	if f.shared["net"] || hasNo(s, specs.NetworkNamespace) {
		add("host_network", high, "it shares the host's network: services of the host's loopback, abstract sockets and the link are its neighbours; its own loopback is refused but for the bridge once it is tainted")
	}
	for _, m := range s.Mounts {
		mount(m, s, f, add)
	}
	devices(s, once)
	return found
}

func capabilities(s *specs.Spec) map[string]bool {
	all := map[string]bool{}
	if s.Process == nil || s.Process.Capabilities == nil {
		return all
	}
	c := s.Process.Capabilities
	for _, name := range slices.Concat(c.Bounding, c.Effective, c.Permitted, c.Inheritable, c.Ambient) {
		all[strings.ToUpper(name)] = true
	}
	return all
}

// allDevices says whether the last rule for all devices lets them be written.
func allDevices(s *specs.Spec) bool {
	allowed := false
	if s.Linux == nil || s.Linux.Resources == nil {
		return false
	}
	for _, d := range s.Linux.Resources.Devices {
		if (d.Type == "" || d.Type == "a") && (d.Major == nil || *d.Major < 0) && (d.Minor == nil || *d.Minor < 0) && strings.Contains(cmp.Or(d.Access, "rwm"), "w") {
			allowed = d.Allow
		}
	}
	return allowed
}

func hasNo(s *specs.Spec, kind specs.LinuxNamespaceType) bool {
	return s.Linux == nil || !slices.ContainsFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == kind })
}

// runtimeSockets are sockets whose owner starts whatever it is asked to, as root of the host.
var runtimeSockets = []string{
	"/run/containerd/containerd.sock", "/run/docker.sock", "/run/crio/crio.sock", "/run/podman/podman.sock", "/run/k3s/containerd/containerd.sock",
	"/run/systemd/private", "/run/dbus/system_bus_socket", "/run/buildkit/buildkitd.sock", "/run/weir/control.sock",
}

// networkFS are file systems whose server gets what is written, with no socket of the container.
var networkFS = []string{"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "afs", "glusterfs", "lustre", "beegfs", "gfs2", "ocfs2", "fuse.sshfs", "fuse.s3fs", "fuse.glusterfs", "fuse.rclone"}

func mount(m specs.Mount, s *specs.Spec, f facts, add func(id, severity, format string, args ...any)) {
	source := path.Clean(strings.Replace(m.Source, "/var/run", "/run", 1))
	bind, writable := isBind(m), !readOnly(m)
	aboveSys := bind && deep(m) && (source == "/" || source == "/sys" || source == "/sys/fs")
	if m.Type == "bpf" || aboveSys || bind && linux.PathWithin(source, "/sys/fs/bpf") {
		add("bpf_fs", critical, "a bpf file system is mounted at or below %s: pinned maps and programs are files there", m.Destination)
	}
	own := m.Type == "cgroup" || m.Type == "cgroup2"
	switch {
	case (own || bind && linux.PathWithin(source, "/sys/fs/cgroup")) && writable, aboveSys && !slices.Contains(m.Options, "rro"):
		if hasNo(s, specs.CgroupNamespace) || bind || f.shared["cgroup"] {
			add("cgroup_writable", critical, "the host's cgroup tree is mounted writable at or below %s: processes can be moved out of the guard", m.Destination)
		} else {
			add("cgroup_writable", medium, "its own cgroup is mounted writable at %s", m.Destination)
		}
	case slices.Contains(networkFS, m.Type):
		add("network_volume", high, "%s is on %s: what is written there leaves without a socket of the container", m.Destination, m.Type)
	}
	if !bind {
		return
	}
	// read-only or not: connecting to a socket is no writing
	if slices.ContainsFunc(runtimeSockets, func(socket string) bool { return linux.PathWithin(socket, source) }) {
		add("runtime_socket", critical, "%s of the host is mounted at %s: whoever serves a runtime's socket there starts programs as the host's root", m.Source, m.Destination)
	}
	if slices.Contains([]string{"/", "/etc", "/root", "/usr", "/var", "/var/lib", "/boot", "/proc", "/dev"}, source) && writable {
		add("host_files", critical, "%s of the host is mounted writable at %s", m.Source, m.Destination)
	}
	if f.fsType != nil {
		if kind := f.fsType(m.Source); kind != "" {
			add("network_volume", high, "%s is on %s: what is written there leaves without a socket of the container", m.Destination, kind)
		}
	}
	if linux.PathWithin(source, "/dev/net") || source == "/dev" {
		add("tun_device", high, "%s is mounted: with /dev/net/tun a tunnel carries what it likes", m.Source)
	}
	if linux.PathWithin(source, "/dev/infiniband") || source == "/dev" {
		add("rdma_device", high, "%s is mounted: RDMA sends with no socket", m.Source)
	}
	if source == "/dev/vhost-net" || source == "/dev/vhost-vsock" || source == "/dev" {
		add("vhost_device", high, "%s is mounted: through /dev/vhost-net and /dev/vhost-vsock the kernel sends with no socket", m.Source)
	}
}

func isBind(m specs.Mount) bool {
	return m.Type == "bind" || slices.Contains(m.Options, "bind") || slices.Contains(m.Options, "rbind")
}

// readOnly says whether the mount itself is. What is mounted below is so only with rro.
func readOnly(m specs.Mount) bool {
	return slices.Contains(m.Options, "ro") || slices.Contains(m.Options, "rro")
}

// deep says whether a bind shows what is mounted below its source, now or later.
func deep(m specs.Mount) bool {
	return !slices.Contains(m.Options, "bind") || slices.ContainsFunc(m.Options, func(o string) bool {
		return o == "rbind" || strings.HasSuffix(o, "shared") || strings.HasSuffix(o, "slave")
	})
}

// Numbers of devices.
const (
	miscMajor = 10
	tunMinor  = 200
	ibMajor   = 231
)

// vhostMinors are those of vhost-net and vhost-vsock.
var vhostMinors = []int64{238, 241}

func devices(s *specs.Spec, add func(id, severity, format string, args ...any)) {
	if s.Linux == nil {
		return
	}
	for _, d := range s.Linux.Devices {
		if d.Type == "c" && d.Major == miscMajor && d.Minor == tunMinor {
			add("tun_device", high, "it has %s: a tunnel carries what it likes", d.Path)
		}
		if d.Type == "c" && d.Major == ibMajor || strings.HasPrefix(d.Path, "/dev/infiniband/") {
			add("rdma_device", high, "it has %s: RDMA sends with no socket", d.Path)
		}
		if d.Type == "c" && d.Major == miscMajor && slices.Contains(vhostMinors, d.Minor) {
			add("vhost_device", high, "it has %s: the kernel sends with no socket", d.Path)
		}
	}
	if s.Linux.Resources == nil {
		return
	}
	for _, d := range s.Linux.Resources.Devices {
		if !d.Allow || d.Type != "c" || d.Major == nil {
			continue
		}
		if *d.Major == miscMajor && d.Minor != nil && *d.Minor == tunMinor && capabilities(s)["CAP_NET_ADMIN"] {
			// runtimes let every container have it: of no use without that capability
			add("tun_device", high, "it may make the device 10:200: a tunnel carries what it likes")
		}
		if *d.Major == miscMajor && d.Minor != nil && slices.Contains(vhostMinors, *d.Minor) {
			add("vhost_device", high, "it may make the device 10:%d: the kernel sends with no socket", *d.Minor)
		}
		if *d.Major == ibMajor {
			add("rdma_device", high, "it may make devices 231:*: RDMA sends with no socket")
		}
	}
}

// volume is a directory or file of the host that containers have in common.
type volume struct {
	source, destination string
	writable            bool
}

// volumes are the directories of the host that a container has, but for those that a runtime makes for each.
func volumes(s *specs.Spec) []volume {
	var all []volume
	for _, m := range s.Mounts {
		if isBind(m) && strings.HasPrefix(m.Source, "/") && !strings.HasPrefix(m.Destination, "/etc/") && m.Destination != "/dev/shm" {
			all = append(all, volume{path.Clean(m.Source), m.Destination, !readOnly(m)})
		}
	}
	return all
}

// sharing names what a tainted container can write and another can read (B34). carried: that carries taint.
func sharing(tainted, clean []volume, who string, carried func(a, b string) bool) []event.Finding {
	var found []event.Finding
	for _, a := range tainted {
		for _, b := range clean {
			if !a.writable || !linux.PathWithin(a.source, b.source) && !linux.PathWithin(b.source, a.source) {
				continue
			}
			follows := "what this one writes there can leave through that one"
			if carried(a.source, b.source) {
				follows = "it will be, once it reads there"
			}
			found = append(found, event.Finding{ID: "shared_volume", Severity: high, Text: fmt.Sprintf(
				"%s is shared with %s, which is not tainted: %s", a.source, who, follows)})
		}
	}
	return found
}
