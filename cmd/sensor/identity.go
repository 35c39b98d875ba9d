package main

import (
	"cmp"
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"weir/internal/control"
)

// identity is who a guarded command runs as.
type identity struct {
	uid, gid uint32
	groups   []uint32
	env      []string
	says     string // for the operator
}

// identity finds who CMD runs as: name, or who called sudo, or else root.
func (s *system) identity(name string) (identity, error) {
	sudoUID := s.getenv("SUDO_UID")
	name = cmp.Or(name, sudoUID, "root")
	if name == "root" || name == "0" {
		says := "runs as root, which can undo what guards it: better use --user NAME"
		return identity{env: s.environ, says: says}, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return identity{}, control.Errorf(control.Usage, "--user %s: no such user: name one of /etc/passwd", name)
		}
	}
	groups, err := u.GroupIds()
	if err != nil {
		return identity{}, fmt.Errorf("find groups of %s: %w", u.Username, err)
	}
	var ids []uint32
	for _, id := range append([]string{u.Uid, u.Gid}, groups...) {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return identity{}, fmt.Errorf("find groups of %s: %w", u.Username, err)
		}
		ids = append(ids, uint32(n))
	}
	who := identity{uid: ids[0], gid: ids[1], groups: ids[2:]}
	who.env = append(without(s.environ, "HOME", "USER", "LOGNAME", "MAIL", "SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND"),
		"HOME="+u.HomeDir, "USER="+u.Username, "LOGNAME="+u.Username)
	who.says = fmt.Sprintf("runs as %s (uid %d)", u.Username, who.uid)
	if u.Uid == sudoUID {
		who.says += ", who called sudo: --user root changes that"
	}
	return who, nil
}

// flags are the identity as guard-init takes it; root stays as it is.
func (i identity) flags() []string {
	if i.uid == 0 {
		return nil
	}
	var groups []string
	for _, g := range i.groups {
		groups = append(groups, strconv.FormatUint(uint64(g), 10))
	}
	return []string{fmt.Sprintf("--uid=%d", i.uid), fmt.Sprintf("--gid=%d", i.gid), "--groups=" + strings.Join(groups, ",")}
}
