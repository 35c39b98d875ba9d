package commands

import (
	"slices"
	"strings"
)

// A variable can change what runs (PATH, LD_PRELOAD) or be code itself (RANDOM in an
// assignment, PS4). So names are accepted, not refused.

// HarmlessEnv may be set for any command, with a value that locale and time functions
// only look up.
func HarmlessEnv(name, value string) bool {
	switch name {
	case "LANG", "LANGUAGE", "TZ":
	case "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "COLUMNS", "LINES", "CI":
		return plainValue(value)
	case "PAGER", "GIT_PAGER", "GH_PAGER", "MANPAGER":
		return value == "cat"
	case "GIT_EDITOR":
		return value == "true"
	case "TERM":
		return plainValue(value) && !strings.Contains(value, "/")
	default:
		switch strings.TrimPrefix(name, "LC_") {
		case "ALL", "ADDRESS", "COLLATE", "CTYPE", "IDENTIFICATION", "MEASUREMENT", "MESSAGES", "MONETARY", "NAME", "NUMERIC",
			"PAPER", "TELEPHONE", "TIME":
			if !strings.HasPrefix(name, "LC_") {
				return false
			}
		default:
			return false
		}
	}
	if name == "TZ" {
		return plainValue(value) && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, ":") && !strings.Contains(value, "..")
	}
	return plainValue(value) && !strings.Contains(value, "/")
}

func plainValue(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(Letter(c) || c >= '0' && c <= '9' || strings.IndexByte("_.,:+-@/<>", c) >= 0) {
			return false
		}
	}
	return true
}

// Assignable tells whether a variable of this shell may be assigned, when its name is
// plain. Names in lower case are the text's own; of those in upper case only those that
// no accepted program and no shell reads.
func Assignable(name string) bool {
	if !PlainName(name) {
		return false
	}
	for i := range len(name) {
		if name[i] >= 'a' && name[i] <= 'z' {
			return !strings.HasPrefix(name, "BASH_FUNC_") && !strings.HasPrefix(name, "LD_") && !strings.HasSuffix(name, "_proxy") &&
				name != "histchars" && name != "auto_resume"
		}
	}
	return !dangerous(name)
}

// dangerous tells whether a variable is known to change what runs, or to be more than
// a variable.
func dangerous(name string) bool {
	switch name {
	case "PATH", "IFS", "ENV", "CDPATH", "HOME", "SHELL", "SHELLOPTS", "PAGER", "EDITOR", "VISUAL", "BROWSER", "TMPDIR", "TMP", "TEMP",
		"PS0", "PS1", "PS2", "PS3", "PS4", "PROMPT_COMMAND", "RANDOM", "SRANDOM", "SECONDS", "LINENO", "HISTCMD", "OPTIND", "OPTARG", "OPTERR",
		"DIRSTACK", "FUNCNAME", "FUNCNEST", "GROUPS", "UID", "EUID", "PPID", "PIPESTATUS", "REPLY", "COPROC", "MAPFILE", "TIMEFORMAT", "TMOUT", "FCEDIT",
		"GLOBIGNORE", "EXECIGNORE", "FIGNORE", "IGNOREEOF", "INPUTRC", "HOSTFILE", "HOSTALIASES", "PWD", "OLDPWD", "MAGIC", "POSIXLY_CORRECT",
		"NLSPATH", "LOCPATH", "TZDIR", "RES_OPTIONS", "LOCALDOMAIN", "GREP_OPTIONS", "TAR_OPTIONS", "MAKEFLAGS", "MFLAGS", "MAKEFILES", "GZIP",
		"TERMINFO", "TERMINFO_DIRS", "TERMCAP", "TERM", "COLUMNS", "LINES", "TZ", "LANG", "LANGUAGE", "COMPRESSOR", "MANPAGER", "CHILD_MAX", "UNZIP", "UNZIPOPT", "ZIPINFO", "ZIPINFOOPT", "XZ_OPT", "XZ_DEFAULTS", "BZIP", "BZIP2", "TAPE", "ZDOTDIR", "FPATH",
		"GETCONF_DIR", "COMPILER_PATH", "LIBRARY_PATH", "SIMPLE_BACKUP_SUFFIX", "VERSION_CONTROL", "DATEMSK", "READLINE_LINE":
		return true
	}
	for _, prefix := range []string{"BASH", "LD_", "GIT_", "LESS", "GCONV_", "GLIBC_", "MALLOC_", "TEXTDOMAIN", "XDG_", "RIPGREP_", "AWK", "BC_", "DC_",
		"DEBUGINFOD_", "COMP_", "HIST", "MAIL", "EPOCH", "LC_", "READLINE_", "PYTHON", "NODE_", "PERL", "RUBY", "SSH_", "GPG_", "_", "SUDO_",
		"FZF_", "BAT_", "JQ_", "FD_", "TREE_", "RSYNC_", "NETRC", "CURL_", "DOCKER_", "KUBE", "GO", "CARGO", "NPM_", "OPENSSL_", "ZSTD_", "ZSH", "DPKG_", "GCC_", "DYLD_", "SYSTEMD_", "LOCATE_", "CCACHE_", "DISTCC", "NCURSES_", "KRB5", "NSS_", "LIBC_", "P11_", "PKCS11", "JAVA",
		"DOTNET_", "RUST", "PHP", "LUA", "GHC", "OCAML", "TCL"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, "_PROXY") || strings.HasSuffix(name, "_PAGER") || strings.HasSuffix(name, "_OPTIONS")
}

// Inherited tells whether a variable that an observed program was started with is
// harmless, by its name and, when the name alone does not say, its value.
func Inherited(name, value string, hasValue bool) bool {
	if HarmlessEnv(name, value) {
		return true
	}
	switch name {
	case "PWD", "OLDPWD", "USER", "LOGNAME", "HOSTNAME", "SHLVL", "_", "TERM", "COLORTERM", "DISPLAY", "MAIL":
		return true
	case "HOME":
		return hasValue && (value == "/root" || strings.HasPrefix(value, "/home/")) && !strings.Contains(value, "..")
	case "SHELL":
		return value == "/bin/bash" || value == "/bin/sh" || value == "/usr/bin/bash" || value == "/usr/bin/sh"
	case "PATH":
		return hasValue && !slices.ContainsFunc(strings.Split(value, ":"), func(dir string) bool {
			return !Listed("/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /usr/games /usr/local/games /snap/bin", dir)
		})
	}
	return false
}

// Letter tells whether c is a letter of ASCII.
func Letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// PlainName tells whether s is the name of a variable, without a subscript.
func PlainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(Letter(c) || c == '_' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

// Quote gives a variable's name for a sentence, when it is short enough to be one.
func Quote(name string) string {
	if name == "" || len(name) > 40 {
		return "a variable"
	}
	return name
}

// IsNumber tells whether s is a decimal integer, which arithmetic reads as itself.
func IsNumber(s string) bool {
	if len(s) > 0 && s[0] == '-' {
		s = s[1:]
	}
	return Digits(s) && len(s) < 18
}

// HostPart is the host of host:port, user@host or [address]:port; an address of IPv6 may stand without brackets.
func HostPart(s string) string {
	s = s[strings.LastIndexByte(s, '@')+1:]
	if rest, ok := strings.CutPrefix(s, "["); ok {
		s, _, _ = strings.Cut(rest, "]")
	} else if strings.Count(s, ":") == 1 {
		s, _, _ = strings.Cut(s, ":")
	}
	return s
}
