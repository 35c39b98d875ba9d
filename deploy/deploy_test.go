// Package deploy has no code: its tests check what is deployed.
package deploy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"weir/internal/bridge/wire"
	"weir/internal/policy"
)

// manifests are those of deploy/kubernetes, by kind and name.
type manifests map[string]any

// read decodes every manifest strictly: a field that Kubernetes does not know fails.
func read(t *testing.T) manifests {
	t.Helper()
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	all := manifests{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, doc := range bytes.Split(data, []byte("\n---\n")) {
			var head struct {
				APIVersion, Kind string
				Metadata         struct{ Name string }
			}
			if err := yaml.Unmarshal(doc, &head); err != nil {
				t.Fatalf("%s, document %d: %v", file, i, err)
			}
			var into any
			switch head.APIVersion + " " + head.Kind {
			case "v1 Namespace":
				into = new(core.Namespace)
			case "v1 ConfigMap":
				into = new(core.ConfigMap)
			case "v1 ServiceAccount":
				into = new(core.ServiceAccount)
			case "rbac.authorization.k8s.io/v1 ClusterRole":
				into = new(rbac.ClusterRole)
			case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
				into = new(rbac.ClusterRoleBinding)
			case "rbac.authorization.k8s.io/v1 Role":
				into = new(rbac.Role)
			case "rbac.authorization.k8s.io/v1 RoleBinding":
				into = new(rbac.RoleBinding)
			case "apps/v1 DaemonSet":
				into = new(apps.DaemonSet)
			default:
				t.Fatalf("%s, document %d: unexpected %s %s", file, i, head.APIVersion, head.Kind)
			}
			if err := yaml.UnmarshalStrict(doc, into, yaml.DisallowUnknownFields); err != nil {
				t.Errorf("%s, document %d: %v", file, i, err)
			}
			all[head.Kind+" "+head.Metadata.Name] = into
		}
	}
	return all
}

// The manifest is what the chart renders to: scripts/chart, which has Helm, compares them; here it is only that nobody forgot to make it anew.
func TestManifestIsOfTheChart(t *testing.T) {
	h := sha256.New()
	err := filepath.WalkDir("chart/weir", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel("chart/weir", file)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("kubernetes/weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("sha256 %x\n", h.Sum(nil)); !strings.Contains(string(text), want) {
		t.Errorf("kubernetes/weir.yaml was made of another chart, which is now %s: run make chart", strings.TrimSpace(want))
	}
}

func get[T any](t *testing.T, m manifests, name string) T {
	t.Helper()
	v, ok := m[name].(T)
	if !ok {
		t.Fatalf("no %s among the manifests", name)
	}
	return v
}

func container(t *testing.T, pod core.PodSpec, name string) core.Container {
	t.Helper()
	i := slices.IndexFunc(pod.Containers, func(c core.Container) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no container %s", name)
	}
	return pod.Containers[i]
}

// The policy is one that the sensor takes, where the sensor looks for it; and the sensor is not below what it guards.
func TestPolicy(t *testing.T) {
	m := read(t)
	pod := get[*apps.DaemonSet](t, m, "DaemonSet weir").Spec.Template.Spec
	config := get[*core.ConfigMap](t, m, "ConfigMap weir")
	p, err := policy.Parse("policy.yaml", []byte(config.Data["policy.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	if p.Metrics.Listen != policy.MetricsUnix {
		t.Errorf("metrics.listen is %s: the probes ask the socket", p.Metrics.Listen)
	}
	c := container(t, pod, "weir")
	file := c.Args[slices.Index(c.Args, "--policy")+1]
	mount := mountAt(t, pod, c, path.Dir(file))
	if mount.ConfigMap == nil || mount.ConfigMap.Name != config.Name || path.Base(file) != "policy.yaml" {
		t.Errorf("%s is not the ConfigMap's", file)
	}
	// A Guaranteed pod's cgroup is in kubepods itself.
	for _, parent := range p.Guard.Parents {
		if base := path.Base(parent); base == "kubepods" || base == "kubepods.slice" {
			t.Errorf("guard.parents has %s: the sensor would guard itself", parent)
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if len(c.Resources.Limits) != 2 {
			t.Errorf("container %s: limits %v: the pod is not Guaranteed", c.Name, c.Resources.Limits)
		}
		for name, limit := range c.Resources.Limits {
			if request := c.Resources.Requests[name]; request.Cmp(limit) != 0 {
				t.Errorf("container %s: %s: request %s, limit %s: the pod is not Guaranteed", c.Name, name, request.String(), limit.String())
			}
		}
	}
}

func mountAt(t *testing.T, pod core.PodSpec, c core.Container, at string) core.Volume {
	t.Helper()
	for _, m := range c.VolumeMounts {
		if m.MountPath != at {
			continue
		}
		if i := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == m.Name }); i >= 0 {
			return pod.Volumes[i]
		}
	}
	t.Errorf("container %s has nothing mounted at %s", c.Name, at)
	return core.Volume{}
}

// What the sensor writes is the host's, so that it outlives the pod; and nothing else of the host is there.
func TestMounts(t *testing.T) {
	pod := get[*apps.DaemonSet](t, read(t), "DaemonSet weir").Spec.Template.Spec
	c := container(t, pod, "weir")
	want := []string{path.Dir(wire.Pins), path.Dir(wire.Cgroup), wire.Run, wire.State, "/var/log/weir"}
	var hosts []string
	for _, m := range c.VolumeMounts {
		if v := mountAt(t, pod, c, m.MountPath); v.HostPath != nil {
			hosts = append(hosts, v.HostPath.Path)
			if v.HostPath.Path != m.MountPath || m.ReadOnly || v.HostPath.Type == nil {
				t.Errorf("%s: host path %s, read-only %v", m.MountPath, v.HostPath.Path, m.ReadOnly)
			}
		}
	}
	slices.Sort(hosts)
	slices.Sort(want)
	if diff := cmp.Diff(want, hosts); diff != "" {
		t.Error("host paths (-want +got):\n" + diff)
	}
}

// capabilities is the table of docs/deploy.md.
func capabilities(t *testing.T) []string {
	t.Helper()
	doc, err := os.ReadFile("../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile("(?m)^\\| `CAP_([A-Z_]+)` \\|").FindAllStringSubmatch(string(doc), -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

// The sensor has the capabilities that the documentation gives reasons for, and nothing else has any.
func TestCapabilities(t *testing.T) {
	pod := get[*apps.DaemonSet](t, read(t), "DaemonSet weir").Spec.Template.Spec
	if !pod.HostPID || pod.HostNetwork || pod.HostIPC {
		t.Errorf("hostPID %v, hostNetwork %v, hostIPC %v", pod.HostPID, pod.HostNetwork, pod.HostIPC)
	}
	want := capabilities(t)
	for _, c := range pod.Containers {
		s := c.SecurityContext
		if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Privileged != nil && *s.Privileged {
			t.Errorf("container %s: %+v", c.Name, s)
		}
		if diff := cmp.Diff([]core.Capability{"ALL"}, s.Capabilities.Drop); diff != "" {
			t.Errorf("container %s: dropped (-want +got):\n%s", c.Name, diff)
		}
		var got []string
		for _, name := range s.Capabilities.Add {
			got = append(got, string(name))
		}
		slices.Sort(got)
		if c.Name != "weir" {
			want = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("container %s: capabilities (-documented +got):\n%s", c.Name, diff)
		}
	}
	unit := settings(t, "systemd/weir.service")
	got := strings.Fields(strings.ReplaceAll(strings.Join(unit["CapabilityBoundingSet"], " "), "CAP_", ""))
	slices.Sort(got)
	if diff := cmp.Diff(capabilities(t), got); diff != "" {
		t.Error("the unit's capabilities (-documented +got):\n" + diff)
	}
}

// It comes to every node first, and says there when it enforces.
func TestNode(t *testing.T) {
	m := read(t)
	spec := get[*apps.DaemonSet](t, m, "DaemonSet weir").Spec
	pod := spec.Template.Spec
	if diff := cmp.Diff(spec.Selector.MatchLabels, spec.Template.Labels); diff != "" {
		t.Error("selector and labels (-want +got):\n" + diff)
	}
	if diff := cmp.Diff([]core.Toleration{{Operator: core.TolerationOpExists}}, pod.Tolerations); diff != "" {
		t.Error("tolerations (-want +got):\n" + diff)
	}
	if pod.PriorityClassName != "system-node-critical" {
		t.Errorf("priority class %s", pod.PriorityClassName)
	}
	c := container(t, pod, "weir")
	live, ready := []string{wire.Program, "health", "--live"}, []string{wire.Program, "health"}
	for name, probe := range map[string]struct {
		got  *core.Probe
		want []string
	}{"startup": {c.StartupProbe, live}, "liveness": {c.LivenessProbe, live}, "readiness": {c.ReadinessProbe, ready}} {
		if diff := cmp.Diff(probe.want, probe.got.Exec.Command); diff != "" {
			t.Errorf("%s probe (-want +got):\n%s", name, diff)
		}
		if probe.got.TimeoutSeconds < 6 { // weir health itself waits 5 s
			t.Errorf("%s probe: timeout %d s", name, probe.got.TimeoutSeconds)
		}
	}
	if space := get[*core.Namespace](t, m, "Namespace weir"); space.Labels["pod-security.kubernetes.io/enforce"] != "privileged" {
		t.Errorf("labels of the namespace: %v", space.Labels)
	}
}

// Only node-ready has a token, and with it no more than it needs.
func TestRights(t *testing.T) {
	m := read(t)
	pod := get[*apps.DaemonSet](t, m, "DaemonSet weir").Spec.Template.Spec
	account := get[*core.ServiceAccount](t, m, "ServiceAccount weir")
	for who, auto := range map[string]*bool{"pod": pod.AutomountServiceAccountToken, "service account": account.AutomountServiceAccountToken} {
		if auto == nil || *auto {
			t.Errorf("the %s mounts a token everywhere", who)
		}
	}
	if pod.ServiceAccountName != account.Name {
		t.Errorf("service account %s", pod.ServiceAccountName)
	}
	for _, c := range pod.Containers {
		for _, mount := range c.VolumeMounts {
			if v := mountAt(t, pod, c, mount.MountPath); v.Projected != nil && c.Name != "node-ready" {
				t.Errorf("container %s has a token", c.Name)
			}
		}
	}
	wantSubjects := []rbac.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}
	cluster := get[*rbac.ClusterRoleBinding](t, m, "ClusterRoleBinding weir-node-ready")
	own := get[*rbac.RoleBinding](t, m, "RoleBinding weir-node-ready")
	for _, b := range []struct {
		subjects []rbac.Subject
		ref      rbac.RoleRef
		rules    []rbac.PolicyRule
		kind     string
		want     string
	}{
		{cluster.Subjects, cluster.RoleRef, get[*rbac.ClusterRole](t, m, "ClusterRole weir-node-ready").Rules, "ClusterRole", "nodes get patch"},
		{own.Subjects, own.RoleRef, get[*rbac.Role](t, m, "Role weir-node-ready").Rules, "Role", "pods get"},
	} {
		if diff := cmp.Diff(wantSubjects, b.subjects); diff != "" {
			t.Errorf("%s: subjects (-want +got):\n%s", b.kind, diff)
		}
		if diff := cmp.Diff(rbac.RoleRef{APIGroup: rbac.GroupName, Kind: b.kind, Name: "weir-node-ready"}, b.ref); diff != "" {
			t.Errorf("%s: role (-want +got):\n%s", b.kind, diff)
		}
		got := ""
		for _, r := range b.rules {
			got += strings.Join(slices.Concat(r.APIGroups, r.Resources, r.Verbs, r.NonResourceURLs), " ")
		}
		if strings.TrimSpace(got) != b.want {
			t.Errorf("%s: rules %q, want %q", b.kind, got, b.want)
		}
	}
}

// settings are those of a unit file, by name.
func settings(t *testing.T, file string) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			all[name] = append(all[name], value)
		}
	}
	return all
}

// systemd itself judges the units: an exposure of at most 4.0, of 10.
func TestUnitsAreHardened(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Fatal("no systemd-analyze: run scripts/packages units")
	}
	for _, unit := range []string{"weir.service", "weir-watch.service"} {
		out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=40", "systemd/"+unit).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
		last := strings.TrimSpace(string(out))
		t.Log(last[strings.LastIndex(last, "\n")+1:])
	}
}

// The unit is in force before what starts containers, and what guarded sessions use outlives it.
func TestUnit(t *testing.T) {
	unit := settings(t, "systemd/weir.service")
	for _, before := range []string{"containerd.service", "docker.service", "kubelet.service"} {
		if !slices.Contains(strings.Fields(strings.Join(unit["Before"], " ")), before) {
			t.Errorf("not before %s: %v", before, unit["Before"])
		}
	}
	for name, want := range map[string]string{
		"Type": "notify", "Restart": "always", "KillMode": "mixed", "RuntimeDirectoryPreserve": "yes",
		"RuntimeDirectory": path.Base(wire.Run), "StateDirectory": path.Base(wire.State),
		"ExecStart": fmt.Sprintf("%s run --policy %s/policy.yaml", wire.Program, wire.Config),
	} {
		if got := strings.Join(unit[name], " "); got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
	if unit["WatchdogSec"] == nil {
		t.Error("no watchdog")
	}
	watch := settings(t, "systemd/weir-watch.service")
	if got := strings.Join(watch["ExecStart"], " "); got != wire.Program+" watch" {
		t.Errorf("weir-watch: ExecStart=%s", got)
	}
	for _, name := range []string{"PartOf", "BindsTo", "Requires"} { // it outlives what it watches
		if watch[name] != nil {
			t.Errorf("weir-watch: %s=%v", name, watch[name])
		}
	}
}

// The image is what make release puts into dist, and nothing else.
func TestDockerfile(t *testing.T) {
	data, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if word, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok && word != "#" {
			if got[word] != "" {
				t.Errorf("%s stands twice", word)
			}
			got[word] = rest
		}
	}
	list := func(words ...string) string {
		b, err := json.Marshal(words)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(b), `,`, `, `)
	}
	want := map[string]string{
		"FROM": "scratch", "ADD": "dist/weir-root.tar /", "ENTRYPOINT": list(wire.Program), "CMD": list("run", "--policy", wire.Config+"/policy.yaml"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("Dockerfile (-want +got):\n" + diff)
	}
}
