package toolguard

import (
	"slices"
	"strings"

	"weir/internal/commands"
)

var thief = pathPattern(`(?i)^(sekurlsa::|lsadump::|dpapi::|kerberos::(ptt|ptc|golden|list .*export)|sid::(add|patch)|misc::(skeleton|memssp)|token::elevate|event::(clear|drop)|vault::cred)`)

// lsass is met by Get-Process lsass.
var lsass = allOf(isNamed("get-process"), hasValue("lsass", "lsass.exe"))

var credentialKeys = []string{`hklm\sam`, `hklm\security`, `hklm\system`, `hkey_local_machine\sam`, `hkey_local_machine\security`, `hkey_local_machine\system`, `hklm\security\policy\secrets`}

// steals is met by what mimikatz is told.
func steals(c *Command) bool {
	return c.Dialect != POSIX && slices.ContainsFunc(c.Args, func(a Value) bool {
		return strings.Contains(a.Text, "::") && thief().MatchString(a.Text) && (a.Quoted || len(c.Args) < 8) && !prints[c.Name]
	})
}

// prints are commands that do nothing with their words but show or compare them.
var prints = commands.Names("echo write-output write-host select-string findstr find rem git write-verbose where-object")

// masquerade is met when an interpreter is copied to the name of a process of Windows itself.
func masquerade(c *Command) bool {
	w := c.Words()
	if len(w) < 2 {
		return false
	}
	return slices.Contains(masks, baseName(w[len(w)-1])) && commands.Listed("cmd powershell pwsh wscript cscript mshta rundll32", baseName(w[0]))
}

// masks are the names of processes of Windows itself.
var masks = []string{"lsass", "svchost", "csrss", "winlogon", "services", "smss", "wininit", "taskhostw"}
