package exec

import (
	"bytes"
	"slices"
	"strings"
)

// variable is one dangerous environment variable, or all whose names begin so if name ends in a star.
type variable struct {
	name string
	why  string
	when func(value string) bool // nil: whatever its value
}

// The reasons that several variables share.
const (
	whyLoads    = "loads code into the program"
	whyOptions  = "options of the interpreter, which can load code"
	whySearch   = "where the interpreter finds its modules"
	whyStartup  = "file that the interpreter runs first"
	whyCommand  = "command that the program starts"
	whySettings = "settings that can name commands"
)

// dangerous says which variables change what a program does beyond what its argv shows (B12).
func dangerous() []variable {
	return []variable{
		{"LD_*", whyLoads, nil},
		{"GCONV_PATH", "iconv loads modules from there", nil},
		{"LOCPATH", "libc loads locales from there", nil},
		{"GLIBC_TUNABLES", "changes libc's checks", nil},
		{"OPENSSL_CONF", "settings that load engines", nil},
		{"OPENSSL_ENGINES", "openssl loads engines from there", nil},
		{"OPENSSL_MODULES", "openssl loads providers from there", nil},
		{"GTK_MODULES", whyLoads, nil},
		{"QT_PLUGIN_PATH", whyLoads, nil},
		{"PATH", "a relative or empty element finds programs in the current directory", relativePath},
		{"IFS", "changes how the shell splits words", nil},
		{"BASH_ENV", whyStartup, nil},
		{"ENV", whyStartup, nil},
		{"BASH_FUNC_*", "function that stands in for a command", nil},
		{"SHELLOPTS", whyOptions, nil},
		{"BASHOPTS", whyOptions, nil},
		{"PS4", "the shell expands it, commands too, for each traced line", nil},
		{"PROMPT_COMMAND", "the shell runs it before each prompt", nil},
		{"ZDOTDIR", "directory of start-up files", nil},
		{"FPATH", "zsh loads functions from there", nil},
		{"NODE_OPTIONS", whyOptions, nil},
		{"NODE_PATH", whySearch, nil},
		{"NPM_CONFIG_*", whySettings, nil},
		{"npm_config_*", whySettings, nil},
		{"ELECTRON_RUN_AS_NODE", "makes the program an interpreter", nil},
		{"PYTHONSTARTUP", whyStartup, nil},
		{"PYTHONPATH", whySearch, nil},
		{"PYTHONHOME", whySearch, nil},
		{"PYTHONUSERBASE", whySearch, nil},
		{"PYTHONPLATLIBDIR", whySearch, nil},
		{"PYTHONBREAKPOINT", "function that the interpreter calls", nil},
		{"PYTHONWARNINGS", "module that the interpreter imports", nil},
		{"PYTHONINSPECT", "the interpreter reads more code afterwards", nil},
		{"PERL5OPT", whyOptions, nil},
		{"PERL5LIB", whySearch, nil},
		{"PERLLIB", whySearch, nil},
		{"PERL5DB", "code that the debugger runs first", nil},
		{"RUBYOPT", whyOptions, nil},
		{"RUBYLIB", whySearch, nil},
		{"GEM_HOME", whySearch, nil},
		{"GEM_PATH", whySearch, nil},
		{"BUNDLE_GEMFILE", whySettings, nil},
		{"LUA_INIT*", "code that the interpreter runs first", nil},
		{"LUA_PATH*", whySearch, nil},
		{"LUA_CPATH*", whySearch, nil},
		{"PHPRC", whySettings, nil},
		{"PHP_INI_SCAN_DIR", whySettings, nil},
		{"AWKPATH", whySearch, nil},
		{"AWKLIBPATH", whyLoads, nil},
		{"R_PROFILE*", whyStartup, nil},
		{"R_ENVIRON*", whySettings, nil},
		{"JULIA_LOAD_PATH", whySearch, nil},
		{"TCLLIBPATH", whySearch, nil},
		{"ERL_FLAGS", whyOptions, nil},
		{"ERL_AFLAGS", whyOptions, nil},
		{"ERL_ZFLAGS", whyOptions, nil},
		{"JAVA_TOOL_OPTIONS", whyOptions, nil},
		{"_JAVA_OPTIONS", whyOptions, nil},
		{"JDK_JAVA_OPTIONS", whyOptions, nil},
		{"CLASSPATH", whySearch, nil},
		{"MAVEN_OPTS", whyOptions, nil},
		{"GRADLE_OPTS", whyOptions, nil},
		{"DOTNET_STARTUP_HOOKS", whyLoads, nil},
		{"CORECLR_PROFILER*", whyLoads, nil},
		{"COR_PROFILER*", whyLoads, nil},
		{"GOFLAGS", whySettings, nil},
		{"GOTOOLCHAIN", "names another go command to run", nil},
		{"RUSTC", whyCommand, nil},
		{"RUSTC_WRAPPER", whyCommand, nil},
		{"CARGO_*", whySettings, nil},
		{"MAKEFLAGS", "options that can hold code", nil},
		{"GNUMAKEFLAGS", "options that can hold code", nil},
		{"TAR_OPTIONS", whySettings, nil},
		{"RSYNC_RSH", whyCommand, nil},
		{"SVN_SSH", whyCommand, nil},
		{"SSH_ASKPASS", whyCommand, nil},
		{"LESS", "options that can hold commands", nil},
		{"LESSOPEN", whyCommand, nil},
		{"LESSCLOSE", whyCommand, nil},
		{"PAGER", whyCommand, notCat},
		{"MANPAGER", whyCommand, notCat},
		{"SYSTEMD_PAGER", whyCommand, nil},
		{"EDITOR", whyCommand, nil},
		{"VISUAL", whyCommand, nil},
		{"BROWSER", whyCommand, nil},
		{"VIMINIT", "code that the editor runs first", nil},
		{"EXINIT", "code that the editor runs first", nil},
		{"EMACSLOADPATH", whySearch, nil},
		{"INPUTRC", whySettings, nil},
		{"RIPGREP_CONFIG_PATH", whySettings, nil},
		{"WGETRC", whySettings, nil},
		{"CURL_HOME", whySettings, nil},
		{"SSLKEYLOGFILE", "gives away the keys of connections", nil},
		{"GIT_SSH", whyCommand, nil},
		{"GIT_SSH_COMMAND", whyCommand, nil},
		{"GIT_PROXY_COMMAND", whyCommand, nil},
		{"GIT_EXTERNAL_DIFF", whyCommand, nil},
		{"GIT_PAGER", whyCommand, notCat},
		{"GIT_EDITOR", whyCommand, nil},
		{"GIT_SEQUENCE_EDITOR", whyCommand, nil},
		{"GIT_ASKPASS", whyCommand, nil},
		{"GIT_EXEC_PATH", "git finds its programs there", nil},
		{"GIT_TEMPLATE_DIR", "hooks of new repositories", nil},
		{"GIT_CONFIG*", whySettings, nil},
		{"GIT_DIR", "another repository's settings and hooks", nil},
	}
}

// notCat: agents turn pagers off so.
func notCat(value string) bool { return value != "cat" && value != "" }

// relativePath: an empty element means the current directory.
func relativePath(value string) bool {
	return slices.ContainsFunc(strings.Split(value, ":"), func(element string) bool { return !strings.HasPrefix(element, "/") })
}

// names is the table of dangerous, made for looking up.
type names struct {
	exact  map[string]variable
	prefix [256][]variable // by their first character
}

func newNames() *names {
	n := &names{exact: map[string]variable{}}
	for _, v := range dangerous() {
		if prefix, ok := strings.CutSuffix(v.name, "*"); ok {
			n.prefix[prefix[0]] = append(n.prefix[prefix[0]], variable{prefix, v.why, v.when})
		} else {
			n.exact[v.name] = v
		}
	}
	return n
}

// find returns the names of the dangerous variables in an environment of NUL-ended NAME=VALUE, each once; values stay out.
func (n *names) find(environ []byte) []string {
	var found []string
	for len(environ) > 0 {
		entry := environ
		if end := bytes.IndexByte(environ, 0); end >= 0 {
			entry, environ = environ[:end], environ[end+1:]
		} else {
			environ = nil
		}
		name, value, ok := bytes.Cut(entry, []byte{'='})
		if ok && n.dangerous(name, value) && !slices.Contains(found, string(name)) {
			found = append(found, string(name))
		}
	}
	return found
}

func (n *names) dangerous(name, value []byte) bool {
	if v, ok := n.exact[string(name)]; ok {
		return v.when == nil || v.when(string(value))
	}
	if len(name) == 0 {
		return false
	}
	for _, v := range n.prefix[name[0]] {
		if len(name) >= len(v.name) && string(name[:len(v.name)]) == v.name {
			return true
		}
	}
	return false
}
