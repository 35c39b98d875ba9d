package builtin

import (
	"strings"

	"weir/internal/ruleset/pathguard"
	"weir/internal/ruleset/rule"
	"weir/internal/ruleset/script"
)

// The tools of examples.
const (
	ps   = "powershell_exec"
	cmd  = "cmd_exec"
	bash = "bash"
)

var (
	drive     = pathguard.Pattern(`^(?i)[a-z]:[\\/.*]*$`)
	winSystem = pathguard.Pattern(`^(?i)[a-z]:[\\/]+(windows|windows[\\/]+system32|program files|program files \(x86\)|programdata|users)[\\/]*(\*(\.\*)?)?$`)
	rawDevice = pathguard.Pattern(`^(?i)[\\/]{2}[.?][\\/](physicaldrive\d|harddisk\d|[a-z]:$)`)
)

// cleans are the lines with which diskpart destroys.
var cleans = pathguard.Pattern(`(?im)^\s*(clean(\s+all)?|format\b.*|delete\s+(partition|volume|disk)\b.*)\s*$`)

func diskparts(c *script.Command) bool {
	found := func(v script.Value) bool { return cleans().MatchString(strings.Trim(v.Text, `"' `)) }
	for _, v := range c.Reads {
		if found(v) {
			return true
		}
	}
	return c.From != nil && cleans().MatchString(strings.Join(c.From.Words(), "\n")+"\n"+strings.Join(c.From.Words(), " "))
}

// fresh is met when what is formatted was only just made, or is to be tried on paper.
var fresh = rule.Any(rule.Made(rule.Named("new-partition", "new-volume", "initialize-disk", "new-vhd", "mount-vhd", "mount-diskimage", "new-virtualdisk")), rule.Enabled("whatif"))

// wipes is met when whole drives or the system's own directories are deleted with all that is in them.
func wipes(c *script.Command) bool {
	all, quiet := false, false
	for _, w := range c.Words() {
		switch l := strings.ToLower(w); {
		case l == "/s", l == "/s/q", l == "/q/s", strings.HasPrefix(l, "/") && strings.Contains(l, "/s"), len(l) > 1 && strings.HasPrefix("-recurse", l), l == "-rf", l == "-fr", l == "-r":
			all = true
		}
		quiet = quiet || drive().MatchString(w) || winSystem().MatchString(w)
	}
	_, try := rule.Param(c, "whatif")
	return all && quiet && !(try && c.Dialect == script.PowerShell)
}

func raw(c *script.Command) bool {
	for _, v := range c.Writes {
		if rawDevice().MatchString(v.Text) {
			return true
		}
	}
	for _, w := range c.Words() {
		if rawDevice().MatchString(strings.TrimPrefix(w, "of=")) {
			return true
		}
	}
	return false
}

var windowsDisk = []rule.Rule{
	{
		ID: "disk-format", Group: rule.Commands, Refuses: "formats, cleans or removes a disk or partition",
		Why: "What was on it is gone, and no one is asked.", Instead: "List disks with Get-Disk, and ask the user to do this by hand.",
		Refused: []rule.Example{
			{Tool: ps, Text: "Clear-Disk -Number 3 -RemoveData -Confirm:$false"}, {Tool: ps, Text: "Format-Volume -DriveLetter E -Force"},
			{Tool: ps, Text: "Get-Partition -DiskNumber 2 | Remove-Partition"}, {Tool: cmd, Text: "format D: /q /y"}, {Tool: cmd, Text: "(echo select disk 1 & echo clean all) | diskpart"},
			{Tool: cmd, Text: "diskpart /s C:\\work\\layout.txt"},
		},
		Near: []rule.Example{
			{Tool: ps, Text: "New-Partition -DiskNumber 4 -UseMaximumSize | Format-Volume -FileSystem NTFS"}, {Tool: ps, Text: "Get-Disk | Format-Table Number, Size"},
			{Tool: cmd, Text: "echo list disk | diskpart"}, {Tool: ps, Text: "Clear-Disk -Number 3 -RemoveData -WhatIf"},
		},
		On: []rule.On{
			{Names: []string{"clear-disk", "remove-partition"}, When: rule.Not(fresh)},
			{Names: []string{"format-volume"}, When: rule.Not(fresh)},
			{Names: []string{"format"}, When: func(c *script.Command) bool { return len(c.Args) > 0 && drive().MatchString(c.Args[0].Text) }},
			{Names: []string{"diskpart"}, When: rule.Any(diskparts, rule.Words("s"))},
			{Names: []string{".format"}, When: rule.Made(rule.Contains("win32_volume"))},
		},
	},
	{
		ID: "disk-raw", Group: rule.Commands, Refuses: "writes to a disk below its file systems",
		Why: "It overwrites the partition table or files that nobody chose.", Instead: "Write to files.",
		Refused: []rule.Example{
			{Tool: ps, Text: `[IO.File]::OpenWrite('\\.\PhysicalDrive0')`}, {Tool: ps, Text: `Set-Content -Path '\\.\PhysicalDrive1' -Value $zeros`}, {Tool: cmd, Text: `type zero.bin > \\.\PhysicalDrive0`},
		},
		Near: []rule.Example{{Tool: ps, Text: `Write-Host '\\.\PhysicalDrive0 is the first disk'`}, {Tool: ps, Text: `Get-CimInstance Win32_DiskDrive | Where-Object DeviceID -eq '\\.\PHYSICALDRIVE0'`}},
		On: []rule.On{
			{Names: []string{".openwrite", ".writeallbytes", ".open", ".createfile", "set-content", "add-content", "out-file", "copy-item", "copy", "dd", "clear-content"}, When: raw},
			{Names: []string{"*>"}, When: raw},
		},
	},
	{
		ID: "disk-wipe", Group: rule.Commands, Refuses: "overwrites files or free space so that nothing can be brought back",
		Why: "A secure wipe cannot be undone.", Instead: "Delete files in the ordinary way.",
		Refused: []rule.Example{{Tool: cmd, Text: `cipher /w:C:\`}, {Tool: cmd, Text: "sdelete64.exe -p 2 D:"}, {Tool: cmd, Text: `fsutil file setzerodata offset=0 length=4096 C:\work\a.db`}},
		Near:    []rule.Example{{Tool: cmd, Text: `cipher /e /s:C:\work`}, {Tool: ps, Text: "$item.isDeleted -eq $true"}, {Tool: cmd, Text: "fsutil file queryvaliddata C:\\work\\a.db"}},
		On: []rule.On{
			{Names: []string{"cipher"}, When: rule.Starts(`\w:`, `-w:`, `\w`)},
			{Names: []string{"sdelete", "sdelete64"}, When: func(c *script.Command) bool {
				for _, w := range c.Words() {
					if w != "" && w[0] != '-' && w[0] != '/' && strings.ContainsAny(w, `:\`) {
						return true
					}
				}
				return false
			}},
			{Names: []string{"fsutil"}, When: rule.Words("file", "setzerodata")},
		},
	},
	{
		ID: "delete-system", Group: rule.Commands, Refuses: "deletes a whole drive or a directory of Windows itself",
		Why: "The machine does not start again.", Instead: "Name the directory of your own work.",
		Refused: []rule.Example{{Tool: cmd, Text: `rd /s /q C:\`}, {Tool: cmd, Text: `del /f /s /q C:\Windows\System32\*`}, {Tool: ps, Text: `Remove-Item -Recurse -Force C:\Windows`}},
		Near:    []rule.Example{{Tool: cmd, Text: `rd /s /q C:\work\build`}, {Tool: ps, Text: `Remove-Item -Recurse C:\Windows\Temp\mine`}, {Tool: ps, Text: `Get-ChildItem -Recurse C:\Windows`}},
		On:      []rule.On{{Names: []string{"rd", "rmdir", "del", "erase", "remove-item"}, When: wipes}},
	},
	{
		ID: "shadow-copies", Group: rule.Commands, Refuses: "deletes backups or shadow copies, or makes one to copy locked files from",
		Why: "Nothing could be restored afterwards; this is what ransomware begins with.", Instead: "List them with vssadmin list shadows, and ask the user.",
		Refused: []rule.Example{
			{Tool: cmd, Text: "vssadmin delete shadows /for=D: /oldest /quiet"}, {Tool: cmd, Text: "wmic shadowcopy where volumename='D' delete"},
			{Tool: ps, Text: "Get-CimInstance -ClassName Win32_ShadowCopy | Remove-CimInstance"}, {Tool: ps, Text: "gwmi win32_shadowcopy | % { $_.Delete() }"},
			{Tool: cmd, Text: "wbadmin delete backup -keepversions:0"}, {Tool: cmd, Text: "diskshadow /s steps.dsh"}, {Tool: cmd, Text: "vssadmin resize shadowstorage /for=C: /on=C: /maxsize=401MB"},
			{Tool: ps, Text: `(Get-WmiObject -List Win32_ShadowCopy).Create("D:\", "ClientAccessible")`},
		},
		Near: []rule.Example{
			{Tool: cmd, Text: "vssadmin list shadows"}, {Tool: ps, Text: "Get-CimInstance Win32_ShadowCopy | Select-Object InstallDate"}, {Tool: cmd, Text: "wbadmin get versions"},
			{Tool: ps, Text: "Write-Output 'vssadmin delete shadows is refused'"},
		},
		On: []rule.On{
			{Names: []string{"vssadmin"}, When: rule.Any(rule.Words("delete", "shadows|shadowstorage"), rule.All(rule.Words("resize", "shadowstorage"), rule.Contains("maxsize")))},
			{Names: []string{"wmic"}, When: rule.All(rule.Contains("shadowcopy"), rule.Words("delete"))},
			{Names: []string{"diskshadow"}, When: rule.Any(rule.Words("s"), rule.Words("delete", "shadows"), func(c *script.Command) bool {
				return c.From != nil && strings.Contains(rule.Text(c.From), "delete shadows")
			})},
			{Names: []string{"wbadmin"}, When: rule.Words("delete")},
			{Names: []string{"remove-wbbackupset", "remove-wbcatalog"}, When: rule.Always},
			{Names: []string{"remove-wmiobject", "remove-ciminstance", ".delete", ".delete_", ".create", "invoke-cimmethod", "invoke-wmimethod", "foreach-object"}, When: shadows},
		},
	},
}

// shadows is met by what deletes or makes objects of the class of shadow copies.
func shadows(c *script.Command) bool {
	class := rule.Contains("win32_shadowcopy")
	switch c.Name {
	case "foreach-object":
		return rule.Words("delete")(c) && c.Made(class)
	case ".create", ".delete", ".delete_":
		return c.Made(class) || c.On.Type && strings.Contains(c.On.Text, "win32_shadowcopy")
	}
	return class(c) || c.Made(class)
}
