package toolguard

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"weir/internal/bridge/wire"
)

// ProtectedNames are those of the sensor that the rules of group 2 protect.
type ProtectedNames struct {
	Service    string   // as systemd has it, without .service
	Units      []string // others of its
	Secrets    []string // directories in which its keys are handed to it
	Programs   []string // paths
	State      string   // directory: the vault, what is stored
	Files      []string // other files and directories
	KillSwitch string
}

// InstalledNames are the names of this build.
func InstalledNames() ProtectedNames {
	return ProtectedNames{
		Service: wire.Service, Units: []string{wire.Watch}, Programs: []string{wire.Program, wire.Hook}, State: wire.State, KillSwitch: wire.KillSwitch,
		Secrets: []string{"/run/credentials/" + wire.Service + ".service", "/run/credstore", "/run/credstore.encrypted", "/etc/credstore", "/etc/credstore.encrypted", "/var/lib/systemd/credential.secret"},
		Files:   []string{wire.Config, wire.Run, wire.Pins, wire.Cgroup, "/usr/bin/" + wire.Service, "/usr/bin/" + path.Base(wire.Hook), "/usr/sbin/" + wire.Service},
	}
}

// Protect makes the rules of group 2, and the one of group 3 for the vault, from names.
func (n ProtectedNames) Protect() []Rule {
	units := append([]string{n.Service}, n.Units...)
	programs := []string{n.Service}
	for _, p := range n.Programs {
		programs = append(programs, path.Base(p))
	}
	slices.Sort(programs)
	programs = slices.Compact(programs)
	all := append(slices.Clone(n.Files), n.State, n.KillSwitch)
	all = append(all, n.Programs...)
	all = append(all, unitFiles(units)...)
	for _, u := range units {
		all = append(all, "/sys/fs/cgroup/system.slice/"+u+".service")
	}
	mine := namedBy(patterns(all...))
	touched := paths{func(p string) bool { // the directories that these are in, with a star, too
		return mine.is(p) || strings.HasSuffix(p, "*") && slices.ContainsFunc(all, func(f string) bool {
			return strings.HasPrefix(f, strings.TrimRight(p, "*")) && strings.Count(p, "/") > 2
		})
	}, eitherWords([]condition{{words: mine.words}, {words: [][]string{nthNames(all, 1), {pattern}}}})}
	dirs := namedBy(dirsOf(all))
	holds := paths{func(p string) bool { // what goes when this directory goes
		return mine.is(p) || dirs.is(strings.TrimSuffix(p, "/*"))
	}, eitherWords([]condition{{words: mine.words}, {words: dirs.words}})}
	kills := anyOf(hasUnit(units...), hasWord(func(w string) bool {
		w = strings.ToLower(w)
		return slices.ContainsFunc(programs, func(p string) bool {
			return w == p || w == p+".exe" || strings.HasPrefix(w, p+" run") || strings.HasSuffix(w, "/"+p)
		})
	}, wordsIn(programs...)...))
	named := findsNamed(append(unitNames(units), programs...), holds)
	located := anyOf(allOf(isNamed("find"), named), allOf(isNamed("whereis", "locate"), hasArg(programs...)))
	changes := onChanges(touched)
	for _, on := range changes { // $(which weir) has no path of it
		changes = append(changes, trigger{Names: on.Names, When: condition{on.When.is, [][]string{wordsIn("which", "command", "type"), wordsIn(programs...)}}})
	}
	service := Rule{
		ID: "sensor-service", Group: OnSelf, Refuses: "stops, disables or removes the service of this guard, or kills its process",
		Why: "Nothing would watch what happens next.", Instead: "Ask the user, who can do it on the host.",
		Refused: []Example{
			{Tool: bash, Text: "systemctl stop " + n.Service}, {Tool: bash, Text: "sudo systemctl mask --now " + n.Service + ".service"}, {Tool: bash, Text: "pkill -9 " + n.Service}, {Tool: bash, Text: "kill -9 $(pidof " + n.Service + ")"},
			{Tool: bash, Text: "apt-get remove -y " + n.Service}, {Tool: bash, Text: n.Service + " kill-switch off"}, {Tool: bash, Text: "pgrep -f " + n.Service + " | xargs kill"},
			{Tool: bash, Text: "systemctl freeze " + n.Service}, {Tool: bash, Text: "busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager StopUnit ss " + n.Service + ".service replace"},
			{Tool: bash, Text: "fuser -k " + n.Programs[0]}, {Tool: bash, Text: n.Service + " --json kill-switch off"}, {Tool: ps, Text: "Stop-Process -Name " + n.Service},
		},
		Near: []Example{{Tool: bash, Text: "systemctl status " + n.Service}, {Tool: bash, Text: n.Service + " status"}, {Tool: bash, Text: n.Service + " kill-switch status"}, {Tool: bash, Text: "systemctl restart nginx"}, {Tool: bash, Text: "echo systemctl stop " + n.Service}, {Tool: bash, Text: "grep -rn 'systemctl stop " + n.Service + "' docs"}},
		On: slices.Concat(stops(units...), services(units...), []trigger{
			{Names: []string{"pkill", "killall", "skill"}, When: anyOf(kills, killsByPattern(n.Service, n.Programs[0]+" run"))},
			{Names: []string{"taskkill", "stop-process"}, When: anyOf(kills, isMade(allOf(isNamed("get-process", "pidof", "pgrep"), kills)))},
			{Names: []string{"pkill", "killall", "killall5"}, When: when(func(c *Command) bool { // all that root runs
				return c.Name == "killall5" || hasOption(func(option, value string) bool {
					return (option == "-u" || option == "-U" || option == "--user" || option == "--euid" || option == "--uid") && (value == "root" || value == "0")
				}).is(c) && (len(operandsOf(c)) < 2 || killsByPattern(n.Service, n.Programs[0]+" run").is(c))
			}, "killall5", "root", "0")},
			{Names: []string{"kill", "stop-process", "gdb", "prlimit"}, When: allOf(isNot(when(func(c *Command) bool { return c.Name == "kill" && len(c.Args) > 0 && c.Args[0].Text == "-0" }, "-0")), anyOf(
				isMade(allOf(isNamed("pidof", "pgrep", "ps", "systemctl"), kills)), isMade(allOf(isNamed("cat", "head", "get-content"), anyOf(touchesPath(mine), hasWord(func(w string) bool { return path.Base(w) == n.Service+".pid" }, wordsIn(n.Service)...)))),
				isMade(allOf(isNamed("lsof", "fuser"), touchesPath(mine))), isMade(when(finds(n.Service), "grep", "egrep", "awk", "gawk")),
				when(func(c *Command) bool { return len(c.Args) > 1 && c.Args[len(c.Args)-1].Text == "-1" }, "-1"), // every process
			))},
			{Names: []string{"fuser"}, When: allOf(hasFlag('k', "kill"), touchesPath(mine))},
			{Names: []string{"busctl", "dbus-send", "gdbus", "qdbus"}, When: overBus(units)},
			{Names: []string{"apt", "apt-get", "dpkg", "yum", "dnf", "rpm", "zypper", "apk", "pacman", "snap"}, When: allOf(hasArg("remove", "purge", "-r", "-P", "-e", "erase", "del", "-R", "autoremove", "--remove", "--purge"), hasArg(programs...))},
			{Names: []string{"docker", "podman", "nerdctl", "crictl", "ctr", "kubectl", "helm"}, When: allOf(hasArg("stop", "kill", "rm", "pause", "delete", "uninstall"), hasWord(func(w string) bool { // the sensor as a container
				return w[strings.LastIndexByte(w, '/')+1:] == n.Service
			}, wordsIn(n.Service)...))},
			{Names: programs, When: when(orders, "kill-switch", "detach", "untaint", "mode", "approve", "deny", "uninstall")},
			{Names: []string{"systemctl"}, When: anyOf(allOf(hasArg("set-property", "edit"), hasUnit(units...)), allOf(hasArg("stop", "disable", "mask", "kill", "freeze"), isMade(anyOf(kills, when(finds(n.Service), "grep", "egrep", "awk", "gawk")))))},
			{Names: units, When: allOf(when(func(c *Command) bool { return strings.Contains(c.Program, "/init.d/") }, "init"), hasArg("stop", "force-stop"))},
			{Names: []string{"curl", "nc", "netcat", "ncat", "socat"}, When: hasWord(func(w string) bool { return strings.Contains(w, "/"+n.Service+"/control.sock") }, "control")},
		}),
	}
	files := Rule{
		ID: "sensor-files", Group: OnSelf, Refuses: "deletes, replaces or unmounts a program, file, socket or kernel object of this guard",
		Why: "Nothing would watch what happens next.", Instead: "Ask the user, who can do it on the host.",
		Refused: []Example{
			{Tool: bash, Text: "rm -f " + n.Programs[0]}, {Tool: bash, Text: "sudo mv x " + n.Programs[0]}, {Tool: bash, Text: "rm -rf " + n.State}, {Tool: "fs_write", Text: n.Programs[0]}, {Tool: bash, Text: "umount /sys/fs/bpf"},
			{Tool: bash, Text: "echo on > " + n.KillSwitch}, {Tool: "fs_delete", Text: n.KillSwitch},
		},
		Near: []Example{{Tool: bash, Text: "ls -l " + n.Programs[0]}, {Tool: bash, Text: "rm -f /work/bin/" + n.Service}, {Tool: "fs_read", Text: n.Programs[0]}, {Tool: "read_file", Text: n.Files[0]}},
		On: append(changes, trigger{Names: []string{"rm", "mv"}, When: allOf(anyOf(isNamed("mv"), hasFlag('r', "recursive"), hasFlag('R', "")), firstsAre(holds))},
			trigger{Names: []string{"find"}, When: allOf(deletesFound, anyOf(touchesPath(mine), allOf(touchesPath(holds), when(findsEach)), named))}, trigger{Names: []string{"rm", "mv", "unlink", "shred", "truncate", "chmod", "chattr"}, When: isMade(located)}, trigger{Names: []string{"umount"}, When: anyOf(hasArg("/sys/fs/bpf", "/sys/fs/cgroup", "/sys/fs", "/sys"), touchesPath(touched))},
			trigger{Names: []string{"mount"}, When: allOf(hasArg("/sys/fs/bpf", "/sys/fs/cgroup", "/sys/fs", "/sys"), isNot(hasArg("bpf", "cgroup2", "sysfs")), when(func(c *Command) bool { // over it, or it elsewhere
				return strings.HasPrefix(c.Args[len(c.Args)-1].Text, "/sys") || hasArg("--move", "-M").is(c)
			}))}, trigger{Names: []string{"bpftool"}, When: hasArg("detach", "delete", "update")}, trigger{Names: []string{"remove-item", "move-item", "set-content", "out-file"}, When: touchesPath(mine)}, trigger{Names: []string{"rmdir", "mount", "chmod", "chown", "setfacl", "setcap", "dpkg-divert", "touch", "patch", "sqlite3"}, When: touchesPath(mine)}),
		Changed: patterns(all...),
		Deleted: dirsOf(all),
	}
	vault := Rule{
		ID: "sensor-vault", Group: OnPaths, Refuses: "opens what this guard stores, secrets among it", Why: "It holds what agents must not see.", Instead: "Use the tools that hand out what is allowed.",
		Refused: []Example{{Tool: readFile, Text: n.State + "/vault.age"}, {Tool: "fs_list", Text: n.State}, {Tool: readFile, Text: "/run/credentials/" + n.Service + ".service/key"}}, Near: []Example{{Tool: readFile, Text: "/var/lib/dpkg/status"}},
		Files: patterns(append(n.Secrets, n.State)...),
	}
	return []Rule{service, files, vault}
}

// finds is met by what looks for a name among lines, as grep and awk do.
func finds(name string) func(*Command) bool {
	return func(c *Command) bool {
		if !strings.HasSuffix(c.Name, "grep") && !strings.HasSuffix(c.Name, "awk") || strings.HasSuffix(c.Name, "grep") && hasFlag('v', "invert-match").is(c) {
			return false
		}
		return slices.ContainsFunc(operandsOf(c), func(w string) bool {
			if strings.HasSuffix(c.Name, "awk") {
				_, w, _ = strings.Cut(w, "/")
				w, _, _ = strings.Cut(w, "/")
			}
			re, err := regexp.Compile(w)
			return err == nil && len(w) > 2 && len(w) < 100 && re.MatchString(name)
		})
	}
}

// findsEach is met by find that leaves no file out.
func findsEach(c *Command) bool {
	i := slices.IndexFunc(c.Args, func(v Value) bool { return strings.HasPrefix(v.Text, "-") || v.Text == "!" || v.Text == "(" })
	return i >= 0 && !narrows(c.Args[i:])
}

// findsNamed is met by find over the system for files of such a name.
func findsNamed(names []string, in paths) condition {
	return allOf(condition{func(c *Command) bool {
		return slices.ContainsFunc(operandsOf(c), func(w string) bool { return isSystem(c.in(w)) || in.is(c.in(w)) })
	}, eitherWords([]condition{{words: system.words}, {words: in.words}})}, hasOption(func(option, value string) bool {
		return strings.HasSuffix(option, "name") && strings.Trim(value, "*?") != "" && slices.ContainsFunc(names, func(n string) bool {
			ok, err := path.Match(value, n)
			return ok && err == nil
		})
	}, append(wordsIn(names...), pattern)...))
}

// unitNames are the files of units.
func unitNames(units []string) (all []string) {
	for _, u := range units {
		all = append(all, u+".service")
	}
	return all
}

// patterns are of files and directories, and all that is in them.
func patterns(list ...string) []string {
	var out []string
	for _, p := range list {
		out = append(out, strings.ToLower(p), strings.ToLower(p)+"/**")
	}
	return out
}

// unitFiles are the patterns of what systemd reads about units: files, drop-ins, and links by which targets want them.
func unitFiles(units []string) (all []string) {
	for _, dir := range strings.Fields("/etc/systemd/system /run/systemd/system /lib/systemd/system /usr/lib/systemd/system /usr/local/lib/systemd/system /etc/systemd/system.control /run/systemd/system.control /run/systemd/transient") {
		for _, u := range units {
			for _, in := range []string{dir, dir + "/*.wants", dir + "/*.requires"} {
				all = append(all, in+"/"+u+".service")
			}
			all = append(all, dir+"/"+u+".service.d")
			if i := strings.LastIndexByte(u, '-'); i > 0 {
				all = append(all, dir+"/"+u[:i+1]+".service.d")
			}
		}
	}
	return all
}

// dirsOf are the directories that files are in, but for those that have much else.
func dirsOf(files []string) (dirs []string) {
	for _, f := range files {
		for d := path.Dir(strings.ToLower(f)); len(d) > 1; d = path.Dir(d) {
			dirs = append(dirs, d)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// orders is met when the sensor is told what only people may tell it. Options may stand before that, with a value or without.
func orders(c *Command) bool {
	for i, v := range c.Args {
		if strings.HasPrefix(v.Text, "-") {
			continue
		}
		switch v.Text {
		case "kill-switch":
			return i+1 == len(c.Args) || c.Args[i+1].Text != "status"
		case "detach", "untaint", "mode", "approve", "deny", "uninstall":
			return true
		}
		if i == 0 || !strings.HasPrefix(c.Args[i-1].Text, "-") || strings.Contains(c.Args[i-1].Text, "=") {
			return false
		}
	}
	return false
}

// killsByPattern is met when a regular expression for names, or for command lines, finds one of these.
func killsByPattern(name, line string) condition {
	return when(func(c *Command) bool {
		full := hasFlag('f', "full").is(c)
		if c.Name == "killall" && !hasFlag('r', "regexp").is(c) || anyOf(hasFlag('P', "parent"), hasFlag('g', "pgroup"), hasFlag('s', "session"), hasFlag('t', "terminal"), hasFlag('u', "euid"), hasFlag('U', "uid")).is(c) {
			return false
		}
		return slices.ContainsFunc(operandsOf(c), func(w string) bool {
			re, err := regexp.Compile(w)
			return len(w) < 100 && err == nil && (re.MatchString(name) || full && re.MatchString(line))
		})
	})
}

// busMethods are those with which systemd is told to stop a unit, or to forget or change it.
var busMethods = regexp.MustCompile(`(?i)(^|\.)((stop|kill|freeze|clean|disable|mask|revert)(unit|unitfiles|unitfileswithflags|unitprocesses|unitwithflags|unitsubgroup)?|queuesignalunit|setunitproperties|setproperties)$`)

// overBus is met when systemd is asked over D-Bus to stop one of these units.
func overBus(units []string) condition {
	unit := isUnit(units...)
	escape := strings.NewReplacer("-", "_2d", ".", "_2e")
	ours := hasWord(func(w string) bool {
		return unit(strings.TrimPrefix(strings.Trim(w, `'"[]`), "string:")) || slices.ContainsFunc(units, func(u string) bool { return strings.HasSuffix(w, "/unit/"+escape.Replace(u+".service")) })
	}, append(anywhere(units...), pattern)...)
	return allOf(hasWord(busMethods.MatchString, anywhere("stop", "kill", "freeze", "clean", "disable", "mask", "revert", "queuesignal", "properties")...), ours)
}
