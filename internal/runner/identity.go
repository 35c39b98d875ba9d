package runner

import (
	"cmp"
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"weir/internal/control"
)

// Identity is who a guarded command runs as.
type Identity struct {
	uid, gid uint32
	groups   []uint32
	env      []string
	Says     string // who that is, for the operator
}

// Identify finds who a guarded command runs as: name, or who called sudo, or else root.
func (w World) Identify(name string) (Identity, error) {
	name = cmp.Or(name, w.getenv("SUDO_UID"), "root")
	if name == "root" || name == "0" {
		return Identity{env: w.Environ, Says: "root"}, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return Identity{}, control.Errorf(control.Usage, "--user %s: no such user: name one of /etc/passwd", name)
		}
	}
	groups, err := u.GroupIds()
	if err != nil {
		return Identity{}, fmt.Errorf("find groups of %s: %w", u.Username, err)
	}
	var ids []uint32
	for _, id := range append([]string{u.Uid, u.Gid}, groups...) {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return Identity{}, fmt.Errorf("find groups of %s: %w", u.Username, err)
		}
		ids = append(ids, uint32(n))
	}
	who := Identity{uid: ids[0], gid: ids[1], groups: ids[2:]}
	who.env = append(without(w.Environ, "HOME", "USER", "LOGNAME", "MAIL", "SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND"),
		"HOME="+u.HomeDir, "USER="+u.Username, "LOGNAME="+u.Username)
	who.Says = fmt.Sprintf("%s (uid %d)", u.Username, who.uid)
	return who, nil
}

// Home is the home directory; empty: unknown.
func (i Identity) Home() string { return Getenv(i.env, "HOME") }

// Root says whether it is root.
func (i Identity) Root() bool { return i.uid == 0 }

// flags are the identity as guard-init takes it; root stays as it is.
func (i Identity) flags() []string {
	if i.uid == 0 {
		return nil
	}
	var groups []string
	for _, g := range i.groups {
		groups = append(groups, strconv.FormatUint(uint64(g), 10))
	}
	return []string{fmt.Sprintf("--uid=%d", i.uid), fmt.Sprintf("--gid=%d", i.gid), "--groups=" + strings.Join(groups, ",")}
}
