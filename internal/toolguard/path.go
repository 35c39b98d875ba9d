package toolguard

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// pathPattern is a regular expression that is compiled once, when it is first asked for: an agent's hook starts for each call, and needs few.
func pathPattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// spellings are the paths that a text may be one way to write: as it stands, and what it is without quotes and signs around it, as the URI of a file
// without its host, and without the query, the place in the file and the escapes that follow only where somebody reads it so.
func spellings(p string) []string {
	all := []string{p}
	bare := strings.Trim(p, aroundPath)
	if len(bare) >= len(scheme) && strings.EqualFold(bare[:len(scheme)], scheme) {
		bare = bare[len(scheme):]
		if host, ok := strings.CutPrefix(bare, "//"); ok {
			if i := strings.IndexByte(host, '/'); i >= 0 {
				bare = host[i:]
			}
		}
	}
	if i := strings.IndexAny(bare, "?#"); i >= 0 {
		bare = bare[:i]
	}
	var out strings.Builder
	for i := 0; i < len(bare); i++ {
		if bare[i] == '%' && i+2 < len(bare) {
			if n, err := strconv.ParseUint(bare[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		out.WriteByte(bare[i])
	}
	if out.String() != p && out.Len() > 0 {
		all = append(all, out.String())
	}
	return all
}

// aroundPath is what may stand around a path in a text.
const aroundPath = "\"'`@<> \t\r\n"

const scheme = "file:"

// maxPath bounds what is looked at; no system opens longer paths.
const maxPath = 64 << 10

var (
	devices = pathPattern(`^/*(\?\?|[?.])/+(globalroot/device/[^/]+|globalroot|unc/[^/]+/[a-z]\$|unc/[^/]+/admin\$|[a-z]:|volume\{[^}]*\}|harddiskvolume[^/]*)?`)
	share   = pathPattern(`^//[^/]+/([a-z]\$|admin\$)`)
	vars    = strings.NewReplacer("%systemroot%", "/windows", "%windir%", "/windows", "%systemdrive%", "", "%userprofile%", "/users/user", "%homepath%", "/users/user",
		"%localappdata%", "/users/user/appdata/local", "%appdata%", "/users/user/appdata/roaming", "$env:systemroot", "/windows", "$env:windir", "/windows",
		"$env:userprofile", "/users/user", "$env:localappdata", "/users/user/appdata/local", "$env:appdata", "/users/user/appdata/roaming", "${home}", "/home/user", "$home", "/home/user")
	short = pathPattern(`^([^~]{1,6})~[0-9]{1,3}(\.([^.]{0,3}))?$`)
)

// isDrive says whether a path in lower case begins with the letter of a drive.
func isDrive(p string) bool { return len(p) > 1 && p[0] >= 'a' && p[0] <= 'z' && p[1] == ':' }

// isRelative says whether a path begins in a directory, whatever expands or trims it.
func isRelative(p string) bool {
	return p != "" && p[0] > ' ' && !strings.ContainsAny(p[:1], `/\~$%"'`) && !isDrive(strings.ToLower(p))
}

// cleanPath gives a path in the form that patterns have: lower case, slashes, without prefix, stream and what Windows leaves out.
func cleanPath(p string) string {
	if len(p) > maxPath {
		p = path.Clean(p)
		p = p[:min(len(p), maxPath)]
	}
	p = strings.Trim(strings.ReplaceAll(strings.ToLower(p), "\x00", ""), "\"' \t\r\n")
	windows := strings.Contains(p, `\`) || isDrive(p)
	p = vars.Replace(strings.ReplaceAll(p, `\`, "/"))
	p = strings.TrimPrefix(p, "file://")
	p = strings.TrimPrefix(strings.TrimPrefix(p, "microsoft.powershell.core/"), "filesystem::")
	if strings.HasPrefix(p, "~") {
		p = "/home/user" + strings.TrimLeft(p[1:], "abcdefghijklmnopqrstuvwxyz0123456789_-.")
	}
	m := ""
	if strings.HasPrefix(p, "//") {
		m = share().FindString(p)
	}
	if m != "" {
		if strings.HasSuffix(m, "admin$") {
			p = "/windows" + p[len(m):]
		} else {
			p = p[len(m):]
		}
		windows = true
	} else if strings.HasPrefix(p, "//") || strings.HasPrefix(p, "/??/") {
		windows = true
		if m := devices().FindString(p); m == p && strings.HasSuffix(p, ":") {
			p = "/physicaldrive" // a volume below its file system
		} else {
			p = p[len(m):]
		}
	}
	if isDrive(p) {
		p = p[2:]
	}
	// First each part for itself, so that "..." and ".. " are not what the path is cleaned of.
	parts := strings.Split(p, "/")
	for i, part := range parts {
		if windows || strings.Contains(part, ":") {
			part, _, _ = strings.Cut(part, ":")
		}
		if trimmed := strings.TrimRight(part, ". "); trimmed != "" && part != "." && part != ".." {
			part = trimmed
		} else if strings.TrimSpace(part) == ".." {
			part = ".."
		} else if trimmed == "" && part != ".." {
			part = ""
		}
		parts[i] = part
	}
	p = path.Clean("/" + strings.Join(parts, "/"))
	return throughProc(p)
}

// throughProc leaves out of a path that it begins at the root of a process, which it may be asked for in the same container.
func throughProc(p string) string {
	for strings.HasPrefix(p, "/proc/") {
		m := procRoot().FindString(p)
		if m == "" {
			break
		}
		p = "/" + strings.TrimLeft(p[len(m):], "/")
	}
	return p
}

var procRoot = pathPattern(`^/proc/[^/]+(/task/[^/]+)?/root(/|$)`)

// matchesAny says whether one of the patterns names a path. Patterns are lower case, with slashes; a part ** stands for any parts, and others are as
// path.Match has them.
func matchesAny(patterns []string, p string) bool { return matchPath(patterns, pathParts(p)) }

// pathParts are those of a path in the form that patterns have, for who asks about it more than once.
func pathParts(p string) []string { return strings.Split(strings.Trim(cleanPath(p), "/"), "/") }

// pathPatterns are patterns in parts, made ready for who asks more than once.
type pathPatterns []struct {
	not  bool // what the others do not mean
	all  []string
	head int // so many parts of it, at its beginning, are no patterns
}

func readPatterns(list []string) pathPatterns {
	out := make(pathPatterns, len(list))
	for i, p := range list {
		p, out[i].not = strings.CutPrefix(p, "!")
		out[i].all = strings.Split(strings.Trim(p, "/"), "/")
		for out[i].head < len(out[i].all) && !strings.ContainsAny(out[i].all[out[i].head], "*?[\\") {
			out[i].head++
		}
	}
	return out
}

// matchPath is matchesAny for a path in parts.
func matchPath(patterns, parts []string) bool { return readPatterns(patterns).match(parts) }

func (list pathPatterns) match(parts []string) bool {
	found, file := false, parts
	if n := len(parts) - 1; n >= 0 && parts[n] == anyFile {
		file = parts[:n]
	}
	plain := !slices.ContainsFunc(parts, func(p string) bool { return strings.ContainsAny(p, "*?~\x01") })
	for _, p := range list {
		if plain && (len(parts) < p.head || !slices.Equal(parts[:p.head], p.all[:p.head])) {
			continue // most are told by that
		}
		if !p.not {
			found = found || matches(p.all, parts)
		} else if found && matches(p.all, file) {
			return false
		}
	}
	return found
}

// anyFile stands in a path for whatever a folder has.
const anyFile = "\x01any"

func matches(all, p []string) bool {
	if len(p) == 0 {
		return false
	}
	if n := len(all) - 1; p[len(p)-1] == anyFile { // a folder that is known for such files, not one that has much else
		return parts(all, p[:len(p)-1]) || n > 0 && all[0] == "**" && all[n-1] != "**" && parts(all[:n], p[:len(p)-1])
	}
	if i := slices.Index(p, "**"); i >= 0 {
		return below(all, p[:i], p[i+1:])
	}
	return parts(all, p)
}

// below says whether a pattern names what a file below a folder is called, as far as that is told, with its last directories.
func below(pattern, folder, name []string) bool {
	n := len(pattern) - len(name)
	if n < 0 || len(name) == 0 {
		return false
	}
	for i, part := range name {
		if ok, err := path.Match(pattern[n+i], part); !ok || err != nil || strings.HasPrefix(pattern[n+i], "*") {
			return false
		}
	}
	if pattern[0] == "**" { // in a home, or above all
		return len(folder) == 0 || folder[0] == "root" && len(folder) == 1 || (folder[0] == "home" || folder[0] == "users") && len(folder) <= 2
	}
	return len(folder) <= n && parts(pattern[:len(folder)], folder)
}

func parts(pattern, p []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			if len(pattern) == 1 {
				return len(p) > 0
			}
			for i := range p {
				if parts(pattern[1:], p[i:]) {
					return true
				}
			}
			return false
		}
		if len(p) == 0 || !part(pattern[0], p[0]) {
			return false
		}
		pattern, p = pattern[1:], p[1:]
	}
	return len(p) == 0
}

func part(pattern, p string) bool {
	if pattern == p {
		return true
	}
	if ok, err := path.Match(pattern, p); ok && err == nil {
		return true
	}
	if strings.ContainsAny(p, "*?") && len(p) < 100 { // a pattern itself: what could it name?
		if ok, err := path.Match(p, pattern); ok && err == nil && strings.Trim(p, "*?.") != "" {
			return true
		}
	}
	if !strings.Contains(p, "~") {
		return false
	}
	m := short().FindStringSubmatch(p)
	if m == nil {
		return false
	}
	name, ext := pattern, ""
	if i := strings.LastIndexByte(pattern, '.'); i > 0 {
		name, ext = pattern[:i], pattern[i+1:]
	}
	name = strings.NewReplacer(" ", "", ".", "", "*", "").Replace(name)
	return strings.HasPrefix(name, m[1]) && (len(m[1]) == 6 || len(m[1]) == len(name)) && strings.HasPrefix(ext, m[3])
}

var hives = []string{
	"**/windows/system32/config/sam", "**/windows/system32/config/security", "**/windows/system32/config/system", "**/windows/sysnative/config/sam",
	"**/windows/system32/config/regback/*", "**/windows/repair/*", "**/ntds.dit",
}

// hiveLike finds what may become one of them.
func hiveLike(word string) bool {
	for i := range len(word) {
		part := ""
		switch word[i] {
		case '~', '*', '?':
			return strings.ContainsAny(word, `.\/`)
		case 'c', 'C':
			part = "config"
		case 'r', 'R':
			part = "repair"
		case 'n', 'N':
			part = "ntds"
		default:
			continue
		}
		if i+len(part) <= len(word) && strings.EqualFold(word[i:i+len(part)], part) {
			return strings.ContainsAny(word, `.\/`)
		}
	}
	return false
}

// isHive says whether a word names one of them.
func isHive(word string) bool {
	return len(word) >= 8 && hiveLike(word) && matchesAny(hives, word)
}
