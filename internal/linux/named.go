package linux

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// ErrAmbiguous says that several units have a name.
var ErrAmbiguous = errors.New("is ambiguous")

// CgroupNamed returns the path below Root of the cgroup that a person names: by its path, with Root or without, or as systemd names a
// slice, scope or service. The cgroup is there. Units are looked for in the slices of the system's and of the users' managers,
// never in what belongs to another unit, where names are chosen by who runs there.
func CgroupNamed(name string) (string, error) { return named(os.DirFS(CgroupRoot), name) }

func named(tree fs.FS, name string) (string, error) {
	switch {
	case strings.ContainsRune(name, 0):
		return "", errors.New("the name of a cgroup has no zero bytes")
	case strings.HasPrefix(name, "/"):
		at := CleanCgroup(name)
		if !there(tree, at) {
			return "", fmt.Errorf("no cgroup %s in %s: see systemd-cgls, or cat /proc/PID/cgroup", at, CgroupRoot)
		}
		return at, nil
	case !IsUnit(name):
		return "", fmt.Errorf("%q names no cgroup: write its path with a leading slash, or the name of a slice, scope or service", name)
	}
	if at, err := CgroupSlice(name); err == nil && there(tree, at) {
		return at, nil
	}
	found := units(tree, ".", name)
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no cgroup of a unit %s: see systemctl status %s, or write the cgroup's path", name, name)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s %w: write the path: %s", name, ErrAmbiguous, strings.Join(found, ", "))
}

// CleanCgroup is the path below Root of what may be a path with Root, too.
func CleanCgroup(at string) string {
	at = path.Clean("/" + at)
	if PathWithin(at, CgroupRoot) {
		return path.Clean("/" + strings.TrimPrefix(at, CgroupRoot))
	}
	return at
}

// IsUnit says whether a name is one that systemd gives to a unit with a cgroup.
func IsUnit(name string) bool {
	stem := strings.TrimSuffix(name, path.Ext(name))
	return stem != "" && !strings.Contains(name, "/") && slices.Contains([]string{".slice", ".scope", ".service"}, path.Ext(name))
}

func there(tree fs.FS, at string) bool {
	st, err := fs.Stat(tree, relative(at))
	return err == nil && st.IsDir()
}

// relative is a path below Root as a file system has it.
func relative(at string) string { return cmp.Or(at[1:], ".") }

// units finds cgroups of a name below a directory in which a manager of systemd keeps its units.
func units(tree fs.FS, dir, name string) []string {
	entries, err := fs.ReadDir(tree, dir)
	if err != nil {
		return nil // it has just been removed
	}
	var found []string
	for _, e := range entries {
		at := path.Join(dir, e.Name())
		if !e.IsDir() {
			continue
		}
		if e.Name() == name {
			found = append(found, "/"+at)
		}
		if strings.HasSuffix(at, ".slice") || strings.HasPrefix(e.Name(), "user@") && strings.HasSuffix(at, ".service") {
			found = append(found, units(tree, at, name)...)
		}
	}
	return found
}
