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

var secrets = Rule{
	ID: "credential-dump", Group: OnCommands, Refuses: "copies the stores in which Windows keeps credentials, or the memory of the process that holds them",
	Why: "With them every account of the machine or the domain can be taken over.", Instead: "Ask the user; no task of an agent needs them.",
	Refused: []Example{
		{Tool: cmd, Text: `reg save HKLM\SAM C:\work\sam.hiv`}, {Tool: cmd, Text: `ntdsutil "ac i ntds" "ifm" "create full C:\work\ifm" q q`}, {Tool: cmd, Text: `mimikatz.exe "sekurlsa::logonpasswords" exit`},
		{Tool: ps, Text: `rundll32.exe C:\Windows\System32\comsvcs.dll, MiniDump 640 C:\work\l.dmp full`}, {Tool: cmd, Text: "procdump -ma lsass.exe l.dmp"}, {Tool: ps, Text: "Get-Process lsass | Out-Minidump"},
		{Tool: cmd, Text: `esentutl /y /vss C:\Windows\NTDS\ntds.dit /d C:\work\n.dit`}, {Tool: cmd, Text: `copy \\?\GLOBALROOT\Device\HarddiskVolumeShadowCopy3\Windows\System32\config\SYSTEM C:\work`},
	},
	Near: []Example{
		{Tool: cmd, Text: `reg save HKCU\Software\Mine C:\work\mine.hiv`}, {Tool: ps, Text: "Get-Process lsass"}, {Tool: cmd, Text: "tasklist | findstr lsass"}, {Tool: cmd, Text: "ntdsutil files info quit quit"},
		{Tool: ps, Text: "Get-Process lsass | Select-Object Id, WorkingSet"}, {Tool: cmd, Text: `copy C:\work\system C:\work\copy`},
	},
	On: []trigger{
		{Names: []string{"reg"}, When: allOf(hasWords("save|export"), hasWord(func(w string) bool {
			return slices.Contains(credentialKeys, strings.TrimRight(strings.ToLower(w), `\`))
		}, "sam", "security", "system", "secrets"))},
		{Names: []string{"ntdsutil"}, When: anyOf(textContains("create full", "create sysvol full", "set dsrm password"), allOf(textContains("ifm"), textContains("create")))},
		{Names: []string{"rundll32"}, When: allOf(textContains("comsvcs"), textContains("minidump", "#24", "#+24"))},
		{Names: []string{"procdump", "procdump64", "sqldumper", "createdump", "dumpert", "out-minidump", "tttracer"}, When: anyOf(textContains("lsass"), isMade(lsass))},
		{Names: []string{"invoke-mimikatz", "xordump", "nanodump"}, When: always},
		{Names: []string{"copy", "copy-item", "xcopy", "robocopy", "esentutl", "move", "move-item", "type", "get-content", "cp", "certutil", "makecab", ".copy", ".readallbytes", ".openread", ".open", "underlay-copy", "ninjacopy", "invoke-ninjacopy"}, When: hasWord(isHive, append(anywhere("config", "repair", "ntds"), "dit", partOfName)...)},
		{Names: []string{"copy", "copy-item", "xcopy", "cp"}, When: when(masquerade, masks...)},
		{Names: []string{"*"}, When: when(func(c *Command) bool {
			if c.Dialect == POSIX {
				return false
			}
			return slices.ContainsFunc(c.Args, func(a Value) bool {
				return strings.Contains(a.Text, "::") && thief().MatchString(a.Text) && (a.Quoted || len(c.Args) < 8) && !prints[c.Name]
			})
		}, "sekurlsa:", "lsadump:", "dpapi:", "kerberos:", "sid:", "misc:", "token:", "event:", "vault:")},
		{Names: []string{".createprocessfromparent", ".minidumpwritedump", ".openprocess"}, When: isMade(lsass)},
		{Names: []string{""}, When: when(func(c *Command) bool { // a program that only running would tell, given lsass's number
			return slices.ContainsFunc(c.Args, func(a Value) bool { return a.Of != nil && lsass.is(a.Of) })
		}, "lsass")},
	},
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
