package container

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"weir/internal/linux"
	"weir/internal/policy"
	"weir/internal/taint"
)

// What Kubernetes' runtime interface writes beside a container. A pod's sandbox has the pod's own labels, its containers have not.
const (
	podLabel          = "io.kubernetes.pod.name"
	podNamespaceLabel = "io.kubernetes.pod.namespace"
	podUIDLabel       = "io.kubernetes.pod.uid"
	containerLabel    = "io.kubernetes.container.name"
	nerdctlLabel      = "nerdctl/name"
	imageAnnotation   = "io.kubernetes.cri.image-name"
	kindAnnotation    = "io.kubernetes.cri.container-type" // container or sandbox
	sandboxAnnotation = "io.kubernetes.cri.sandbox-id"
)

const maxAgent = 253 // bytes of the label that names one

// matching returns the first item of the policy that fits a container; false: none does.
func matching(all []policy.Match, c Container) (policy.Match, bool) {
	for _, m := range all {
		if fits(m, c) {
			return m, true
		}
	}
	return policy.Match{}, false
}

func fits(m policy.Match, c Container) bool {
	return (m.Namespace == "" || policy.Matches(m.Namespace, c.Namespace)) && (m.Image == "" || policy.Matches(m.Image, c.Image)) &&
		labelled(m.Labels, c.Labels) && labelled(m.Annotations, c.Spec.Annotations)
}

func labelled(want []policy.Label, have map[string]string) bool {
	return !slices.ContainsFunc(want, func(l policy.Label) bool {
		v, ok := have[l.Key]
		return !ok || !policy.Matches(l.Value, v)
	})
}

// origin is what the log and weir containers tell of it.
func origin(c Container) taint.Origin {
	return taint.Origin{
		Runtime: "containerd", Namespace: c.Namespace, ID: c.ID, Image: c.Image,
		Pod: c.Labels[podLabel], PodNamespace: c.Labels[podNamespaceLabel], PodUID: c.Labels[podUIDLabel],
	}
}

// origin is that with what the policy's label says of the container, or of its pod.
func (k *Keeper) origin(c Container) taint.Origin {
	o, label := origin(c), k.Policy().Fleet.Label
	if label == "" {
		return o
	}
	o.Agent = c.Labels[label]
	if o.Agent == "" && o.PodUID != "" {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, labels := range k.pods {
			if labels[podUIDLabel] == o.PodUID {
				o.Agent = max(o.Agent, labels[label]) // of several always the same
			}
		}
	}
	if len(o.Agent) > maxAgent {
		o.Agent = ""
	}
	return o
}

// called is what people call it.
func called(c Container) string {
	for _, label := range []string{containerLabel, nerdctlLabel} {
		if s := c.Labels[label]; s != "" {
			return s
		}
	}
	return c.ID
}

// specified is the path of a container's cgroup below the cgroup root, as its specification has it; systemd says that it is a
// unit, which only systemd may make. Empty: the runtime chooses.
func specified(c Container) (at string, systemd bool) {
	if c.Spec.Linux == nil || c.Spec.Linux.CgroupsPath == "" {
		return "", false
	}
	text := c.Spec.Linux.CgroupsPath
	parts := strings.Split(text, ":")
	if len(parts) != 3 || strings.Contains(parts[1], "/") {
		if !strings.HasPrefix(text, "/") {
			return "", false // below the runtime's own cgroup
		}
		return path.Clean(text), false
	}
	slice, unit := cmp.Or(parts[0], "system.slice"), parts[1]+"-"+parts[2]+".scope"
	switch {
	case strings.HasSuffix(parts[2], ".slice"):
		slice, unit = parts[2], ""
	case parts[1] == "":
		unit = parts[2] + ".scope"
	}
	above, err := linux.CgroupSlice(slice)
	if err != nil {
		return "", true // systemd refuses it
	}
	return path.Join(above, unit), true
}

// actual is where the first process of a running container is, at the level that the specification names: a container that makes
// cgroups of its own may have moved it further down.
func actual(c Container, of func(pid int) (string, error)) (string, error) {
	now, err := of(c.PID)
	if err != nil {
		return "", err
	}
	if at, _ := specified(c); at != "" && linux.PathWithin(now, at) {
		return at, nil
	}
	return now, nil
}

// place finds which cgroup is the container that Weir knows: the child of the innermost guarded parent above it; outside of all,
// the pod's cgroup (G3), or its own.
func place(at string, parents []string, podUID string) (found string, alone bool) {
	if child, ok := linux.CgroupChild(at, parents); ok {
		return child, false
	}
	if podUID == "" {
		return at, true
	}
	for up := path.Dir(at); up != "/" && up != "."; up = path.Dir(up) {
		if base := path.Base(up); strings.Contains(base, podUID) || strings.Contains(base, strings.ReplaceAll(podUID, "-", "_")) {
			return up, true
		}
	}
	return at, true
}

// choose says which cgroup a container at a path is for Weir, and by which item of the policy; not ok: it is left alone.
func (k *Keeper) choose(c Container, at string, p policy.Policy) (path string, alone bool, rule policy.Match, matched, ok bool) {
	if at == "" || at == "/" {
		return "", false, rule, false, false
	}
	rule, matched = matching(p.Containers.Match, c)
	if !matched {
		rule, matched = k.podRule(c)
	}
	matched = matched && rule.Guard
	path, alone = place(at, k.Parents(), c.Labels[podUIDLabel])
	return path, alone, rule, matched, matched || !alone
}

// podRule is what matched another container of the same pod: its sandbox has the pod's labels (G3).
func (k *Keeper) podRule(c Container) (policy.Match, bool) {
	uid := c.Labels[podUIDLabel]
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.known {
		if uid != "" && e.matched && e.container.Labels[podUIDLabel] == uid {
			return e.rule, true
		}
	}
	return policy.Match{}, false
}
