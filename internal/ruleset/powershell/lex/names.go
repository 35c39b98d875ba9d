package lex

import (
	"maps"
	"strings"

	"weir/internal/ruleset/script"
)

// Canonical is a command's name as rules have it.
func Canonical(name string) string {
	if full, ok := aliases[strings.ToLower(name)]; ok { // sc is an alias, sc.exe is none
		return full
	}
	return script.Base(name)
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
	"rnp": "rename-itemproperty", "gi": "get-item", "gci": "get-childitem", "ls": "get-childitem", "dir": "get-childitem", "select": "select-object", "ipmo": "import-module",
	"algm": "add-localgroupmember", "elu": "enable-localuser", "nlu": "new-localuser", "rlu": "remove-localuser", "slu": "set-localuser",
}

// Parameter says whether a word names a parameter, whole or abbreviated, with any dash.
func Parameter(word, name string) bool {
	if len(word) < 2 || word[0] != '-' && word[0] != '/' {
		return false
	}
	word = strings.ToLower(strings.TrimLeft(word, "-/"))
	return word != "" && strings.HasPrefix(name, word)
}

// Aliases gives the canonical name for each alias.
func Aliases() map[string]string { return maps.Clone(aliases) }

// What keywords are.
const (
	Before uint8 = iota + 1 // something that is read as a statement of its own
	Named                   // a name
)

// Keywords are those of the language.
var Keywords = map[string]uint8{
	"if": Before, "elseif": Before, "else": Before, "while": Before, "switch": Before, "until": Before, "foreach": Before, "for": Before, "in": Before, "do": Before, "try": Before,
	"catch": Before, "finally": Before, "return": Before, "throw": Before, "exit": Before, "param": Before, "begin": Before, "process": Before, "end": Before, "clean": Before,
	"dynamicparam": Before, "trap": Before, "parallel": Before, "sequence": Before,
	"function": Named, "filter": Named, "workflow": Named, "class": Named, "enum": Named, "configuration": Named,
}
