package toolguard

import (
	"path"
	"slices"
	"strings"

	"weir/internal/commands"
)

var (
	drive     = pathPattern(`^(?i)[a-z]:[\\/.*]*$`)
	winSystem = pathPattern(`^(?i)[a-z]:[\\/]+(windows|windows[\\/]+system32|program files|program files \(x86\)|programdata|users)[\\/]*(\*(\.\*)?)?$`)
	rawDevice = pathPattern(`^(?i)[\\/]{2}[.?][\\/](physicaldrive\d|harddisk\d|[a-z]:$)`)
)

// cleans are the lines with which diskpart destroys.
var cleans = pathPattern(`(?im)^\s*(clean(\s+all)?|format\b.*|delete\s+(partition|volume|disk)\b.*)\s*$`)

func diskparts(c *Command) bool {
	found := func(v Value) bool { return cleans().MatchString(strings.Trim(v.Text, `"' `)) }
	for _, v := range c.Reads {
		if found(v) {
			return true
		}
	}
	return c.From != nil && cleans().MatchString(strings.Join(c.From.Words(), "\n")+"\n"+strings.Join(c.From.Words(), " "))
}

// isWhole says whether a path, however it is written, is a whole drive or a directory of the system.
func isWhole(p string) bool {
	p = overShare().ReplaceAllString(strings.ReplaceAll(p, "/", `\`), "$1:")
	if drive().MatchString(p) || winSystem().MatchString(p) {
		return true
	}
	if !isDrive(strings.ToLower(p)) {
		return false
	}
	p = strings.ToLower(path.Clean("/" + strings.ReplaceAll(p[2:], `\`, "/")))
	return p == "/" || winSystem().MatchString("c:"+p)
}

// overShare is met by a drive that is named as a device, or as a share of this machine.
var overShare = pathPattern(`(?i)^\\\\(?:[.?]\\|(?:localhost|127\.0\.0\.1|\[?::1\]?|\.)\\)([a-z])[:$]`)

// mirrorsOver is met by robocopy that leaves nothing of such a directory.
func mirrorsOver(c *Command) bool {
	w := c.Words()
	return len(w) > 1 && isWhole(w[1]) && slices.ContainsFunc(w, func(w string) bool { return strings.EqualFold(w, "/mir") || strings.EqualFold(w, "/purge") })
}

// wipes is met when whole drives or the system's own directories are deleted with all that is in them.
func wipes(c *Command) bool {
	all, quiet := false, false
	for _, w := range append(c.Words(), listedFor(c)...) {
		if rest := strings.TrimLeft(w, `.\/`); c.Dir != "" && !isDrive(strings.ToLower(w)) && (w == "" || w[0] != '/' && w[0] != '-' && w[0] != '\\') {
			w = strings.TrimRight(c.Dir, `\/`) + `\` + rest
		}
		switch l := strings.ToLower(w); {
		case l == "/s", l == "/s/q", l == "/q/s", strings.HasPrefix(l, "/") && strings.Contains(l, "/s"), len(l) > 1 && strings.HasPrefix("-recurse", l), l == "-rf", l == "-fr", l == "-r":
			all = true
		}
		quiet = quiet || w == `\` && c.Dialect == Cmd || isWhole(w)
	}
	_, try := paramOf(c, "whatif")
	return all && quiet && !(try && c.Dialect == PowerShell)
}

// walks notes the directory that commands of Windows run in, as far as cd tells it; it gives that in which the next ones run.
func walks(dir string, commands []*Command) string {
	for _, c := range commands {
		switch c.Name {
		case "set-location", "push-location", "cd", "chdir", "pushd":
			for i := len(c.Args) - 1; i >= 0; i-- {
				to := c.Args[i].Text
				switch {
				case to == "" || to[0] == '-' || strings.EqualFold(to, "/d"):
					continue
				case !c.Args[i].Known() || strings.Contains(to, ".."):
					dir = ""
				case isDrive(strings.ToLower(to)) || to[0] == '/' && c.Dialect == PowerShell:
					dir = to
				case to[0] == '\\':
					dir = "C:" + to
				case dir != "":
					dir = strings.TrimRight(dir, `\/`) + `\` + to
				}
				break
			}
		default:
			if len(dir) <= maxDir {
				c.Dir = dir
			}
		}
	}
	return dir
}

// systemWords are words of a drive's root, or of what wipes is about.
var systemWords = []string{"windows", "program", "programdata", "users", "system32", driveRoot}

// wipesListed is met when what is deleted is a whole drive or directory of the system by a method, or all that was listed in one.
func wipesListed(c *Command) bool {
	whole := func(v Value) bool { return isWhole(v.Text) }
	listed := func(v Value) bool {
		return v.Of != nil && slices.ContainsFunc(listedFor(&Command{From: v.Of}), func(w string) bool { return whole(Value{Text: w}) })
	}
	if c.Name == "remove-item" {
		return slices.ContainsFunc(c.Args, listed) && !enables("whatif").is(c)
	}
	return listed(c.On) || whole(c.On) || c.Name != ".delete" && whole(first(c.Args)) || onType("[io.directory]", "[io.file]", "[io.directoryinfo]").is(c) && whole(first(c.Args))
}

// dropsHive is met when a whole hive of the registry is deleted.
func dropsHive(c *Command) bool {
	if c.Name == "reg" && !hasWords("delete").is(c) {
		return false
	}
	return slices.ContainsFunc(c.Words(), func(w string) bool {
		w = strings.ToLower(strings.Trim(strings.ReplaceAll(w, "/", `\`), `\*`))
		root, hive, _ := strings.Cut(w, `\`)
		root = strings.TrimSuffix(root, ":")
		return (root == "hklm" || root == "hkey_local_machine" || strings.HasSuffix(root, "registry::hkey_local_machine")) && (hive == "" || hive == "system" || hive == "software" || hive == "sam" || hive == "security")
	})
}

// listedFor are the words of what lists the files that a command is given, where it leaves none out.
func listedFor(c *Command) []string {
	from := c.From
	if from != nil && from.Name == "" && from.Program == "" && len(from.Writes) == 0 { // names that stand there
		return from.Words()
	}
	if from == nil || !commands.Listed("get-childitem get-item new-object .new", from.Name) || anyOf(setsValue("include"), setsValue("exclude"), setsValue("filter")).is(from) {
		return nil
	}
	return from.Words()
}

// shadows is met by what deletes or makes objects of the class of shadow copies.
func shadows(c *Command) bool {
	class := textContains("win32_shadowcopy")
	switch c.Name {
	case "foreach-object":
		return hasWords("delete").is(c) && c.Made(class.is)
	case ".create", ".delete", ".delete_":
		return c.Made(class.is) || strings.Contains(strings.ToLower(c.On.Text), "win32_shadowcopy")
	}
	return class.is(c) || c.Made(class.is)
}
