package toolguard

import "testing"

// F24 (K3, K4): other ways of Windows to the same thing, and what is beside them.
func TestF24Windows(t *testing.T) {
	g := testGuard()
	for _, tt := range []struct {
		dialect Dialect
		rule    string
		texts   []string
	}{
		{PowerShell, "encoded-command", []string{
			"Start-Process powershell '-e ZABpAHIA'", "Start-Process powershell -Args '-e ZABpAHIA'", "saps powershell '-NoProfile -enc ZABpAHIA'", "Start-Process -NoNewWindow powershell '-e ZABpAHIA'", "Start-Process powershell -NoNewWindow '-e ZABpAHIA'",
			"Start-Process -FilePath pwsh -Args '-e','ZABpAHIA'", "Start-Process -WindowStyle Hidden powershell.exe '-e ZABpAHIA' -Wait", "([wmiclass]'Win32_Process').Create('powershell -e ZABpAHIA')", "([wmiclass]'\\\\.\\root\\cimv2:Win32_Process').Create('powershell -e ZABpAHIA')",
			"[Diagnostics.Process]::Start('powershell','-e ZABpAHIA')", "[System.Diagnostics.Process]::Start('powershell.exe', '-nop -enc ZABpAHIA')", "(New-Object -ComObject WScript.Shell).Run('powershell -e ZABpAHIA')", "$s = New-Object -ComObject WScript.Shell; $s.Exec('powershell -e ZABpAHIA')",
			"(New-Object -ComObject Shell.Application).ShellExecute('powershell','-e ZABpAHIA')", "Start-Process cmd '/c powershell -e ZABpAHIA'",
		}},
		{PowerShell, "shadow-copies", []string{"Start-Process vssadmin 'delete shadows /all'", "[Diagnostics.Process]::Start('vssadmin','delete shadows /all /quiet')", "([WMICLASS]'Win32_ShadowCopy').Create('C:\\','ClientAccessible')", "(New-Object -ComObject WScript.Shell).Run('cmd /c vssadmin delete shadows /all', 0)"}},
		{PowerShell, "delete-system", []string{"gci C:\\Windows -r | ri -fo", "Get-ChildItem C:\\ -Recurse | Remove-Item -Force", "gci C:\\Windows | ri -r -fo", "dir C:\\ProgramData -Recurse -Force | del -Force", "ls 'C:\\Program Files' -r | rm"}},
		{PowerShell, "linux-delete", []string{"gci / -r | ri -fo", "Get-ChildItem /etc -Recurse | Remove-Item -Force"}},
		{Cmd, "shadow-copies", []string{"cmd /v:on /c \"set x=vssadmin&& !x! delete shadows /all\"", "cmd /v:on /c \"set x=delete shadows& vssadmin !x! /all\"", "cmd /V:ON /C set a=vss^&set b=admin^&!a!!b! delete shadows", "cmd /v /c \"set x=vssadmin&!x! delete shadows\""}},
		{Cmd, "defender", []string{
			"netsh advfirewall set currentprofile state off", "netsh advfirewall set allprofiles state off", "netsh firewall set opmode mode=disable", "netsh firewall set opmode disable", "netsh.exe advfirewall set publicprofile state off", "netsh -c advfirewall set domainprofile state off",
			"powershell -c Set-MpPreference -drtm $True",
		}},
		{PowerShell, "defender", []string{
			"Set-MpPreference -drtm $True", "Set-MpPreference -dbm 1", "Set-MpPreference -dioavp $true", "Set-MpPreference -dscrptsc $true", "Set-MpPreference -DisableRea $true", "Set-NetFirewallProfile -Profile Domain,Public,Private -Enabled False", "Set-NetFirewallProfile -All -Enabled 0",
			"Set-MpPreference -MAPSReporting Disabled", "Set-MpPreference -PUAProtection 0", "Set-MpPreference -HighThreatDefaultAction Allow -Force",
		}},
		{Cmd, "credential-dump", []string{"\"C:\\tools\\procdump.exe\" -ma lsass.exe C:\\l.dmp", "\"C:\\Program Files\\Sys Internals\\procdump64.exe\" -accepteula -ma lsass.exe l.dmp", "\"%TEMP%\\procdump.exe\" -ma lsass.exe out.dmp", "start \"\" \"C:\\tools\\procdump.exe\" -ma lsass.exe l.dmp",
			"cmd /c \"\"C:\\a b\\procdump.exe\" -ma lsass.exe l.dmp\"", "if exist x \"C:\\tools\\procdump.exe\" -ma lsass.exe l.dmp"}},
		{PowerShell, "credential-dump", []string{"& \"C:\\tools\\procdump.exe\" -ma lsass.exe l.dmp"}},
		{Cmd, "event-log", []string{
			"reg add \"HKLM\\SOFTWARE\\Microsoft\\Windows\\CurrentVersion\\WINEVT\\Channels\\Microsoft-Windows-Windows Defender/Operational\" /v Enabled /t REG_DWORD /d 0 /f", "reg add HKLM\\SOFTWARE\\Microsoft\\Windows\\CurrentVersion\\WINEVT\\Channels\\Security /v Enabled /d 0x0",
		}},
		{PowerShell, "event-log", []string{"Set-ItemProperty 'HKLM:\\SOFTWARE\\Microsoft\\Windows\\CurrentVersion\\WINEVT\\Channels\\Microsoft-Windows-Windows Defender/Operational' -Name Enabled -Value 0"}},
		{PowerShell, "", []string{
			"Start-Process notepad 'a.txt'", "Start-Process powershell '-File C:\\work\\a.ps1'", "Start-Process msbuild -Args '/p:Configuration=Release'", "[Diagnostics.Process]::Start('notepad','a.txt')", "[Diagnostics.Process]::GetProcesses()", "(New-Object -ComObject WScript.Shell).Run('notepad a.txt')",
			"([wmiclass]'Win32_Process').Create('notepad.exe')", "gci C:\\Windows\\Temp\\mine -r | ri -fo", "gci C:\\work -r | ri -fo", "gci C:\\ -r -Filter *.tmp | ri", "gci C:\\Windows -r | Select-Object Name", "gci C:\\Windows -r | Where-Object Name -eq x | ri", "gci C:\\ | ri -WhatIf -r", "Set-MpPreference -drtm $false",
			"Set-NetFirewallProfile -Profile Public -Enabled True", "Get-MpPreference", "Set-MpPreference -ScanScheduleDay 1", "Set-MpPreference -MAPSReporting Advanced", "\"procdump -ma lsass.exe\"", "Set-MpPreference -dscpt 5",
		}},
		{Cmd, "", []string{
			"netsh advfirewall show allprofiles", "netsh advfirewall set allprofiles state on", "netsh advfirewall firewall add rule name=web dir=in action=allow protocol=TCP localport=80", "netsh firewall set opmode mode=enable", "netsh interface set interface lan disabled", "\"C:\\tools\\procdump.exe\" -ma notepad.exe n.dmp",
			"cmd /v:on /c \"set x=dir&& !x! C:\\\"", "echo \"C:\\tools\\procdump.exe\" -ma lsass.exe", "reg query HKLM\\SOFTWARE\\Microsoft\\Windows\\CurrentVersion\\WINEVT\\Channels\\Security /v Enabled", "reg add HKLM\\SOFTWARE\\Microsoft\\Windows\\CurrentVersion\\WINEVT\\Channels\\Mine /v Enabled /d 1",
		}},
	} {
		for _, text := range tt.texts {
			if hit, _ := g.Script(tt.dialect, text); hit.ID() != tt.rule {
				t.Errorf("%d %q: refused by %q, want %q", tt.dialect, text, hit.ID(), tt.rule)
			}
		}
	}
}
