//go:build vmguest

package containers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"weir/test/vm/guest/rig"
)

const (
	criNamespace = "k8s.io" // where containerd keeps what a kubelet asks for
	bridgeDev    = "cni0"
	bridgeAddr   = "10.88.0.1" // the host's side of the pods' bridge
	nriSocket    = "/run/nri/nri.sock"
	programs     = "/tmp/programs" // what tries to get out, and what asks: a volume is made faster than a large image
)

// drivers are who makes cgroups: the runtime itself or, in make failures, also systemd.
func drivers() []string {
	if os.Getenv("WEIR_FAILURE") == "" {
		return []string{"cgroupfs"}
	}
	return []string{"cgroupfs", "systemd"}
}

// kubelet asks containerd for pods, as a node's does.
type kubelet struct {
	*host
	runtime cri.RuntimeServiceClient
	driver  string
}

// newKubelet starts containerd for pods, with a network of which the host's side is heard, and images.
func newKubelet(t *testing.T, driver string, nri bool) *kubelet {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, containerdConfig, pauseImage, driver == "systemd", !nri), 0o600); err != nil {
		t.Fatal(err)
	}
	rig.Must(t, "mkdir -p /etc/cni/net.d")
	if err := os.WriteFile("/etc/cni/net.d/10-pods.conflist", []byte(cniConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	// made before the first pod, so that nothing of it is missed
	rig.Must(t, "ip link add "+bridgeDev+" type bridge && ip addr add "+bridgeAddr+"/16 dev "+bridgeDev+" && ip link set "+bridgeDev+" up")
	t.Cleanup(func() { rig.Must(t, "ip link del "+bridgeDev) })
	k := &kubelet{host: newHostOf(t, config), driver: driver}
	k.world.Here = rig.Hear(t, bridgeDev)
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	k.runtime = cri.NewRuntimeServiceClient(conn)
	t.Cleanup(func() {
		k.removePods()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	rig.Must(t, "mkdir -p "+programs+" && cp $(command -v egress) $(command -v weir-hook) "+programs)
	k.imported(pauseImage, []file{{name: "pause", mode: 0o755, data: pauseProgram()}})
	k.imported(agentImage, agentFiles(t))
	k.until("the runtime's network is ready", func() bool {
		answer, err := k.runtime.Status(t.Context(), &cri.StatusRequest{})
		ready := 0
		for _, c := range answer.GetStatus().GetConditions() {
			if c.Status {
				ready++
			}
		}
		return err == nil && ready >= 2
	})
	return k
}

const containerdConfig = `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = %v
[plugins."io.containerd.nri.v1.nri"]
  disable = %v
  socket_path = "` + nriSocket + `"
`

const cniConfig = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "` + bridgeDev + `", "isGateway": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}
}]}`

// pod is a sandbox.
type pod struct {
	k      *kubelet
	config *cri.PodSandboxConfig
	id     string
}

// parent is the cgroup that a kubelet names for a pod, and where that is.
func (k *kubelet) parent(uid string) (named, at string) {
	if k.driver == "systemd" {
		slice := "kubepods-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
		return slice, "/kubepods.slice/" + slice
	}
	return "/kubepods/pod" + uid, "/kubepods/pod" + uid
}

// pod runs a sandbox with a kubelet's labels and more.
func (k *kubelet) pod(name, uid string, labels map[string]string) *pod {
	k.t.Helper()
	all := map[string]string{"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": "shop", "io.kubernetes.pod.uid": uid}
	for key, v := range labels {
		all[key] = v
	}
	named, _ := k.parent(uid)
	p := &pod{k: k, config: &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: name, Uid: uid, Namespace: "shop"}, Hostname: name, LogDirectory: k.t.TempDir(), Labels: all,
		Linux: &cri.LinuxPodSandboxConfig{CgroupParent: named, SecurityContext: &cri.LinuxSandboxSecurityContext{}},
	}}
	p.run()
	return p
}

func (p *pod) run() {
	p.k.t.Helper()
	answer, err := p.k.runtime.RunPodSandbox(p.k.t.Context(), &cri.RunPodSandboxRequest{Config: p.config})
	if err != nil {
		p.k.t.Fatalf("run pod %s: %v", p.config.Metadata.Name, err)
	}
	p.id = answer.PodSandboxId
}

// start makes a container of the pod and starts it.
func (p *pod) start(name string, argv ...string) string {
	p.k.t.Helper()
	id, err := p.tryStart(&cri.ContainerConfig{Metadata: &cri.ContainerMetadata{Name: name}, Command: argv})
	if err != nil {
		p.k.t.Fatalf("start %s: %v", name, err)
	}
	return id
}

// tryStart fills in what a kubelet does.
func (p *pod) tryStart(c *cri.ContainerConfig) (string, error) {
	c.Image = &cri.ImageSpec{Image: agentImage}
	labels := map[string]string{"io.kubernetes.container.name": c.Metadata.Name}
	for _, key := range []string{"io.kubernetes.pod.name", "io.kubernetes.pod.namespace", "io.kubernetes.pod.uid"} {
		labels[key] = p.config.Labels[key]
	}
	c.Labels, c.LogPath = labels, c.Metadata.Name+".log"
	c.Mounts = []*cri.Mount{{HostPath: programs, ContainerPath: programs, Readonly: true}}
	made, err := p.k.runtime.CreateContainer(p.k.t.Context(), &cri.CreateContainerRequest{PodSandboxId: p.id, Config: c, SandboxConfig: p.config})
	if err != nil {
		return "", err
	}
	_, err = p.k.runtime.StartContainer(p.k.t.Context(), &cri.StartContainerRequest{ContainerId: made.ContainerId})
	return made.ContainerId, err
}

// exec runs a command in a container and gives what it prints.
func (k *kubelet) exec(id string, argv ...string) (string, int) {
	k.t.Helper()
	answer, err := k.runtime.ExecSync(k.t.Context(), &cri.ExecSyncRequest{ContainerId: id, Cmd: argv, Timeout: int64(rig.Late / time.Second)})
	if err != nil {
		k.t.Fatalf("run %v: %v", argv, err)
	}
	return string(answer.Stdout) + string(answer.Stderr), int(answer.ExitCode)
}

// log is what a container of the pod has printed.
func (p *pod) log(name string) string {
	b, err := os.ReadFile(filepath.Join(p.config.LogDirectory, name+".log"))
	if err != nil && !os.IsNotExist(err) {
		p.k.t.Fatal(err)
	}
	return string(b)
}

// remove ends a pod with all its containers.
func (p *pod) remove() {
	p.k.t.Helper()
	if err := p.k.removePod(p.id); err != nil {
		p.k.t.Fatal(err)
	}
}

func (k *kubelet) removePod(id string) error {
	ctx := context.Background() // also when the test is over
	if _, err := k.runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		return err
	}
	_, err := k.runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id})
	return err
}

func (k *kubelet) removePods() {
	list, err := k.runtime.ListPodSandbox(context.Background(), &cri.ListPodSandboxRequest{})
	if err != nil {
		k.t.Errorf("list pods: %v", err)
	}
	for _, p := range list.GetItems() {
		if err := k.removePod(p.Id); err != nil {
			k.t.Errorf("remove pod %s: %v", p.Metadata.Name, err)
		}
	}
}

// sends is a command that tries to get text to the host's side of the bridge, again and again.
func (k *kubelet) sends(text string, port int) []string {
	at := fmt.Sprintf("%s:%d", bridgeAddr, port)
	k.world.Here.Listen(k.t, "tcp", fmt.Sprintf("[::]:%d", port))
	k.world.Here.Listen(k.t, "udp", fmt.Sprintf("[::]:%d", port))
	return []string{"/bin/sh", "-c", fmt.Sprintf("while :; do egress udp-sendto -to %s -say %s; egress tcp -to %s -say %s; sleep 1; done", at, text, at, text)}
}
