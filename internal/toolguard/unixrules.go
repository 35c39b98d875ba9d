package toolguard

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"weir/internal/commands"
)

// disks are the names of block devices, and of memory.
var disks = []string{
	"/dev/sd[a-z]*", "/dev/hd[a-z]*", "/dev/vd[a-z]*", "/dev/xvd[a-z]*", "/dev/nvme[0-9]*n[0-9]*", "/dev/mmcblk[0-9]*", "/dev/md[0-9]*", "/dev/md/*", "/dev/dm-[0-9]*", "/dev/mapper/*", "/dev/disk/**", "/dev/block/*",
	"/dev/nbd[0-9]*", "/dev/sr[0-9]*", "/dev/mtdblock[0-9]*", "/dev/disk[0-9]*", "/dev/rdisk[0-9]*", "/dev/mem", "/dev/kmem", "!/dev/mapper/control",
}

// device is one of those; in patterns of them any letter stands for one of theirs.
var device = func() paths {
	p := namedBy(disks)
	is := p.is
	p.is = func(w string) bool {
		if strings.HasPrefix(w, "/dev/") && strings.ContainsAny(w, "?[") {
			w = anyOne().ReplaceAllString(w, "a")
		}
		return is(w)
	}
	return p
}()

var anyOne = pathPattern(`\?|\[[^\]]*\]`)

// Files of Linux by what they are for.
var (
	logFiles = []string{
		"/var/log/audit", "/var/log/journal", "/run/log/journal", "/var/log/wtmp", "/var/log/btmp", "/var/log/lastlog", "/var/log/auth.log", "/var/log/secure", "/var/log/syslog", "/var/log/messages",
		"/var/log/kern.log", "/var/log/faillog", "/var/run/utmp", "/var/log/utmp",
	}
	bootFiles       = append(patterns("/boot", "/etc/default/grub", "/etc/default/grub.d", "/etc/grub.d", "/efi", "/etc/lilo.conf"), leftovers("/boot", "/efi")...)
	protectionFiles = []string{"/etc/selinux/config", "/etc/sysconfig/selinux", "/sys/fs/selinux", "/sys/kernel/security", "/etc/apparmor.d"}
	accountFiles    = []string{"/etc/sudoers", "/etc/sudoers.d", "/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"}
)

// systemDirs are the directories without which a machine does not work.
var systemDirs = strings.Fields(`/ /bin /boot /dev /etc /home /lib /lib32 /lib64 /libx32 /opt /proc /root /run /sbin /srv /sys /usr /var /nix /System /Library /Users /Applications /usr/bin /usr/sbin /usr/lib /usr/lib64 /usr/libexec
 /usr/share /var/lib /var/log /var/db /etc/systemd /etc/pam.d /etc/ssh`)

// allIn are the ways to say all that is in a directory.
var allIn = []string{"/{,.}*", "/.[!.]*", "/.*", "/*", "*"}

// system are those, the home, and all that is in one.
var system = paths{isSystem, [][]string{append(lastNames(systemDirs), root, home, partOfName)}}

func isSystem(p string) bool {
	if p == "" || p[0] != '/' && p[0] != '~' {
		return false
	}
	if i := strings.IndexAny(p, "*?["); i > 0 && p[i-1] != '/' && slices.ContainsFunc(systemDirs[1:], func(dir string) bool { ok, err := path.Match(p, dir); return ok && err == nil }) {
		return true
	}
	for _, all := range allIn {
		if dir, ok := strings.CutSuffix(p, all); ok {
			p = cmp.Or(dir, "/")
			break
		}
	}
	return p == "~" || p == "~root" || slices.Contains(systemDirs, cmp.Or(strings.TrimRight(p, "/"), "/"))
}

func takesSystem(c *Command) bool {
	return slices.ContainsFunc(operandsOf(c), func(w string) bool {
		w = c.in(w)
		return isSystem(w) || strings.HasPrefix(w, "/") && strings.Trim(w, "/.") == ""
	})
}

// overSystem is met by find over such a directory without a condition that narrows.
func overSystem(c *Command) bool {
	args := c.Args
	for len(args) > 0 && (slices.Contains([]string{"-H", "-L", "-P"}, args[0].Text) || strings.HasPrefix(args[0].Text, "-O")) {
		args = args[1:]
	}
	roots, named := false, false
	for i, v := range args {
		if strings.HasPrefix(v.Text, "-") || v.Text == "!" || v.Text == "(" {
			if narrows(args[i:]) {
				return false
			}
			break
		}
		roots, named = roots || isSystem(c.in(v.Text)), true
	}
	return roots || !named && isSystem(c.in("."))
}

// narrows says whether an expression of find's is met by some files only, by its kind of test.
func narrows(expr []Value) bool {
	for i := 0; i < len(expr); i++ {
		value := first(expr[min(i+1, len(expr)):]).Text
		switch o := expr[i].Text; {
		case o == "!" || o == "-not": // all but some
			i += 2
		case o == "-exec" || o == "-execdir" || o == "-ok" || o == "-okdir":
			for i < len(expr) && expr[i].Text != ";" && expr[i].Text != "+" {
				i++
			}
		case o == "-type" && strings.Trim(value, "fd,") == "", strings.HasSuffix(o, "name") && value == "*", o == "-maxdepth", o == "-mindepth", o == "-fprint", o == "-printf":
			i++
		case !strings.HasPrefix(o, "-"), commands.Listed("-xdev -mount -x -depth -d -noleaf -follow -daystart -warn -nowarn -ignore_readdir_race -noignore_readdir_race -true -print -print0 -ls -delete -prune -o -or -a -and -quit", o):
		default:
			return true
		}
	}
	return false
}

// deletesFound is met by find that deletes what it finds.
var deletesFound = hasOption(func(option, value string) bool {
	return option == "-delete" || commands.Listed("-exec -execdir -ok -okdir", option) && commands.Listed("rm shred unlink truncate", path.Base(value))
}, "delete", "rm", "shred", "unlink", "truncate")

// empties is met by rm, without -r, of all files of a directory of programs or settings.
var empties = condition{func(c *Command) bool {
	return slices.ContainsFunc(operandsOf(c), func(w string) bool {
		dir, all := strings.CutSuffix(c.in(w), "/*")
		return all && slices.Contains(programDirs, dir)
	})
}, system.words}

// programDirs are directories without whose files nothing works.
var programDirs = strings.Fields("/bin /sbin /lib /lib32 /lib64 /libx32 /etc /usr /usr/bin /usr/sbin /usr/lib /usr/lib64 /boot /var")

// underAll is a condition on paths: the root or such a directory, or all that is in it.
var underAll = paths{func(p string) bool {
	p = cmp.Or(strings.TrimSuffix(p, "/*"), "/")
	return p == "/" || slices.Contains(programDirs, p)
}, [][]string{append(lastNames(programDirs), root)}}

// removesTree is met by the code of an interpreter that removes such a directory with all that is in it.
var removesTree = allOf(when(func(c *Command) bool {
	for _, code := range codes(c) {
		for _, m := range removals().FindAllStringSubmatch(code, MaxSteps) {
			if isSystem(clean(m[1])) {
				return true
			}
		}
	}
	return false
}, "rmtree", "rm_rf", "rm_r", "rmsync", "rmdirsync", "remove_tree", "remove_entry_secure", "remove_dir", "rm"), condition{always.is, system.words})

var removals = pathPattern(`(?i)\b(?:rmtree|rm_rf|rm_r|rm|rmSync|rmdirSync|remove_tree|remove_entry_secure|remove_dir)\s*\(?\s*["']([/~][^"']*)["']`)

// removesSystem is met by Remove-Item of such a directory, but of the home.
var removesSystem = condition{func(c *Command) bool {
	c = &Command{Args: c.Args, Dir: c.Dir, From: c.From}
	for _, w := range listedFor(c) {
		c.Args = append(c.Args[:len(c.Args):len(c.Args)], Value{Text: w})
	}
	return anyOf(enables("recurse"), hasArg("-rf", "-fr")).is(c) && !enables("whatif").is(c) && touchesPath(paths{is: func(p string) bool { return p != "~" && isSystem(p) }}).is(c)
}, system.words}

var logs = belowAny(append(logFiles, "/var/log/*", "/var/log/*.log")...)

// stops is met when systemctl or service stops, disables or masks one of these units.
func stops(units ...string) []trigger {
	unit := isUnit(units...)
	verbs := hasArg("stop", "disable", "mask", "kill", "revert", "clean", "freeze")
	return []trigger{
		{Names: []string{"systemctl"}, When: allOf(verbs, hasUnit(units...))},
		{Names: []string{"service", "rc-service", "invoke-rc.d"}, When: allOf(hasArg("stop"), hasUnit(units...), when(func(c *Command) bool {
			w := operandsOf(c)
			return len(w) > 1 && unit(w[0]) && w[1] == "stop"
		}))},
		{Names: []string{"update-rc.d", "chkconfig", "rc-update"}, When: allOf(hasUnit(units...), hasArg("disable", "remove", "off", "del", "defaults-disabled"))},
		{Names: []string{"pkill", "killall"}, When: hasArg(daemons(units)...)},
		{Names: []string{"sv", "initctl"}, When: allOf(hasArg("stop", "down", "force-stop", "exit"), hasUnit(units...))},
	}
}

// daemons are the programs of units.
func daemons(units []string) []string {
	all := slices.Clone(units)
	for _, u := range units {
		if u == "rsyslog" {
			all = append(all, "rsyslogd")
		}
	}
	return all
}

var nothing = pathPattern(`^(0|1|\d{1,2}s|0[a-zA-Z]+|1[a-zA-Z]?|1(sec|second|seconds|B|K)|\d{1,3}K)$`)

// fetchers print what they fetch.
var fetchers = func() condition {
	names := strings.Fields("curl wget wget2 fetch aria2c lynx links elinks w3m http https xh curlie lwp-request GET nc netcat ncat socat dig nslookup host telnet ftp lftp tftp")
	named := isNamed(append(names, connection)...)
	some := allOf(isNamed("openssl", "aws", "gsutil", "rclone", "gh"), hasArg("s_client", "s3", "cat", "api"))
	return condition{anyOf(named, some).is, [][]string{append(wordsIn(names...), "tcp", "udp", "s_client", "s3", "gsutil", "rclone", "api")}}
}()

// piped says whether what a command reads was fetched.
func piped(c *Command) bool {
	return (&Command{From: c.From}).Made(fetchers.is)
}

// fetchedIn says whether a word of a command is what was fetched.
func fetchedIn(c *Command) bool {
	own := &Command{Args: c.Args, Reads: c.Reads}
	return own.Made(fetchers.is)
}

// opensShell is met by a word that names a shell.
var opensShell = pathPattern(`(^|[/:'" ])(ba|da|z|k|a|c|tc|fi)?sh\b`)

// scriptFetched says whether the text or the file that a shell runs is what was fetched, or the text that it reads.
func scriptFetched(c *Command) bool {
	own := &Command{Args: c.Args, Reads: c.Reads}
	if at, ok := commands.ShellText(c.Words()); at < len(c.Args) && len(c.Words()) == len(c.Args) {
		own.Args = c.Args[at : at+1]
		if !ok && at > 0 {
			own.Args = c.Args[:at+1]
		}
	}
	return own.Made(fetchers.is)
}

// runsInput is met by code that runs what it reads.
var runsInput = pathPattern(`(?i)\b(exec|eval|system)\b[\s(]*[^;\n]*(stdin|<>|\$0\b)`)

var fetchedCode = pathPattern(`(?is)\b(exec|eval|loadstring|instance_eval|runInThisContext|compile|system|popen|check_output)\b[\s(]*[^;\n]*(urlopen\s*\(|requests\.get\s*\(|httpx\.get\s*\(|URI\.open|Net::HTTP\.get|\bopen-uri|file_get_contents\s*\(\s*['"]https?:|\bget\s*\(?\s*['"]https?:)|\bfetch\s*\(\s*['"\x60]https?:.*\.then\s*\(\s*eval`)

// onlyChecks says whether an interpreter reads a script and does not run it: its options say so, before its first operand.
func onlyChecks(c *Command) bool {
	checks := false
	for i := 0; i < len(c.Args); i++ {
		switch w := c.Args[i].Text; {
		case w == "--help", w == "--version", w == "--no-execute", w == "--check", w == "--syntax-check", w == "--lint":
			checks = true
		case takesWord(w):
			if i++; i < len(c.Args) && c.Args[i].Text == "noexec" {
				checks = w[0] == '-'
			}
		case len(w) < 2 || w == "--" || w[0] != '-' && w[0] != '+' || c.Args[i].Of != nil:
			return checks
		case w[1] == '-':
		case strings.HasSuffix(c.Name, "sh"):
			if strings.Contains(w, "i") { // of interactive shells the option does not count
				return false
			}
			if strings.Contains(w, "n") {
				checks = w[0] == '-'
			}
		case c.Name == "php" && w == "-l", (c.Name == "ruby" || c.Name == "node") && w == "-c":
			checks = true
		}
	}
	return checks
}

// takesWord says whether an option of a shell has the next word for its value.
func takesWord(w string) bool {
	return w == "--rcfile" || w == "--init-file" || len(w) > 1 && (w[0] == '-' || w[0] == '+') && w[1] != '-' && strings.HasSuffix(strings.ToLower(w), "o")
}

// leftovers are the patterns of what lies below the boot loader's directories, and nothing starts.
func leftovers(dirs ...string) (all []string) {
	for _, d := range dirs {
		for _, name := range []string{"old", "*[.-_]old", "backup", "*[.-_]backup", "*.bak", "*.orig", "*.save", "*~", "lost+found", "config-*", "system.map-*"} {
			all = append(all, "!"+d+"/**/"+name, "!"+d+"/**/"+name+"/**", "!"+d+"/"+name, "!"+d+"/"+name+"/**")
		}
	}
	return all
}

// codeFetched says whether the program behind an option as -e was fetched.
func codeFetched(c *Command) bool {
	code := false
	for i, v := range c.Args {
		w := v.Text
		if len(w) < 2 || w[0] != '-' {
			if code && fetchedIn(&Command{Args: c.Args[i : i+1]}) {
				return true
			}
			if !code {
				return false
			}
			code = false
			continue
		}
		code = w == "--eval" || w == "--print" || w[1] != '-' && strings.ContainsAny(w[1:], "ceErp")
		if v.Of != nil && (code || strings.HasPrefix(w, "--eval=")) && fetchedIn(&Command{Args: c.Args[i : i+1]}) {
			return true
		}
	}
	return false
}

// bare says whether an interpreter has no script but its input: no operand that is a file, no -c or -m.
func bare(c *Command) bool {
	shell := strings.HasSuffix(c.Name, "sh")
	for i := 0; i < len(c.Args); i++ {
		v := c.Args[i]
		switch w := v.Text; {
		case w == "-s", w == "-", w == "/dev/stdin", v.Of != nil:
			return true
		case shell && takesWord(w):
			i++
		case shell && strings.HasPrefix(w, "+"):
		case w == "--":
			return i+1 == len(c.Args)
		case len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.ContainsAny(w[1:], "cmenprR") && !(shell && !strings.Contains(w, "c")):
			return false
		case w != "" && w[0] != '-':
			return false
		}
	}
	return true
}
