package toolguard

import (
	"slices"
	"strings"

	"weir/internal/commands"
)

// services is met when a service of these names is stopped, disabled or removed, by any of Windows' ways.
func services(names ...string) []trigger {
	list := strings.Join(names, "|")
	return []trigger{
		{Names: []string{"sc", "set-content"}, When: anyOf(hasWords("stop|delete|pause", list), allOf(hasWords("config", list), hasWords("disabled|start=disabled|demand")))},
		{Names: []string{"net", "net1"}, When: hasWords("stop|pause", list)},
		{Names: []string{"stop-service", "suspend-service", "remove-service", ".stop", ".pause"}, When: anyOf(hasValue(names...), isMade(allOf(isNamed("get-service"), hasValue(names...))))},
		{Names: []string{"set-service"}, When: allOf(hasValue(names...), hasValue("disabled", "stopped", "paused"))},
		{Names: []string{"wmic"}, When: allOf(textContains("service"), textContains(names...), hasWords("stopservice|delete|disabled|changestartmode"))},
	}
}

var eventLog = Rule{
	ID: "event-log", Group: OnCommands, Refuses: "clears, removes or switches off an event log or auditing",
	Why: "Nobody could tell any more what happened on this machine.", Instead: "Read logs with Get-WinEvent; let them rotate by themselves.",
	Refused: []Example{
		{Tool: cmd, Text: "wevtutil cl Application"}, {Tool: ps, Text: "Clear-EventLog -LogName Security"}, {Tool: ps, Text: "[System.Diagnostics.Eventing.Reader.EventLogSession]::GlobalSession.ClearLog('System')"},
		{Tool: cmd, Text: "auditpol /clear /y"}, {Tool: cmd, Text: "sc stop eventlog"}, {Tool: ps, Text: "Remove-EventLog -LogName Billing"}, {Tool: cmd, Text: "wevtutil set-log Security /enabled:false"},
	},
	Near: []Example{
		{Tool: cmd, Text: "wevtutil qe System /c:5 /f:text"}, {Tool: ps, Text: "Get-EventLog -LogName System | Where-Object Message -like '*Clear-EventLog*'"}, {Tool: cmd, Text: "auditpol /get /category:*"},
	},
	On: append([]trigger{
		{Names: []string{"clear-eventlog", "clear-winevent"}, When: isNot(enables("whatif"))},
		{Names: []string{"remove-eventlog"}, When: isNot(enables("whatif"))},
		{Names: []string{"wevtutil"}, When: anyOf(hasWords("cl|clear-log"), allOf(hasWords("sl|set-log"), hasWords("e:false|enabled:false")))},
		{Names: []string{".clearlog"}, When: always},
		{Names: []string{".delete"}, When: onType("[diagnostics.eventlog]")},
		{Names: []string{".clear"}, When: isMade(allOf(isNamed("new-object"), textContains("diagnostics.eventlog")))},
		{Names: []string{".clear"}, When: isMade(allOf(isNamed("get-eventlog"), hasWords("list|l|li|lis")))},
		{Names: []string{".cleareventlog"}, When: always},
		{Names: []string{"auditpol"}, When: anyOf(hasWords("clear|remove"), allOf(hasWords("set"), textContains("success:disable", "failure:disable")))},
		{Names: []string{"wmic"}, When: allOf(textContains("nteventlog"), hasWords("cleareventlog"))},
		{Names: []string{"del", "erase", "remove-item"}, When: textContains(`\winevt\logs`, `.evtx`)},
		{Names: []string{"reg", "set-itemproperty", "new-itemproperty"}, When: allOf(textContains(`\winevt\channels\`), hasWords("enabled", "0|0x0|$false"))},
	}, services("eventlog", "wecsvc")...),
	Changed: []string{"**/winevt/logs/**"},
}

var boot = Rule{
	ID: "boot", Group: OnCommands, Refuses: "edits how Windows starts or recovers",
	Why: "The machine may not start again, or may start without its protection.", Instead: "Show the settings with bcdedit /enum, and ask the user.",
	Refused: []Example{
		{Tool: cmd, Text: "bcdedit /set {current} recoveryenabled off"}, {Tool: cmd, Text: "bcdedit.exe /deletevalue safeboot"}, {Tool: cmd, Text: "reagentc /disable"}, {Tool: cmd, Text: "bootrec /fixmbr"},
		{Tool: ps, Text: "bcdedit /set '{current}' testsigning on"},
	},
	Near: []Example{{Tool: cmd, Text: "bcdedit /enum all"}, {Tool: cmd, Text: "reagentc /info"}, {Tool: cmd, Text: `bcdedit /export C:\work\bcd.bak`}},
	On: []trigger{
		{Names: []string{"bcdedit"}, When: hasWords("set|delete|deletevalue|import|create|default|displayorder|bootsequence|bootdebug|debug|timeout|copy|store|ems|bootems|toolsdisplayorder|hypervisorsettings|dbgsettings")},
		{Names: []string{"reagentc"}, When: hasWords("disable")},
		{Names: []string{"bootrec"}, When: hasWords("fixmbr|fixboot|rebuildbcd")},
		{Names: []string{"bootsect"}, When: hasWords("nt60|nt52")},
		{Names: []string{"set-bcdelement", "remove-bcdelement", "remove-bcdentry", "set-bcdbootdefault"}, When: always},
	},
	Changed: []string{"/bootmgr", "/boot/bcd", "**/efi/microsoft/boot/**"},
}

var defenderKeys = textContains(`\windows defender`, `\microsoft antimalware`, `\windows advanced threat protection`, `\services\windefend`, `\services\wdfilter`, `\services\sense`, `\amsi\providers`)

var broad = when(func(c *Command) bool {
	excludes := func(name string, is func(string) bool) bool {
		v, ok := paramOf(c, name)
		return ok && slices.ContainsFunc(v.All(), func(item Value) bool { return is(item.Text) })
	}
	return excludes("exclusionpath", func(p string) bool {
		p = strings.TrimRight(strings.ToLower(strings.ReplaceAll(p, "/", `\`)), `\*`)
		return p == "" || drive().MatchString(p+`\`) || winSystem().MatchString(p) || commands.Listed("temp tmp public downloads users appdata syswow64", p[strings.LastIndexByte(p, '\\')+1:])
	}) || excludes("exclusionextension", func(e string) bool {
		return commands.Listed("exe dll ps1 bat cmd vbs js sys com scr hta msi", strings.ToLower(strings.TrimLeft(e, "*.")))
	}) || excludes("exclusionprocess", func(p string) bool {
		return commands.Listed("powershell pwsh cmd wscript cscript mshta rundll32 regsvr32 svchost explorer outlook winword excel powerpnt msedge chrome firefox iexplore *", strings.TrimSuffix(baseName(p), ".*"))
	})
})

// disablers are the short names of parameters that begin with Disable.
var disablers = commands.Names("drtm dbm dbaf dioavp dpm dips dscrptsc darchsc dae dcfsc dcqsc demsc drdsc drp dsmndfsc dsnf")

// offOf is met when a parameter is set to nothing.
func offOf(names ...string) condition {
	return when(func(c *Command) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			v, ok := paramOf(c, name)
			w := strings.ToLower(v.Text)
			return ok && (w == "0" || w == "disabled" || w == "false" || w == "$false")
		})
	})
}

// lets is met when a threat is let be.
func lets(c *Command) bool {
	return slices.ContainsFunc(strings.Fields("low moderate high severe unknown"), func(level string) bool {
		v, ok := paramOf(c, level+"threatdefaultaction")
		return ok && commands.Listed("allow noaction 6 9", strings.ToLower(v.Text))
	})
}

// weakens is met when one of Defender's protections is switched off.
func weakens(c *Command) bool {
	for i, a := range c.Args {
		name := strings.ToLower(strings.TrimLeft(a.Text, "-/"))
		if a.Quoted || len(a.Text) < 4 || a.Text[0] != '-' || !strings.HasPrefix(name, "dis") && !disablers[name] {
			continue
		}
		if i+1 >= len(c.Args) {
			return true
		}
		if v := strings.ToLower(c.Args[i+1].Text); v != "$false" && v != "0" && v != "false" {
			return true
		}
	}
	return false
}

var defender = Rule{
	ID: "defender", Group: OnCommands, Refuses: "switches off Defender or AMSI, or hides a whole drive, a place that everybody writes to or a program of everyday use from it",
	Why: "What comes next would not be seen.", Instead: "Exclude one directory of your own, or ask the user.",
	Refused: []Example{
		{Tool: ps, Text: "Set-MpPreference -DisableRealtimeMonitoring $true"}, {Tool: ps, Text: `Add-MpPreference -ExclusionPath 'C:\'`}, {Tool: ps, Text: "Stop-Service -Name WinDefend -Force"},
		{Tool: cmd, Text: `reg add "HKLM\SOFTWARE\Policies\Microsoft\Windows Defender" /v DisableAntiSpyware /t REG_DWORD /d 1 /f`}, {Tool: ps, Text: "Add-MpPreference -ExclusionExtension .exe"},
		{Tool: ps, Text: "[Ref].Assembly.GetType('System.Management.Automation.AmsiUtils')"}, {Tool: ps, Text: "Uninstall-WindowsFeature -Name Windows-Defender"},
		{Tool: cmd, Text: "MpCmdRun.exe -RemoveDefinitions -All"},
	},
	Near: []Example{
		{Tool: ps, Text: "Set-MpPreference -DisableRealtimeMonitoring $false"}, {Tool: ps, Text: `Add-MpPreference -ExclusionPath D:\work\obj`}, {Tool: ps, Text: "Get-MpPreference | Select-Object DisableRealtimeMonitoring"},
		{Tool: cmd, Text: "sc query WinDefend"}, {Tool: cmd, Text: `reg query "HKLM\SOFTWARE\Microsoft\Windows Defender"`}, {Tool: ps, Text: "Stop-Service -Name Spooler"},
	},
	On: append([]trigger{
		{Names: []string{"set-mppreference"}, When: anyOf(when(weakens), broad, when(lets), offOf("mapsreporting", "puaprotection", "enablenetworkprotection", "enablecontrolledfolderaccess"))},
		{Names: []string{"invoke-cimmethod", "invoke-wmimethod"}, When: allOf(textContains("msft_mppreference"), textContains("disable"))},
		{Names: []string{"set-netfirewallprofile"}, When: offOf("enabled")},
		{Names: []string{"netsh"}, When: anyOf(
			hasWords("advfirewall", "set", "allprofiles|currentprofile|domainprofile|privateprofile|publicprofile|allprofile", "state", "off"), hasWords("firewall", "set", "opmode", "disable|mode=disable"),
		)},
		{Names: []string{"add-mppreference"}, When: broad},
		{Names: []string{"reg"}, When: allOf(hasWords("add|delete|import"), anyOf(defenderKeys, hasWords("disableantispyware|disablerealtimemonitoring")))},
		{Names: []string{"set-itemproperty", "new-itemproperty", "remove-itemproperty", "remove-item", "clear-itemproperty", ".setvalue", "rename-item", "rd", "rmdir", "del", "erase"}, When: defenderKeys},
		{Names: []string{"disable-windowsoptionalfeature", "uninstall-windowsfeature", "remove-windowsfeature"}, When: textContains("windows-defender")},
		{Names: []string{"dism"}, When: allOf(textContains("disable-feature"), textContains("windows-defender"))},
		{Names: []string{"mpcmdrun"}, When: hasWords("removedefinitions")},
		{Names: []string{".gettype", ".getfield", ".loadlibrary", ".getprocaddress"}, When: textContains("amsiutils", "amsiinitfailed", "amsiscanbuffer", "amsi.dll", "amsicontext")},
		{Names: []string{"reg", "set-itemproperty", "new-itemproperty"}, When: allOf(isNot(hasWords("query")), textContains(`\amsi.dll`))},
		{Names: []string{"advancedrun"}, When: textContains("windefend")},
		{Names: []string{"taskkill", "stop-process"}, When: hasValue("msmpeng.exe", "msmpeng", "mssense", "mssense.exe")},
	}, services("windefend", "wdnissvc", "wdnisdrv", "wdfilter", "wdboot", "sense", "mpssvc", "securityhealthservice")...),
	Changed: []string{"/programdata/microsoft/windows defender/**", "/program files/windows defender/**"},
}
