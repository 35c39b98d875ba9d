package toolguard

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"weir/internal/bridge/wire"
	"weir/internal/commands"
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

// rules are the compiled-in ones, those about these names among them.
func (n ProtectedNames) rules() []Rule {
	rules, err := n.vocabulary().readRules(rulesText)
	if err != nil {
		panic(err) // a test reads them
	}
	return rules
}

// vocabulary is what rules.txt may name.
func (n ProtectedNames) vocabulary() *vocabulary {
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
	for _, name := range strings.Fields("cgroup.kill cgroup.freeze cgroup.subtree_control cpu.max cpu.weight cpuset.cpus io.max memory.max memory.high pids.max") {
		all = append(all, "/sys/fs/cgroup/system.slice/"+name)
	}
	own, ownDirs := patterns(all...), dirsOf(all)
	mine := namedBy(own)
	touched := paths{func(p string) bool { // a pattern that finds one, or a directory that they are in, too
		return mine.is(p) || strings.ContainsAny(p, "*?[") && slices.ContainsFunc(all, func(f string) bool {
			ok, err := path.Match(p, f)
			return ok && err == nil || strings.HasSuffix(p, "*") && strings.HasPrefix(f, strings.TrimRight(p, "*")) && strings.Count(p, "/") > 2
		})
	}, eitherWords([]condition{{words: mine.words}, {words: [][]string{nthNames(all, 1), {pattern}}}})}
	dirs := namedBy(ownDirs)
	holds := paths{func(p string) bool { // what goes when this directory goes
		return mine.is(p) || dirs.is(strings.TrimSuffix(p, "/*"))
	}, eitherWords([]condition{{words: mine.words}, {words: dirs.words}})}
	byPattern := killsByPattern(n.Service, n.Programs[0]+" run")
	v := &vocabulary{
		names: strings.NewReplacer("{service}", n.Service, "{program}", n.Programs[0], "{state}", n.State, "{kill-switch}", n.KillSwitch, "{file}", n.Files[0]),
		lists: map[string][]string{
			"units": units, "with-units": append(units[:len(units):len(units)], above...), "programs": programs, "service-words": wordsIn(n.Service), "own-files": own, "own-dirs": ownDirs, "vault-files": patterns(append(n.Secrets, n.State)...),
			"disks": disks, "log-files": patterns(logFiles...), "boot-files": bootFiles, "protection-files": patterns(protectionFiles...), "account-files": patterns(accountFiles[:4]...), // the others are shadow-file's
			"system-dirs": systemDirs, "hives": hives, "shells": shellNames, "interpreters": interpreters, "powershells": powerShells, "fork-bomb": {forkBomb}, "unknown": {""}, "fetched": fetchers.words[0],
			"system-words": systemWords, "masks": masks,
		},
		paths: map[string]paths{
			"mine": mine, "touched": touched, "holds": holds, "device": device, "system": system, "under-all": underAll, "logs": logs, "boot": namedBy(bootFiles), "protection": belowAny(protectionFiles...),
			"accounts": belowAny(accountFiles...), "apparmor": {func(p string) bool { return p == "/etc/apparmor.d" || strings.Contains(p, "*") }, [][]string{{"apparmor", pattern}}}, // all, not one
		},
		conds: map[string]condition{
			"always": always, "bomb": when(always.is, function, "function"), "lsass": lsass, "takes-system": {takesSystem, system.words}, "over-system": {overSystem, system.words}, "deletes-found": deletesFound,
			"empties": empties, "removes-system": removesSystem, "removes-tree": removesTree, "finds-mine": findsNamed(append(unitNames(units), programs...), holds), "over-bus": overBus(append(units[:len(units):len(units)], above...)),
			"kills": anyOf(hasUnit(units...), hasWord(func(w string) bool {
				w = strings.ToLower(w)
				return slices.ContainsFunc(programs, func(p string) bool {
					return w == p || w == p+".exe" || strings.HasPrefix(w, p+" run") || strings.HasSuffix(w, "/"+p)
				})
			}, wordsIn(programs...)...)),
		},
		tests: map[string]func(*Command) bool{
			"looks-for": finds(n.Service), "isolates": isolates, "finds-each": findsEach, "orders": orders, "kills-by-pattern": byPattern,
			"kills-root": func(c *Command) bool { // all that root runs
				return c.Name == "killall5" || hasOption(func(option, value string) bool {
					return commands.Listed("-u -U --user --euid --uid", option) && (value == "root" || value == "0")
				}).is(c) && (len(operandsOf(c)) < 2 || byPattern(c))
			},
			"sends-nothing":  func(c *Command) bool { return c.Name == "kill" && first(c.Args).Text == "-0" },
			"sends-to-all":   func(c *Command) bool { return len(c.Args) > 1 && c.Args[len(c.Args)-1].Text == "-1" },
			"pid-file":       hasWord(func(w string) bool { return path.Base(w) == n.Service+".pid" }).is,
			"container":      hasWord(func(w string) bool { return w[strings.LastIndexByte(w, '/')+1:] == n.Service }).is,
			"init-script":    func(c *Command) bool { return strings.Contains(c.Program, "/init.d/") },
			"control-socket": hasWord(func(w string) bool { return strings.Contains(w, "/"+n.Service+"/control.sock") }).is,
			"mounts-there": func(c *Command) bool { // over it, or it elsewhere
				return strings.HasPrefix(c.Args[len(c.Args)-1].Text, "/sys") || hasArg("--move", "-M").is(c)
			},
		},
	}
	maps.Copy(v.tests, ruleTests)
	return v
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

// above are the units with which all services go.
var above = []string{"system.slice", "-.slice", "sysinit.target", "multi-user.target"}

// unitName is a unit's whole name.
func unitName(unit string) string {
	if strings.Contains(unit, ".") {
		return unit
	}
	return unit + ".service"
}

// unitNames are the files of units.
func unitNames(units []string) (all []string) {
	for _, u := range units {
		all = append(all, unitName(u))
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

// orders is met when the sensor is told what only people may tell it.
func orders(c *Command) bool {
	return slices.ContainsFunc(told(c), func(v []Value) bool {
		if v[0].Text == "kill-switch" {
			return len(v) == 1 || v[1].Text != "status"
		}
		return commands.Listed("detach untaint mode approve deny uninstall", v[0].Text)
	})
}

// isolates is met when systemd is told to go where the sensor does not run, now or at the next start.
func isolates(c *Command) bool {
	if slices.ContainsFunc(told(c), func(v []Value) bool { return commands.Listed("rescue emergency", v[0].Text) }) {
		return true
	}
	var words []string
	for _, w := range c.Words() {
		if w = strings.TrimPrefix(strings.Trim(w, "'"), "string:"); !strings.HasPrefix(w, "-") || strings.HasPrefix(w, "--job-mode=") {
			words = append(words, w)
		}
	}
	at := slices.IndexFunc(words, func(w string) bool { return commands.Listed("isolate --job-mode=isolate set-default", w) })
	if at < 0 {
		return false
	}
	units := words[at+1:]
	switch {
	case len(units) == 0 && !strings.HasPrefix(words[at], "-"): // over D-Bus, the mode stands behind the unit
		units = words[max(at-1, 0):at]
	case strings.HasPrefix(words[at], "-"): // it stands anywhere
		units = slices.DeleteFunc(slices.Delete(words, at, at+1), func(w string) bool { return commands.Listed("sudo systemctl start restart", w) })
	}
	return len(units) == 0 || slices.ContainsFunc(units, func(w string) bool {
		return !commands.Listed("multi-user graphical default runlevel3 runlevel5", strings.TrimSuffix(w, ".target"))
	})
}

// told are the words, each with those behind it, that may be what a program is told to do: options stand before that, with a value or without.
func told(c *Command) (all [][]Value) {
	for i, v := range c.Args {
		if strings.HasPrefix(v.Text, "-") {
			continue
		}
		all = append(all, c.Args[i:])
		if i == 0 || !strings.HasPrefix(c.Args[i-1].Text, "-") || strings.Contains(c.Args[i-1].Text, "=") {
			break
		}
	}
	return all
}

// killsByPattern is met when a regular expression for names, or for command lines, finds one of these.
func killsByPattern(name, line string) func(*Command) bool {
	return func(c *Command) bool {
		full := hasFlag('f', "full").is(c)
		if c.Name == "killall" && !hasFlag('r', "regexp").is(c) || anyOf(hasFlag('P', "parent"), hasFlag('g', "pgroup"), hasFlag('s', "session"), hasFlag('t', "terminal"), hasFlag('u', "euid"), hasFlag('U', "uid")).is(c) {
			return false
		}
		return slices.ContainsFunc(operandsOf(c), func(w string) bool {
			re, err := regexp.Compile(w)
			return len(w) < 100 && err == nil && (re.MatchString(name) || full && re.MatchString(line))
		})
	}
}

// busMethods are those with which systemd is told to stop a unit, or to forget or change it.
var busMethods = regexp.MustCompile(`(?i)(^|\.)((stop|kill|freeze|clean|disable|mask|revert)(unit|unitfiles|unitfileswithflags|unitprocesses|unitwithflags|unitsubgroup)?|queuesignalunit|setunitproperties|setproperties)$`)

// overBus is met when systemd is asked over D-Bus to stop one of these units.
func overBus(units []string) condition {
	unit := isUnit(units...)
	escape := strings.NewReplacer("-", "_2d", ".", "_2e")
	ours := hasWord(func(w string) bool {
		return unit(strings.TrimPrefix(strings.Trim(w, `'"[]`), "string:")) || slices.ContainsFunc(units, func(u string) bool { return strings.HasSuffix(w, "/unit/"+escape.Replace(unitName(u))) })
	}, append(anywhere(units...), pattern)...)
	return allOf(hasWord(busMethods.MatchString, anywhere("stop", "kill", "freeze", "clean", "disable", "mask", "revert", "queuesignal", "properties")...), ours)
}
