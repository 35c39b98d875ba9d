package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	security "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// The manifest for who uses no Helm is the chart with its own values.
func TestPlain(t *testing.T) {
	want, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: run make chart (-chart +file):\n%s", manifest, diff)
	}
}

// values read a text as helm --values does.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	v := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// installs are values that people may have, and which objects they make besides those that are always there.
var installs = map[string]struct {
	values string
	more   []string
	less   []string
	holds  []string // in all that is rendered
}{
	"default": {},
	"image": {
		values: "image: {repository: registry.corp.test/weir, digest: sha256:" + strings.Repeat("0a", 32) + ", tag: v1, pullPolicy: Always}\nimagePullSecrets: [{name: registry}]",
		holds:  []string{"image: registry.corp.test/weir@sha256:0a0a", "imagePullSecrets:\n        - name: registry\n", "imagePullPolicy: Always"},
	},
	"tag": {values: "image: {repository: registry.corp.test/weir, tag: v1.2.3}", holds: []string{"image: registry.corp.test/weir:v1.2.3\n"}},
	"policy": {
		values: "policy: {mode: observe, grant: {bytes: 67108864}, guard: {parents: [/kubepods/burstable]}, cop: {reviewer: anthropic, key_file: /etc/weir-secret/key}}\n" +
			"secret: weir-keys\nfiles: {permissions.yaml: \"version: 1\\nallow: []\\n\"}",
		holds: []string{"mode: observe", "- /kubepods/burstable\n", "bytes: 67108864\n", "secret: {secretName: weir-keys, defaultMode: 0400}", "permissions.yaml: |\n    version: 1\n"},
	},
	"place": {
		values: "resources: {cpu: 2, memory: 1Gi}\npriorityClassName: mine\nnodeSelector: {pool: agents}\ntolerations: [{key: a, operator: Exists, effect: NoSchedule}]\nmaxUnavailable: 10%\nnodeReady: {taint: corp.test/weir}",
		holds:  []string{"limits: {cpu: 2, memory: 1Gi}", "priorityClassName: mine", "pool: agents", "effect: NoSchedule", "maxUnavailable: 10%", "args: [node-ready, --container, weir, --taint, corp.test/weir]"},
	},
	"no node taint": {
		values: "nodeReady: {enabled: false}",
		less:   []string{"ClusterRole weir-node-ready", "ClusterRoleBinding weir-node-ready", "Role weir-node-ready", "RoleBinding weir-node-ready"},
	},
	"nri": {
		values: "containerd: {socket: /run/containerd/containerd.sock, nri: /run/nri/nri.sock}\npolicy: {ipc: /workspace/ipc, containers: {match: [{image: 'registry.corp.test/*'}]}}",
		holds:  []string{"containerd: /run/containerd/containerd.sock", "nri: /run/nri/nri.sock", "mountPath: /run/nri\n", "- CHOWN\n"},
	},
	"metrics": {
		values: "metrics: {secret: weir-metrics, podMonitor: {enabled: true, labels: {release: prometheus}}, alerts: {enabled: true, labels: {release: prometheus}}, dashboard: {enabled: true}}\n" +
			"networkPolicy: {enabled: true, from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}",
		more:  []string{"PodMonitor weir", "PrometheusRule weir", "ConfigMap weir-dashboard", "NetworkPolicy weir"},
		holds: []string{"listen: 0.0.0.0:9464", "token_file: /etc/weir-metrics/token", "containerPort: 9464", "- {port: metrics, protocol: TCP}", "release: prometheus", "{{ $labels.instance }}", "grafana_dashboard: \"1\""},
	},
	"metrics over IPv6": {values: "metrics: {secret: weir-metrics, address: '[::]', port: 9000}", holds: []string{"'[::]:9000'", "containerPort: 9000"}},
	"network": {
		values: "networkPolicy: {enabled: true, egress: [{ports: [{port: 443}]}]}",
		more:   []string{"NetworkPolicy weir"}, holds: []string{"policyTypes: [Ingress, Egress]"},
	},
	"fleet": {
		values: "fleet: {servers: ['tls://nats.nats.svc:4222'], secret: weir-fleet, ca: true}\npolicy: {control: {look: [audit]}}",
		holds:  []string{"name: fleet\n", "secretName: weir-fleet", "ca_file: /etc/weir-fleet/ca.crt", "- audit\n      - \"65533\"\n", "fsGroup: 65533"},
	},
	"otlp": {
		values: "otlp: {endpoint: 'https://otel-collector.monitoring:4318', secret: weir-otel, headers: true, ca: true, without: [exec]}",
		holds: []string{"name: otel\n", "secretName: weir-otel", "headers_file: /etc/weir-otel/headers", "ca_file: /etc/weir-otel/ca.crt", "endpoint: https://otel-collector.monitoring:4318", "metrics_seconds: 60",
			"- \"65533\"\n", "fsGroup: 65533", "/usr/local/bin/weir-otel"},
	},
	"otlp and fleet": {
		values: "otlp: {endpoint: 'http://otel-collector.monitoring:4318'}\nfleet: {servers: ['tls://nats.nats.svc:4222'], secret: weir-fleet}",
		holds:  []string{"name: otel\n", "name: fleet\n", "look:\n      - \"65533\"\n    events"},
	},
	"no detach": {
		values: "detach: {enabled: false}",
		less:   []string{"DaemonSet weir-detach", "Job weir-detach", "Role weir-detach", "RoleBinding weir-detach", "ServiceAccount weir-detach"},
	},
}

var always = []string{
	"ClusterRole weir-node-ready", "ClusterRoleBinding weir-node-ready", "ConfigMap weir", "DaemonSet weir", "DaemonSet weir-detach", "Job weir-detach", "Role weir-detach", "Role weir-node-ready",
	"RoleBinding weir-detach", "RoleBinding weir-node-ready", "ServiceAccount weir", "ServiceAccount weir-detach",
}

// object decodes strictly: a field that Kubernetes does not know fails.
func object(t *testing.T, text string) (string, any) {
	t.Helper()
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Name, Namespace string }
	}
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	into, ok := map[string]any{
		"v1 ConfigMap": new(core.ConfigMap), "v1 ServiceAccount": new(core.ServiceAccount), "apps/v1 DaemonSet": new(apps.DaemonSet), "batch/v1 Job": new(batch.Job),
		"rbac.authorization.k8s.io/v1 ClusterRole": new(rbac.ClusterRole), "rbac.authorization.k8s.io/v1 ClusterRoleBinding": new(rbac.ClusterRoleBinding),
		"rbac.authorization.k8s.io/v1 Role": new(rbac.Role), "rbac.authorization.k8s.io/v1 RoleBinding": new(rbac.RoleBinding),
		"networking.k8s.io/v1 NetworkPolicy": new(network.NetworkPolicy), "monitoring.coreos.com/v1 PodMonitor": new(monitoring.PodMonitor), "monitoring.coreos.com/v1 PrometheusRule": new(monitoring.PrometheusRule),
	}[head.APIVersion+" "+head.Kind]
	if !ok {
		t.Fatalf("unexpected %s %s", head.APIVersion, head.Kind)
	}
	name := head.Kind + " " + head.Metadata.Name
	if err := yaml.UnmarshalStrict([]byte(text), into, yaml.DisallowUnknownFields); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if want := "weir"; !strings.HasPrefix(head.Kind, "Cluster") && head.Metadata.Namespace != want {
		t.Errorf("%s: namespace %q", name, head.Metadata.Namespace)
	}
	return name, into
}

// objects are those of an install, hooks too.
func objects(t *testing.T, text string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, template := range rendered(t, text) {
		for _, one := range releaseutil.SplitManifests(template) {
			name, o := object(t, one)
			if all[name] != nil {
				t.Errorf("%s stands twice", name)
			}
			all[name] = o
		}
	}
	return all
}

func rendered(t *testing.T, text string) map[string]string {
	t.Helper()
	texts, err := render(values(t, text))
	if err != nil {
		t.Fatal(err)
	}
	delete(texts, "NOTES.txt")
	return texts
}

func podOf(o any) *core.PodTemplateSpec {
	switch o := o.(type) {
	case *apps.DaemonSet:
		return &o.Spec.Template
	case *batch.Job:
		return &o.Spec.Template
	}
	return nil
}

// Each install has the objects that it should, all of which Kubernetes knows; its pods are Guaranteed and mount what they have; and the
// sensor takes its policy.
func TestInstalls(t *testing.T) {
	weir := filepath.Join(t.TempDir(), "weir")
	if out, err := exec.Command("go", "build", "-C", repo, "-tags", "grpcnotrace,no_gogo", "-o", weir, "./cmd/sensor").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, c := range installs {
		t.Run(name, func(t *testing.T) {
			want := append(slices.DeleteFunc(slices.Clone(always), func(s string) bool { return slices.Contains(c.less, s) }), c.more...)
			slices.Sort(want)
			all := objects(t, c.values)
			var got []string
			for name, o := range all {
				got = append(got, name)
				if pod := podOf(o); pod != nil {
					checkPod(t, name, pod.Spec)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error("objects (-want +got):\n" + diff)
			}
			text := fmt.Sprint(rendered(t, c.values))
			for _, part := range c.holds {
				if !strings.Contains(text, part) {
					t.Errorf("nowhere %q in\n%s", part, text)
				}
			}
			validate := exec.Command(weir, "policy", "validate", "-")
			validate.Stdin = strings.NewReader(all["ConfigMap weir"].(*core.ConfigMap).Data["policy.yaml"])
			if out, err := validate.CombinedOutput(); err != nil {
				t.Errorf("the sensor refuses the policy: %v\n%s", err, out)
			}
			for _, m := range lint.All(chartDir, values(t, c.values), "weir", true).Messages {
				if m.Severity > support.InfoSev {
					t.Errorf("lint: %v", m)
				}
			}
		})
	}
}

func checkPod(t *testing.T, name string, pod core.PodSpec) {
	t.Helper()
	used := map[string]bool{}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, m := range c.VolumeMounts {
			used[m.Name] = true
			if !slices.ContainsFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == m.Name }) {
				t.Errorf("%s: container %s mounts %s, which is no volume", name, c.Name, m.Name)
			}
		}
		if len(c.Resources.Limits) != 2 || !cmp.Equal(c.Resources.Limits, c.Resources.Requests) {
			t.Errorf("%s: container %s: %v: the pod is not Guaranteed", name, c.Name, c.Resources)
		}
	}
	for _, v := range pod.Volumes {
		if !used[v.Name] {
			t.Errorf("%s: nothing mounts %s", name, v.Name)
		}
	}
}

// A bad value gives one line that names it, and nothing is rendered.
func TestBadValues(t *testing.T) {
	for text, want := range map[string]string{
		"imagee: {}":                                        `at '': additional properties 'imagee' not allowed`,
		"image: {tag: 'a b'}":                               `at '/image/tag': 'a b' does not match pattern`,
		"image: {digest: abc}":                              `at '/image/digest': 'abc' does not match pattern`,
		"image: {pullPolicy: Sometimes}":                    `at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'`,
		"policy: {mode: enforced}":                          `at '/policy/mode': value must be one of 'observe', 'enforce', 'seal'`,
		"policy: {version: 2}":                              `at '/policy/version': value must be 1`,
		"policy: {guard: {parents: [kubepods.slice]}}":      `policy.guard.parents has kubepods.slice, in which the sensor itself is: name the slices of the classes Burstable and BestEffort in it`,
		"resources: {limits: {cpu: 1}}":                     `at '/resources': additional properties 'limits' not allowed`,
		"resources: {cpu: much}":                            `at '/resources/cpu': 'much' does not match pattern`,
		"tolerations: {operator: Exists}":                   `at '/tolerations': got object, want array`,
		"maxUnavailable: 0":                                 `at '/maxUnavailable': minimum: got 0, want 1`,
		"nodeReady: {taint: 'weir/starting=x'}":             `at '/nodeReady/taint': 'weir/starting=x' does not match pattern`,
		"containerd: {nri: /run/nri/nri.sock}":              `at '/containerd/socket': minLength: got 0, want 1`,
		"containerd: {socket: containerd.sock}":             `at '/containerd/socket': 'containerd.sock' does not match pattern`,
		"metrics: {port: '9464'}":                           `at '/metrics/port': got string, want integer`,
		"metrics: {podMonitor: {enabled: true}}":            `at '/metrics/secret': minLength: got 0, want 1`,
		"fleet: {servers: ['tls://nats:4222']}":             `at '/fleet/secret': minLength: got 0, want 1`,
		"fleet: {servers: ['nats://nats:4222'], secret: a}": `at '/fleet/servers/0': 'nats://nats:4222' does not match pattern`,
		"otlp: {endpoint: 'otel:4317'}":                     `at '/otlp/endpoint': 'otel:4317' does not match pattern`,
		"otlp: {endpoint: 'https://otel', headers: true}":   `at '/otlp/secret': minLength: got 0, want 1`,
		"detach: {deadlineSeconds: 1}":                      `at '/detach/deadlineSeconds': minimum: got 1, want 10`,
		"files: {policy.yaml: x}":                           `at '/files/policy.yaml': false schema`,
		"files: {a/b: x}":                                   `at '/files': additional properties 'a/b' not allowed`,
		"files: {permissions.yaml: {allow: []}}":            `at '/files/permissions.yaml': got object, want string`,
	} {
		_, err := render(values(t, text))
		if err == nil {
			t.Errorf("%s is taken", text)
			continue
		}
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
		last := lines[len(lines)-1]
		if !strings.Contains(last, want) || strings.Count(err.Error(), "at '") > 1 {
			t.Errorf("%s: want %s; got\n%v", text, want, err)
		}
	}
}

// Pod Security as the API server judges it: what loads the kernel's programs needs the level privileged, for these reasons and no others;
// the job would run under restricted.
func TestPodSecurity(t *testing.T) {
	evaluator, err := security.NewEvaluator(security.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	powers := []string{"forbidden AppArmor profile", "host namespaces", "hostPath volumes", "non-default capabilities", "seLinuxOptions", "seccompProfile"}
	for _, install := range []string{"default", "nri", "metrics", "fleet", "otlp"} {
		all := objects(t, installs[install].values)
		for name, want := range map[string][]string{"DaemonSet weir": powers, "DaemonSet weir-detach": powers, "Job weir-detach": nil} {
			pod := podOf(all[name])
			level := api.LevelBaseline
			if want == nil {
				level = api.LevelRestricted
			}
			var got []string
			for _, r := range evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
				if !r.Allowed {
					got = append(got, r.ForbiddenReason)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", install, name, diff)
			}
		}
	}
}

// On uninstall Helm makes these after all else is gone, in this order, and deletes them once the job has ended well; on install and upgrade
// it makes none of them.
func TestDetach(t *testing.T) {
	hooks, installed, err := releaseutil.SortManifests(rendered(t, ""), nil, releaseutil.InstallOrder)
	if err != nil {
		t.Fatal(err)
	}
	weights := map[string]int{"ServiceAccount": -1, "Role": -1, "RoleBinding": -1, "DaemonSet": 0, "Job": 1}
	for _, h := range hooks {
		if h.Name != "weir-detach" || !slices.Equal(h.Events, []release.HookEvent{release.HookPostDelete}) || h.Weight != weights[h.Kind] ||
			!slices.Equal(h.DeletePolicies, []release.HookDeletePolicy{release.HookBeforeHookCreation, release.HookSucceeded}) {
			t.Errorf("hook %s %s: %v, weight %d, %v", h.Kind, h.Name, h.Events, h.Weight, h.DeletePolicies)
		}
		delete(weights, h.Kind)
	}
	if len(hooks) != 5 || len(weights) != 0 {
		t.Errorf("%d hooks, without %v", len(hooks), weights)
	}
	for _, m := range installed {
		if strings.Contains(m.Content, "weir-detach") {
			t.Errorf("%s is installed", m.Name)
		}
	}
	all := objects(t, "")
	sensor, detach, job := all["DaemonSet weir"].(*apps.DaemonSet), all["DaemonSet weir-detach"].(*apps.DaemonSet), all["Job weir-detach"].(*batch.Job)
	pod := detach.Spec.Template.Spec
	if diff := cmp.Diff([]string{"detach"}, pod.InitContainers[0].Args); diff != "" {
		t.Error("it does not detach (-want +got):\n" + diff)
	}
	if diff := cmp.Diff([]string{"detach", "--daemonset", detach.Name}, job.Spec.Template.Spec.Containers[0].Args); diff != "" {
		t.Error("the job (-want +got):\n" + diff)
	}
	// It comes to each node that has a sensor, and can do there what that can.
	if diff := cmp.Diff(sensor.Spec.Template.Spec.Containers[0].SecurityContext, pod.InitContainers[0].SecurityContext); diff != "" {
		t.Error("rights (-sensor +detach):\n" + diff)
	}
	for what, both := range map[string][2]any{
		"tolerations":    {sensor.Spec.Template.Spec.Tolerations, pod.Tolerations},
		"selector":       {sensor.Spec.Template.Spec.NodeSelector, pod.NodeSelector},
		"priority class": {sensor.Spec.Template.Spec.PriorityClassName, pod.PriorityClassName},
		"hostPID":        {sensor.Spec.Template.Spec.HostPID, pod.HostPID},
	} {
		if diff := cmp.Diff(both[0], both[1]); diff != "" {
			t.Errorf("%s (-sensor +detach):\n%s", what, diff)
		}
	}
	if sel, err := meta.LabelSelectorAsSelector(sensor.Spec.Selector); err != nil || sel.Matches(labelSet(detach.Spec.Template.Labels)) || sel.Matches(labelSet(job.Spec.Template.Labels)) {
		t.Errorf("the sensor's selector takes other pods: %v, %v", sel, err)
	}
	// The token is the job's, which may only look at that DaemonSet.
	role := all["Role weir-detach"].(*rbac.Role)
	want := []rbac.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, ResourceNames: []string{detach.Name}, Verbs: []string{"get"}}}
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		t.Error("rights (-want +got):\n" + diff)
	}
}

type labelSet map[string]string

func (l labelSet) Has(name string) bool              { _, ok := l[name]; return ok }
func (l labelSet) Get(name string) string            { return l[name] }
func (l labelSet) Lookup(name string) (string, bool) { v, ok := l[name]; return v, ok }

// The port for Prometheus is where the monitor, the policy and the network policy say, and only with its Secret.
func TestMetrics(t *testing.T) {
	all := objects(t, installs["metrics"].values)
	pod := all["DaemonSet weir"].(*apps.DaemonSet).Spec.Template
	endpoint := all["PodMonitor weir"].(*monitoring.PodMonitor).Spec.PodMetricsEndpoints[0]
	port := pod.Spec.Containers[0].Ports[0].Name
	if *endpoint.Port != port || *endpoint.Scheme != "https" || endpoint.Authorization.Credentials.Name != "weir-metrics" || endpoint.TLSConfig.CA.Secret.Name != "weir-metrics" {
		t.Errorf("the monitor: %+v", endpoint)
	}
	rule := all["NetworkPolicy weir"].(*network.NetworkPolicy).Spec.Ingress[0]
	if rule.Ports[0].Port.StrVal != port || len(rule.From) != 1 {
		t.Errorf("the network policy: %+v", rule)
	}
	for _, v := range pod.Spec.Volumes {
		if v.Name == "metrics" && !bytes.Contains([]byte(fmt.Sprint(v.Secret.Items)), []byte("tls.key")) {
			t.Errorf("the Secret: %+v", v.Secret)
		}
	}
	closed := objects(t, "networkPolicy: {enabled: true, from: [{podSelector: {}}]}")
	if in := closed["NetworkPolicy weir"].(*network.NetworkPolicy).Spec.Ingress; len(in) != 0 || len(closed["DaemonSet weir"].(*apps.DaemonSet).Spec.Template.Spec.Containers[0].Ports) != 0 {
		t.Errorf("without a Secret there is a port: %+v", in)
	}
}
