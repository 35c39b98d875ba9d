package container

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/taint"
)

// look finds what undoes the guard of a container, and marks what the policy refuses.
func (k *Keeper) look(e *entry) []event.Finding {
	if e.container.Spec.Annotations[kindAnnotation] == "sandbox" {
		return nil // the pod's containers have what counts
	}
	found := findings(e.container.Spec, facts{shared: shared(e.container.PID), fsType: networkType})
	if e.container.Running {
		sockets, err := k.Sockets(e.path)
		if err != nil {
			k.Fail("look for open packet sockets", err)
		}
		for _, text := range sockets {
			found = append(found, event.Finding{ID: "packet_socket", Severity: high, Text: text})
		}
	}
	if !e.matched {
		return found
	}
	refuse := slices.Concat(k.Policy().Containers.Refuse, e.rule.Refuse)
	for i := range found {
		found[i].Refused = slices.Contains(refuse, found[i].ID)
	}
	return found
}

// tell logs each finding of a container once.
func (k *Keeper) tell(e *entry, found []event.Finding) {
	id, _ := linux.CgroupID(e.path) // 0: it is not made yet
	ec := k.Show(id, 0)
	if id == 0 {
		ec = k.described(e).Event(0)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range found {
		if key := f.ID + f.Text; !e.told[key] {
			e.told[key] = true
			k.Log(event.Event{Kind: event.Found, Container: &ec, Finding: &f})
		}
	}
}

// kill ends a container that the policy refuses. It is tainted with both bits by now: what it does until then stays in.
func (k *Keeper) kill(e *entry) error {
	at, err := actual(e.container, linux.CgroupOf)
	if err != nil {
		return nil // it has ended
	}
	if !linux.PathWithin(at, e.path) {
		return fmt.Errorf("kill refused container %s: its cgroup %s is not below %s", e.container.ID, at, e.path)
	}
	if err := os.WriteFile(filepath.Join(linux.CgroupDir(at), "cgroup.kill"), []byte("1"), 0); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("kill refused container %s: %w", e.container.ID, err)
	}
	k.mu.Lock()
	first := !e.refused
	e.refused = true
	k.mu.Unlock()
	if first {
		id, _ := linux.CgroupID(e.path)
		ec := k.Show(id, 0)
		k.Log(event.Event{Kind: event.Error, Container: &ec, Message: "container " + e.container.ID + " was killed: the policy refuses what it has"})
	}
	return nil
}

// spread tells of volumes that a tainted container shares with one that is not (B34).
func (k *Keeper) spread() {
	k.mu.Lock()
	entries := make([]*entry, 0, len(k.known))
	for _, e := range k.known {
		if e.container.PID != 0 && len(e.volumes) > 0 {
			entries = append(entries, e)
		}
	}
	k.mu.Unlock()
	bits := make([]taint.Bits, len(entries))
	for i, e := range entries {
		if st, err := k.State.Find(e.path); err == nil {
			bits[i] = st.Taint
		}
	}
	for i, a := range entries {
		for j, b := range entries {
			if b.path != a.path && bits[i]&^bits[j] != 0 {
				k.tell(a, sharing(a.volumes, b.volumes, called(b.container), k.Carried))
			}
		}
	}
}

// Place is what a container has of the host's files.
type Place struct {
	Who    string // the path of its cgroup
	Dir    string
	Writes bool
}

// Places are those of the containers that have a process.
func (k *Keeper) Places() []Place {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []Place
	for _, e := range k.known {
		for _, v := range e.volumes {
			if e.container.PID != 0 {
				all = append(all, Place{e.path, v.source, v.writable})
			}
		}
	}
	return all
}

// Tainted looks again at what containers share, after a taint.
func (k *Keeper) Tainted() { k.spread() }

// shared says which kinds of namespaces a process has in common with process 1 of the host. Nothing is known of no process.
func shared(pid int) map[string]bool {
	found := map[string]bool{}
	if pid == 0 {
		return found
	}
	for _, kind := range []string{"pid", "net", "cgroup"} {
		host, err := os.Readlink("/proc/1/ns/" + kind)
		own, failed := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/" + kind)
		found[kind] = err == nil && failed == nil && host == own
	}
	return found
}

// networkMagics are the file systems of statfs that are somewhere else.
var networkMagics = map[int64]string{
	unix.NFS_SUPER_MAGIC: "nfs", unix.SMB_SUPER_MAGIC: "cifs", 0xfe534d42: "smb2", unix.CIFS_SUPER_MAGIC: "cifs", unix.CEPH_SUPER_MAGIC: "ceph",
	unix.V9FS_MAGIC: "9p", unix.AFS_SUPER_MAGIC: "afs", unix.AFS_FS_MAGIC: "afs", unix.CODA_SUPER_MAGIC: "coda", 0x0bd00bd0: "lustre", 0x01161970: "gfs2",
}

// networkType names the network file system that a path of the host is on. FUSE may be anything: its own name is in the mount table.
func networkType(source string) string {
	var st unix.Statfs_t
	if !strings.HasPrefix(source, "/") || unix.Statfs(source, &st) != nil {
		return ""
	}
	return networkMagics[int64(st.Type)]
}
