package toolguard

import "strings"

// psPlain turns the dashes, quotes and spaces that PowerShell takes for its own into those.
func psPlain(text string) string {
	for i := 0; ; i++ {
		if i == len(text) {
			return text
		}
		if text[i] >= 0x80 || text[i] == 0 {
			break
		}
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '–', '—', '―':
			return '-'
		case '‘', '’', '‚', '‛':
			return '\''
		case '“', '”', '„':
			return '"'
		case '\u00a0', '\u1680', '\u202f', '\u205f', '\u3000', '\u0085', '\u2028', '\u2029':
			return ' '
		case 0, '\ufeff':
			return -1
		}
		if r >= '\u2000' && r <= '\u200a' {
			return ' '
		}
		return r
	}, text)
}

// psLow is strings.ToLower without a copy of what is in lower case already, or is a word that is kept.
func psLow(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' || c >= 0x80 {
			return strings.ToLower(s)
		}
	}
	return s
}

// psLetter says whether a byte is one.
func psLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// psVariable gives the name of $name, ${name} or $scope:name at i, in lower case and without a scope, and its end.
func psVariable(s string, i int) (string, int) {
	j := i + 1
	if j < len(s) && s[j] == '{' {
		k := strings.IndexByte(s[j:], '}')
		if k < 0 {
			return "", len(s)
		}
		return scopeless(strings.ReplaceAll(s[j+1:j+k], "`", "")), j + k + 1
	}
	if j < len(s) && strings.IndexByte("$?^_", s[j]) >= 0 && (j+1 >= len(s) || !psNameByte(s[j+1]) || s[j] != '_') {
		return s[j : j+1], j + 1
	}
	for j < len(s) && (psNameByte(s[j]) || s[j] == ':' && j+1 < len(s) && psNameByte(s[j+1]) && j > i+1) {
		j++
	}
	return scopeless(s[i+1 : j]), j
}

// psNameByte says whether names of variables and members have it.
func psNameByte(c byte) bool { return psLetter(c) || c >= '0' && c <= '9' || c == '_' || c >= 0x80 }

func scopeless(name string) string {
	name = psLow(name)
	if strings.IndexByte(name, ':') < 0 {
		return name
	}
	for _, scope := range [...]string{"global:", "script:", "local:", "private:", "variable:", "using:"} {
		name = strings.TrimPrefix(name, scope)
	}
	return name
}

// psCanonical is a command's name as rules have it.
func psCanonical(name string) string {
	if full, ok := aliases[strings.ToLower(name)]; ok { // sc is an alias, sc.exe is none
		return full
	}
	return baseName(name)
}

// aliases are those of Windows PowerShell that rules may meet.
var aliases = map[string]string{
	"iex": "invoke-expression", "iwr": "invoke-webrequest", "curl": "invoke-webrequest", "wget": "invoke-webrequest", "irm": "invoke-restmethod",
	"icm": "invoke-command", "saps": "start-process", "start": "start-process", "sp": "set-itemproperty", "spps": "stop-process", "kill": "stop-process", "spsv": "stop-service",
	"sasv": "start-service", "ri": "remove-item", "rm": "remove-item", "rmdir": "remove-item", "rd": "remove-item", "del": "remove-item", "erase": "remove-item",
	"rp": "remove-itemproperty", "ni": "new-item", "mi": "move-item", "mv": "move-item", "move": "move-item", "cp": "copy-item", "copy": "copy-item", "cpi": "copy-item",
	"gc": "get-content", "cat": "get-content", "type": "get-content", "sc": "set-content", "ac": "add-content", "clc": "clear-content", "gwmi": "get-wmiobject",
	"rwmi": "remove-wmiobject", "iwmi": "invoke-wmimethod", "swmi": "set-wmiinstance", "gcim": "get-ciminstance", "rcim": "remove-ciminstance", "icim": "invoke-cimmethod",
	"scim": "set-ciminstance", "ncim": "new-ciminstance", "gps": "get-process", "ps": "get-process", "gsv": "get-service", "foreach": "foreach-object", "%": "foreach-object",
	"?": "where-object", "where": "where-object", "echo": "write-output", "write": "write-output", "sajb": "start-job", "sal": "set-alias", "nal": "new-alias",
	"sv": "set-variable", "set": "set-variable", "si": "set-item", "cli": "clear-item", "clp": "clear-itemproperty", "rni": "rename-item", "ren": "rename-item",
	"rnp": "rename-itemproperty", "gcm": "get-command", "sl": "set-location", "gal": "get-alias", "gi": "get-item", "gci": "get-childitem", "ls": "get-childitem", "dir": "get-childitem", "select": "select-object", "ipmo": "import-module",
	"algm": "add-localgroupmember", "elu": "enable-localuser", "nlu": "new-localuser", "rlu": "remove-localuser", "slu": "set-localuser",
}

// psParameter says whether a word names a parameter, whole or abbreviated, with any dash.
func psParameter(word, name string) bool {
	if len(word) < 2 || word[0] != '-' && word[0] != '/' {
		return false
	}
	word = strings.ToLower(strings.TrimLeft(word, "-/"))
	return word != "" && strings.HasPrefix(name, word)
}

// What keywords are.
const (
	psBefore uint8 = iota + 1 // something that is read as a statement of its own
	psNamed                   // a name
)

// psKeywords are those of the language.
var psKeywords = map[string]uint8{
	"if": psBefore, "elseif": psBefore, "else": psBefore, "while": psBefore, "switch": psBefore, "until": psBefore, "foreach": psBefore, "for": psBefore, "in": psBefore, "do": psBefore, "try": psBefore,
	"catch": psBefore, "finally": psBefore, "return": psBefore, "throw": psBefore, "exit": psBefore, "param": psBefore, "begin": psBefore, "process": psBefore, "end": psBefore, "clean": psBefore,
	"dynamicparam": psBefore, "trap": psBefore, "parallel": psBefore, "sequence": psBefore,
	"function": psNamed, "filter": psNamed, "workflow": psNamed, "class": psNamed, "enum": psNamed, "configuration": psNamed,
}
