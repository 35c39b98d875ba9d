package toolguard

import (
	"slices"
	"strings"
)

// calm finds texts in which no rule can find anything, without reading their grammar: most are (K2). A rule is about commands by their names. A
// text is not calm when such a name stands in it, however it is quoted, or when names are put together in it. Names of everyday use (rm, cp)
// count only beside what their rules are about: system paths, stores of credentials, programs that fetch.
type calm struct {
	flags map[string]uint16
	sieve [sieveLen]bool // hashes of their names: most tokens stop here
}

// What a token is: bits of its flags.
const (
	strongName   uint16 = 1 << iota
	weakName            // of everyday use
	strongAlias         // of PowerShell's
	weakAlias           //
	strongMember        // a method
	weakMember          //
	aMark               // what rules for weak names are about
	topDir              // a mark behind a slash
	madeText            // with which PowerShell makes texts of others
	declares            // a function of a shell
	thiefModule         // of a program that steals credentials, which rules look for whatever its name
)

const sieveLen = 1 << 13

const tokenLen = 32

// weak are names that count only beside a mark.
var weak = words(`rm find tee unlink truncate mv rename cp install ln rsync sed perl ex dd chmod chown touch rmdir mount setfacl patch ruby node at batch
 php eval source copy type move del erase rd xcopy robocopy format cat copy-item get-content move-item set-content add-content out-file clear-content remove-item rename-item foreach-object make start`)

// weakMembers are methods of everyday use.
var weakMembers = words("add open copy load clear create delete gettype openread setvalue format")

// marks are what the rules for weak names are about, besides paths.
var marks = words(`curl wget wget2 fetch aria2c lynx http https lwp-request get-clipboard gettext frombase64string downloadstring invoke-webrequest invoke-restmethod iwr irm ntds repair system32 sysnative
 windows winevt evtx defender windefend amsi amsiutils amsiinitfailed win32_shadowcopy win32_process win32_volume scriptblock assembly administrators eventlog currentversion specialaccounts lsass
 sam security programdata program users eventlogs home pidof pgrep systemroot windir systemdrive comspec programfiles allusersprofile pshome`)

// made are operators and methods with which PowerShell makes texts of others.
var made = words("split join replace ireplace creplace char f substring insert tochararray reverse concat trim")

// thieves are modules of a program that steals credentials, which rules look for whatever its name.
var thieves = words("sekurlsa lsadump dpapi kerberos sid misc token event vault")

// top are directories whose names, behind a slash, are a mark.
var top = words("bin boot dev etc home lib lib32 lib64 libx32 opt proc root run sbin srv sys usr var nix system library users applications efi windows")

func words(list string) map[string]bool {
	fields := strings.Fields(list)
	set := make(map[string]bool, len(fields))
	for _, w := range fields {
		set[w] = true
	}
	return set
}

func newCalm(names map[string][]asked) *calm {
	c := &calm{flags: make(map[string]uint16, manyNames)}
	pick := func(is bool, yes, no uint16) uint16 {
		if is {
			return yes
		}
		return no
	}
	for name := range names {
		if name == "" || name == forkBomb || strings.ContainsAny(name, "*>") {
			continue
		}
		if method, ok := strings.CutPrefix(strings.ToLower(name), "."); ok && method != "" {
			c.flags[method] |= pick(weakMembers[method], weakMember, strongMember)
			continue
		}
		first, _, _ := strings.Cut(strings.ToLower(name), ".")
		first = first[:min(len(first), tokenLen)]
		c.flags[first] |= pick(weak[first] || versioned[first], weakName, strongName)
	}
	for short, full := range psAliases() {
		if f := c.flags[full]; f&(strongName|weakName) != 0 {
			c.flags[short] |= pick(f&weakName != 0 || weak[short], weakAlias, strongAlias)
		}
	}
	for flag, set := range map[uint16]map[string]bool{aMark: marks, topDir: top, madeText: made, thiefModule: thieves} {
		for name := range set {
			c.flags[name] |= flag
		}
	}
	c.flags["function"] |= declares
	for name := range c.flags {
		h := uint32(0)
		for i := range len(name) {
			h = hash(h, name[i])
		}
		c.sieve[h%sieveLen] = true
	}
	return c
}

func hash(h uint32, b byte) uint32 { return (h ^ uint32(b)) * 16777619 }

// text says whether nothing can be found in a text.
func (c *calm) text(d Dialect, s string) bool {
	if strings.HasPrefix(s, "#!/") {
		if _, rest, ok := strings.Cut(s, "\n"); ok {
			s = rest
		}
	}
	var buf [tokenLen]byte
	n, h, found := 0, uint32(0), uint16(0)                          // the token, its hash, what was found so far
	prev := byte('\n')                                              // what stood before the token
	part := 0                                                       // where it begins behind its last quote
	if d == PowerShell && (strings.Contains(s, "32_") || amsi(s)) { // rules look for these within words
		found = aMark
	}
	functions, closed := 0, 0 // closed: where a variable of cmd's ends
	for i := 0; i <= len(s); i++ {
		b := byte('\n')
		if i < len(s) {
			b = s[i]
		}
		if l := lower[b]; l != 0 {
			if n < tokenLen && (n > 0 || l != '-') {
				buf[n] = l
				n++
				h = hash(h, l)
			}
			continue
		}
		switch b {
		case '\'', '"', '`', '^':
			// A quote may end one name and begin another, or stand in the middle of one.
			if part < n {
				found |= c.judge(d, buf[part:n], prev, b)
			}
			part = n
			if b == '`' && d == POSIX && firstWord(s[:i]) {
				found |= weakName
			}
			if b == '^' {
				i += newline(s, i+1)
			}
			if j := glue(s, i); j > 0 {
				i = j
			}
			continue
		case '\\':
			if d == POSIX {
				if i+1 < len(s) && (s[i+1] == 'x' || s[i+1] >= '0' && s[i+1] <= '9') {
					return false
				}
				if i+1 >= len(s) || s[i+1] != '\\' {
					// A name may go on behind it, or in quotes be another.
					if part < n {
						found |= c.judge(d, buf[part:n], prev, b)
					}
					if part = n; n == tokenLen {
						n, h, part = 0, 0, 0
					}
					i += newline(s, i+1)
					continue
				}
				i++ // one that stays, and that a name may stand behind
			}
		}
		if b >= 0x80 || b == 0 {
			return false
		}
		ended := n > 0
		if ended {
			if c.sieve[h%sieveLen] || n == tokenLen || open[buf[0]] || buf[n-1] <= '9' {
				found |= c.judge(d, buf[:n], prev, b)
			}
			if 0 < part && part < n {
				found |= c.judge(d, buf[part:n], '"', b)
			}
			if n == 1 && b == ':' && driveRoot(s[i+1:]) {
				found |= aMark
			}
			n, h, part = 0, 0, 0
		}
		switch b {
		case '/', '\\':
			if (i+1 == len(s) || lower[s[i+1]] == 0) && (i == 0 || s[i-1] != '.' && s[i-1] != ')' && s[i-1] != '}' && lower[s[i-1]] == 0) {
				found |= aMark
			}
			if i >= 3 && s[i-3:i] == "dev" && (i+1 == len(s) || lower[s[i+1]] == 0) {
				found |= aMark // a device by a variable
			}
		case '~', '?':
			found |= aMark
		case '*', '[':
			if ended && prev == '/' { // a directory by the beginning of its name
				found |= aMark
			}
		case '{':
			if d == POSIX && braced(s, i) {
				return false
			}
		case '>':
			found |= weakName
		case '.':
			if i+1 < len(s) && s[i+1] == '.' {
				found |= aMark
			}
			if d == POSIX && i+1 < len(s) && (s[i+1] == ' ' || s[i+1] == '\t') && (i == 0 || lower[s[i-1]] == 0) {
				found |= weakName // source
			}
		case '$':
			if d == POSIX && i+1 < len(s) && s[i+1] == '(' && firstWord(s[:i]) {
				found |= weakName // whatever that prints
			}
			if i+1 < len(s) && s[i+1] == '\'' || d != Cmd && pieced(s, i, d == POSIX) {
				return false // a name in parts
			}
		case '%', '!':
			if i+2 < len(s) && s[i+1] == '%' && (i == 0 || s[i-1] != '%') && (i+3 >= len(s) || lower[s[i+3]] == 0 && s[i+3] != b) {
				i++ // %%f, of for
				continue
			}
			if d == Cmd && i >= closed && (i+1 < len(s) && s[i+1] != b || i > 0 && s[i-1] != b) {
				var glued bool
				if closed, glued = joins(s, i); glued {
					return false
				}
			}
		case '&':
			if d == PowerShell && !(i > 0 && (s[i-1] == '>' || s[i-1] == '&')) && !(i+1 < len(s) && s[i+1] == '&') {
				return false
			}
		case '(':
			if d == POSIX && strings.HasPrefix(strings.TrimLeft(s[i+1:min(len(s), i+20)], " \t\\\r\n"), ")") {
				if functions++; functions > maxFunctions || twice(s, i) {
					return false
				}
			}
			if i > 0 && (s[i-1] == '.' || s[i-1] == '"' || s[i-1] == '\'') && d == PowerShell {
				return false
			}
		}
		if found&strongName != 0 || found&weakName != 0 && found&aMark != 0 {
			return false
		}
		if d == PowerShell && !ended && (prev == '.' || prev == ':') { // a member's name may stand behind blanks and comments
			switch b {
			case ' ', '\t', '\r', '\n':
				continue
			case '<', '#':
				return false
			}
		}
		prev = b
		if d == PowerShell && b == '.' && i+1 < len(s) && strings.IndexByte("$'\"( ", s[i+1]) >= 0 && (i == 0 || s[i-1] == '\n' || s[i-1] == ' ' || s[i+1] != ' ') {
			return false // a name that is computed
		}
	}
	return true
}

// open are the bytes that begin names of which only the beginning counts.
var open = func() (t [256]bool) {
	for _, b := range []byte("cphsvxnmd") {
		t[b] = true
	}
	return t
}()

func (c *calm) judge(d Dialect, token []byte, before, after byte) uint16 {
	f := c.flags[string(token)]
	if f == 0 && d == POSIX && token[len(token)-1] <= '9' && versioned[strings.TrimRight(string(token), "0123456789-")] {
		f = weakName
	}
	ps := d == PowerShell
	switch {
	case f&strongName != 0, d == POSIX && f&declares != 0, ps && f&strongAlias != 0, ps && f&strongMember != 0 && (before == '.' || before == ':'), f&thiefModule != 0 && after == ':' && d != POSIX:
		return strongName
	case f&aMark != 0, ps && f&madeText != 0, f&topDir != 0 && (before == '/' || before == '\\') && !(string(token) == "dev" && after == '/'):
		return aMark
	case f&weakName != 0, ps && f&weakAlias != 0, ps && f&weakMember != 0 && (before == '.' || before == ':'):
		return weakName
	case begins(token, "config"), begins(token, "physicaldrive"), begins(token, "harddisk"), before == '/' && blocks(token):
		return aMark
	}
	return 0
}

func begins(token []byte, with string) bool {
	return len(token) >= len(with) && string(token[:len(with)]) == with
}

// blocks says whether a token may be the name of a disk below /dev.
func blocks(token []byte) bool {
	return slices.ContainsFunc([]string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "md", "dm-", "mapper", "disk", "nbd", "sr"}, func(p string) bool { return begins(token, p) })
}

// lower is the lower case of bytes that names have, and 0 for all others.
var lower = func() (t [256]byte) {
	for c := range t {
		switch b := byte(c); {
		case b >= 'A' && b <= 'Z':
			t[c] = b + 'a' - 'A'
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9', b == '_', b == '-':
			t[c] = b
		}
	}
	return t
}()
