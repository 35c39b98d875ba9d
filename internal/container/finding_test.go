package container

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// ordinary is what runtimes give every container.
func ordinary() *specs.Spec {
	major, minor := int64(10), int64(200)
	return &specs.Spec{
		Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: []string{"CAP_CHOWN", "CAP_KILL"}, Effective: []string{"CAP_CHOWN"}}},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "ro"}},
			{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"ro"}},
			{Destination: "/data", Type: "bind", Source: "/srv/data", Options: []string{"rbind", "rw"}},
		},
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.MountNamespace}, {Type: specs.CgroupNamespace}},
			Resources: &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{
				{Allow: false, Access: "rwm"}, {Allow: true, Type: "c", Major: &major, Minor: &minor, Access: "rwm"},
			}},
		},
	}
}

func without(s *specs.Spec, kind specs.LinuxNamespaceType) {
	s.Linux.Namespaces = slices.DeleteFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == kind })
}

func bind(source, destination string, options ...string) func(*specs.Spec) {
	return func(s *specs.Spec) {
		s.Mounts = append(s.Mounts, specs.Mount{Destination: destination, Type: "bind", Source: source, Options: append(options, "rbind")})
	}
}

// plain is a bind without what is mounted below.
func plain(source, destination string, options ...string) func(*specs.Spec) {
	return func(s *specs.Spec) {
		s.Mounts = append(s.Mounts, specs.Mount{Destination: destination, Type: "bind", Source: source, Options: append(options, "bind")})
	}
}

func capable(names ...string) func(*specs.Spec) {
	return func(s *specs.Spec) {
		s.Process.Capabilities.Bounding = append(s.Process.Capabilities.Bounding, names...)
	}
}

func TestFindings(t *testing.T) {
	ib, misc, vhostNet := int64(231), int64(10), int64(238)
	for _, c := range []struct {
		id, name string
		change   func(*specs.Spec)
		facts    facts
		want     []string // id:severity
	}{
		{"", "ordinary", func(*specs.Spec) {}, facts{}, nil},
		{"B18", "raw sockets", capable("CAP_NET_RAW"), facts{}, []string{"cap_net_raw:medium"}},
		{"B42", "bpf", capable("CAP_BPF"), facts{}, []string{"cap_bpf:critical"}},
		{"B42", "ambient, in lower case", func(s *specs.Spec) { s.Process.Capabilities.Ambient = []string{"cap_sys_admin"} }, facts{}, []string{"cap_sys_admin:critical"}},
		{"B42", "privileged", func(s *specs.Spec) {
			capable("CAP_SYS_ADMIN", "CAP_SYS_MODULE")(s)
			s.Linux.Resources.Devices = append(s.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Access: "rwm"})
		}, facts{}, []string{"cap_sys_admin:critical", "privileged:critical"}},
		{"B42", "capabilities, but not the devices", func(s *specs.Spec) {
			capable("CAP_SYS_ADMIN", "CAP_SYS_MODULE")(s)
			s.Linux.Resources.Devices = append(s.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Access: "rwm"}, specs.LinuxDeviceCgroup{Allow: false, Access: "rwm"})
		}, facts{}, []string{"cap_sys_admin:critical"}},
		{"B42", "bpffs", func(s *specs.Spec) { s.Mounts = append(s.Mounts, specs.Mount{Destination: "/b", Type: "bpf"}) }, facts{}, []string{"bpf_fs:critical"}},
		{"B42", "bpffs by bind", bind("/sys/fs/bpf/weir", "/b"), facts{}, []string{"bpf_fs:critical"}},
		{"B42", "host's processes", func(s *specs.Spec) { without(s, specs.PIDNamespace) }, facts{}, []string{"host_pid:critical"}},
		{"B42", "host's processes by path", func(*specs.Spec) {}, facts{shared: map[string]bool{"pid": true}}, []string{"host_pid:critical"}},
		{"B26", "host's network", func(s *specs.Spec) { without(s, specs.NetworkNamespace) }, facts{}, []string{"host_network:high"}},
		{"B26", "host's network of a pod", func(*specs.Spec) {}, facts{shared: map[string]bool{"net": true}}, []string{"host_network:high"}},
		{"B28", "cgroups by bind", bind("/sys/fs/cgroup", "/c", "rw"), facts{}, []string{"cgroup_writable:critical"}},
		{"B28", "cgroups by bind, read-only", bind("/sys/fs/cgroup", "/c", "ro"), facts{}, nil},
		{"B28", "its own cgroup", func(s *specs.Spec) { s.Mounts[2].Options = nil }, facts{}, []string{"cgroup_writable:medium"}},
		{"B28", "cgroups without a namespace", func(s *specs.Spec) { s.Mounts[2].Options = nil; without(s, specs.CgroupNamespace) }, facts{}, []string{"cgroup_writable:critical"}},
		{"B42", "containerd's socket", bind("/run/containerd/containerd.sock", "/s"), facts{}, []string{"runtime_socket:critical"}},
		{"B42", "docker's, by its other name and read-only", bind("/var/run/docker.sock", "/s", "ro"), facts{}, []string{"runtime_socket:critical"}},
		{"B42", "a directory above it", bind("/run", "/r", "ro"), facts{}, []string{"runtime_socket:critical"}},
		{"B42", "it and a directory above it", func(s *specs.Spec) {
			bind("/run", "/r", "ro")(s)
			bind("/run/docker.sock", "/s")(s)
		}, facts{}, []string{"runtime_socket:critical", "runtime_socket:critical"}},
		{"B42", "not its neighbour", bind("/run/containers", "/r"), facts{}, nil},
		{"B42", "the host's root", bind("/", "/host"), facts{}, []string{"bpf_fs:critical", "cgroup_writable:critical", "host_files:critical", "runtime_socket:critical"}},
		{"B42", "the host's root, read-only", bind("/", "/host", "rro"), facts{}, []string{"bpf_fs:critical", "runtime_socket:critical"}},
		{"B42", "the host's root, read-only at its top", bind("/", "/host", "ro"), facts{}, []string{"bpf_fs:critical", "cgroup_writable:critical", "runtime_socket:critical"}},
		{"B42", "the host's root without what is mounted below", plain("/", "/host", "ro"), facts{}, []string{"runtime_socket:critical"}},
		{"B42", "sysfs", bind("/sys", "/s"), facts{}, []string{"bpf_fs:critical", "cgroup_writable:critical"}},
		{"B42", "sysfs, read-only", bind("/sys", "/s", "rro"), facts{}, []string{"bpf_fs:critical"}},
		{"B42", "sysfs, read-only at its top", bind("/sys/fs", "/s", "ro"), facts{}, []string{"bpf_fs:critical", "cgroup_writable:critical"}},
		{"B42", "sysfs without what is mounted below", plain("/sys", "/s"), facts{}, nil},
		{"B42", "sysfs, and what is mounted there later", plain("/sys/fs", "/s", "ro", "rslave"), facts{}, []string{"bpf_fs:critical", "cgroup_writable:critical"}},
		{"B28", "the container's own cgroup, then the host's", func(s *specs.Spec) {
			s.Mounts[2].Options = nil
			bind("/sys/fs/cgroup", "/c")(s)
		}, facts{}, []string{"cgroup_writable:critical", "cgroup_writable:medium"}},
		{"B48", "network administration", capable("CAP_NET_ADMIN"), facts{}, []string{"cap_net_admin:high", "tun_device:high"}},
		{"B48", "a tunnel's device", func(s *specs.Spec) {
			s.Linux.Devices = []specs.LinuxDevice{{Path: "/dev/net/tun", Type: "c", Major: 10, Minor: 200}}
		}, facts{}, []string{"tun_device:high"}},
		{"B48", "a tunnel's device by bind", bind("/dev/net/tun", "/dev/net/tun"), facts{}, []string{"tun_device:high"}},
		{"B48", "RDMA", func(s *specs.Spec) {
			s.Linux.Resources.Devices = append(s.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &ib, Access: "rw"})
		}, facts{}, []string{"rdma_device:high"}},
		{"B48", "a guest's device", func(s *specs.Spec) {
			s.Linux.Devices = []specs.LinuxDevice{{Path: "/dev/vhost-vsock", Type: "c", Major: 10, Minor: 241}}
		}, facts{}, []string{"vhost_device:high"}},
		{"B48", "a guest's device by bind", bind("/dev/vhost-net", "/dev/vhost-net"), facts{}, []string{"vhost_device:high"}},
		{"B48", "a guest's device that it may make", func(s *specs.Spec) {
			s.Linux.Resources.Devices = append(s.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &misc, Minor: &vhostNet, Access: "rwm"})
		}, facts{}, []string{"vhost_device:high"}},
		{"B48", "NFS", func(s *specs.Spec) {
			s.Mounts = append(s.Mounts, specs.Mount{Destination: "/n", Type: "nfs4", Source: "server:/x"})
		}, facts{}, []string{"network_volume:high"}},
		{"B48", "NFS of the host", func(*specs.Spec) {}, facts{fsType: func(source string) string {
			if source == "/srv/data" {
				return "nfs"
			}
			return ""
		}}, []string{"network_volume:high"}},
		{"", "nothing is specified", func(s *specs.Spec) { *s = specs.Spec{} }, facts{}, []string{"host_network:high", "host_pid:critical"}},
	} {
		t.Run(strings.TrimSpace(c.id+" "+c.name), func(t *testing.T) {
			s := ordinary()
			c.change(s)
			var got []string
			for _, f := range findings(s, c.facts) {
				got = append(got, f.ID+":"+f.Severity)
				if f.Text == "" {
					t.Errorf("%s says nothing", f.ID)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}

// What a tainted container writes, and another can read, is told.
func TestB34Sharing(t *testing.T) {
	for _, c := range []struct {
		tainted, clean string
		want           int
	}{
		{"/srv/a", "/srv/a", 1},
		{"/srv/a", "/srv/a/b", 1},
		{"/srv/a/b", "/srv/a", 1},
		{"/srv/a", "/srv/ab", 0},
	} {
		a, b := ordinary(), ordinary()
		a.Mounts, b.Mounts = nil, nil
		bind(c.tainted, "/x")(a)
		bind(c.clean, "/x")(b)
		found := sharing(volumes(a), volumes(b), "other", func(string, string) bool { return false })
		if len(found) != c.want || c.want == 1 && (found[0].ID != "shared_volume" || !strings.Contains(found[0].Text, c.tainted)) {
			t.Errorf("%s and %s: %v", c.tainted, c.clean, found)
		}
	}
	s := ordinary()
	s.Mounts = nil
	bind("/srv/a", "/x", "ro")(s)
	bind("/var/lib/pod/hosts", "/etc/hosts")(s)
	if v := volumes(s); len(v) != 1 || v[0].writable {
		t.Errorf("want what cannot be written alone, as that: what each has of its own is no volume: %v", fmt.Sprint(v))
	}
	w := ordinary()
	w.Mounts = nil
	bind("/srv/a", "/x")(w)
	for _, c := range []struct {
		tainted, clean []volume
		want           int
		text           string
	}{{volumes(s), volumes(w), 0, ""}, {volumes(w), volumes(s), 1, "once it reads there"}} {
		found := sharing(c.tainted, c.clean, "other", func(a, b string) bool { return a == "/srv/a" && b == "/srv/a" })
		if len(found) != c.want || c.want == 1 && !strings.Contains(found[0].Text, c.text) {
			t.Errorf("%v and %v: %v", c.tainted, c.clean, found)
		}
	}
}
