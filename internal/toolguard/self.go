package toolguard

import (
	"path"
	"slices"
	"strings"

	"weir/internal/bridge/wire"
)

// ProtectedNames are those of the sensor that the rules of group 2 protect.
type ProtectedNames struct {
	Service    string   // as systemd has it, without .service
	Secrets    []string // directories in which its keys are handed to it
	Programs   []string // paths
	State      string   // directory: the vault, what is stored
	Files      []string // other files and directories
	KillSwitch string
}

// InstalledNames are the names of this build.
func InstalledNames() ProtectedNames {
	return ProtectedNames{
		Service: wire.Service, Programs: []string{wire.Program, wire.Hook}, State: wire.State, KillSwitch: wire.KillSwitch,
		Secrets: []string{"/run/credentials/" + wire.Service + ".service", "/run/credstore", "/run/credstore.encrypted", "/etc/credstore", "/etc/credstore.encrypted", "/var/lib/systemd/credential.secret"},
		Files:   []string{wire.Config, wire.Run, wire.Pins, wire.Cgroup, "/usr/bin/" + wire.Service, "/usr/sbin/" + wire.Service, "/etc/systemd/system/" + wire.Service + ".service", "/lib/systemd/system/" + wire.Service + ".service", "/usr/lib/systemd/system/" + wire.Service + ".service"},
	}
}

// Protect makes the rules of group 2, and the one of group 3 for the vault, from names.
func (n ProtectedNames) Protect() []Rule {
	programs := []string{n.Service}
	for _, p := range n.Programs {
		programs = append(programs, path.Base(p))
	}
	slices.Sort(programs)
	programs = slices.Compact(programs)
	all := append(slices.Clone(n.Files), n.State, n.KillSwitch)
	all = append(all, n.Programs...)
	mine := belowAny(all...)
	touched := func(p string) bool { // the directories that these are in, with a star, too
		return mine(p) || strings.HasSuffix(p, "*") && slices.ContainsFunc(all, func(f string) bool {
			return strings.HasPrefix(f, strings.TrimRight(p, "*")) && strings.Count(p, "/") > 2
		})
	}
	kills := func(c *Command) bool {
		return slices.ContainsFunc(c.Words(), func(w string) bool {
			return slices.ContainsFunc(programs, func(p string) bool {
				return w == p || w == "^"+p || w == p+"$" || w == "^"+p+"$" || strings.HasPrefix(w, p+" run") || strings.HasSuffix(w, "/"+p)
			})
		})
	}
	orders := hasArg("detach", "kill-switch", "untaint", "mode", "approve", "deny")
	service := Rule{
		ID: "sensor-service", Group: OnSelf, Refuses: "stops, disables or removes the service of this guard, or kills its process",
		Why: "Nothing would watch what happens next.", Instead: "Ask the user, who can do it on the host.",
		Refused: []Example{
			{Tool: bash, Text: "systemctl stop " + n.Service}, {Tool: bash, Text: "sudo systemctl mask --now " + n.Service + ".service"}, {Tool: bash, Text: "pkill -9 " + n.Service}, {Tool: bash, Text: "kill -9 $(pidof " + n.Service + ")"},
			{Tool: bash, Text: "apt-get remove -y " + n.Service}, {Tool: bash, Text: n.Service + " kill-switch off"}, {Tool: bash, Text: "pgrep -f " + n.Service + " | xargs kill"},
		},
		Near: []Example{{Tool: bash, Text: "systemctl status " + n.Service}, {Tool: bash, Text: n.Service + " status"}, {Tool: bash, Text: n.Service + " kill-switch status"}, {Tool: bash, Text: "systemctl restart nginx"}, {Tool: bash, Text: "echo systemctl stop " + n.Service}, {Tool: bash, Text: "grep -rn 'systemctl stop " + n.Service + "' docs"}},
		On: slices.Concat(stops(programs...), []trigger{
			{Names: []string{"pkill", "killall", "skill"}, When: kills},
			{Names: []string{"kill"}, When: isMade(allOf(isNamed("pidof", "pgrep", "ps", "systemctl"), kills))},
			{Names: []string{"apt", "apt-get", "dpkg", "yum", "dnf", "rpm", "zypper", "apk", "pacman", "snap"}, When: allOf(hasArg("remove", "purge", "-r", "-P", "-e", "erase", "del", "-R", "autoremove", "--remove", "--purge"), hasArg(programs...))},
			{Names: programs, When: func(c *Command) bool {
				asks := len(c.Args) > 1 && c.Args[0].Text == "kill-switch" && c.Args[1].Text == "status"
				return len(c.Args) > 0 && orders(&Command{Args: c.Args[:1]}) && !asks
			}},
			{Names: []string{"systemctl"}, When: allOf(hasArg("set-property", "edit"), hasArg(n.Service, n.Service+".service"))},
		}),
	}
	files := Rule{
		ID: "sensor-files", Group: OnSelf, Refuses: "deletes, replaces or unmounts a program, file, socket or kernel object of this guard",
		Why: "Nothing would watch what happens next.", Instead: "Ask the user, who can do it on the host.",
		Refused: []Example{
			{Tool: bash, Text: "rm -f " + n.Programs[0]}, {Tool: bash, Text: "sudo mv x " + n.Programs[0]}, {Tool: bash, Text: "rm -rf " + n.State}, {Tool: "fs_write", Text: n.Programs[0]}, {Tool: bash, Text: "umount /sys/fs/bpf"},
			{Tool: bash, Text: "echo on > " + n.KillSwitch}, {Tool: "fs_delete", Text: n.KillSwitch},
		},
		Near:    []Example{{Tool: bash, Text: "ls -l " + n.Programs[0]}, {Tool: bash, Text: "rm -f /work/bin/" + n.Service}, {Tool: "fs_read", Text: n.Programs[0]}, {Tool: "read_file", Text: n.Files[0]}},
		On:      append(onChanges(touched), trigger{Names: []string{"umount"}, When: hasArg("/sys/fs/bpf", "/sys/fs/cgroup")}, trigger{Names: []string{"bpftool"}, When: hasArg("detach", "delete", "update")}, trigger{Names: []string{"remove-item", "move-item", "set-content", "out-file"}, When: touchesPath(mine)}, trigger{Names: []string{"rmdir", "mount", "chmod", "chown", "setfacl", "touch", "patch"}, When: touchesPath(mine)}),
		Changed: patterns(all...),
	}
	vault := Rule{
		ID: "sensor-vault", Group: OnPaths, Refuses: "opens what this guard stores, secrets among it", Why: "It holds what agents must not see.", Instead: "Use the tools that hand out what is allowed.",
		Refused: []Example{{Tool: readFile, Text: n.State + "/vault.age"}, {Tool: "fs_list", Text: n.State}, {Tool: readFile, Text: "/run/credentials/" + n.Service + ".service/key"}}, Near: []Example{{Tool: readFile, Text: "/var/lib/dpkg/status"}},
		Files: patterns(append(n.Secrets, n.State)...),
	}
	return []Rule{service, files, vault}
}

// patterns are of files and directories, and all that is in them.
func patterns(list ...string) []string {
	var out []string
	for _, p := range list {
		out = append(out, strings.ToLower(p), strings.ToLower(p)+"/**")
	}
	return out
}
