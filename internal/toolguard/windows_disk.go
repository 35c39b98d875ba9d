package toolguard

import (
	"slices"
	"strings"
)

// The tools of examples.
const (
	ps   = "powershell_exec"
	cmd  = "cmd_exec"
	bash = "bash"
)

var (
	drive     = pathPattern(`^(?i)[a-z]:[\\/.*]*$`)
	winSystem = pathPattern(`^(?i)[a-z]:[\\/]+(windows|windows[\\/]+system32|program files|program files \(x86\)|programdata|users)[\\/]*(\*(\.\*)?)?$`)
	rawDevice = pathPattern(`^(?i)[\\/]{2}[.?][\\/](physicaldrive\d|harddisk\d|[a-z]:$)`)
)

// cleans are the lines with which diskpart destroys.
var cleans = pathPattern(`(?im)^\s*(clean(\s+all)?|format\b.*|delete\s+(partition|volume|disk)\b.*)\s*$`)

func diskparts(c *Command) bool {
	found := func(v Value) bool { return cleans().MatchString(strings.Trim(v.Text, `"' `)) }
	for _, v := range c.Reads {
		if found(v) {
			return true
		}
	}
	return c.From != nil && cleans().MatchString(strings.Join(c.From.Words(), "\n")+"\n"+strings.Join(c.From.Words(), " "))
}

// fresh is met when what is formatted was only just made, or is to be tried on paper.
var fresh = anyOf(isMade(isNamed("new-partition", "new-volume", "initialize-disk", "new-vhd", "mount-vhd", "mount-diskimage", "new-virtualdisk")), enables("whatif"))

// wipes is met when whole drives or the system's own directories are deleted with all that is in them.
func wipes(c *Command) bool {
	all, quiet := false, false
	for _, w := range append(c.Words(), listedFor(c)...) {
		if rest := strings.TrimLeft(w, `.\/`); c.Dir != "" && !isDrive(strings.ToLower(w)) && (w == "" || w[0] != '/' && w[0] != '-' && w[0] != '\\') {
			w = strings.TrimRight(c.Dir, `\/`) + `\` + rest
		}
		switch l := strings.ToLower(w); {
		case l == "/s", l == "/s/q", l == "/q/s", strings.HasPrefix(l, "/") && strings.Contains(l, "/s"), len(l) > 1 && strings.HasPrefix("-recurse", l), l == "-rf", l == "-fr", l == "-r":
			all = true
		}
		quiet = quiet || w == `\` && c.Dialect == Cmd || drive().MatchString(w) || winSystem().MatchString(w)
	}
	_, try := paramOf(c, "whatif")
	return all && quiet && !(try && c.Dialect == PowerShell)
}

// walks notes the directory that commands of Windows run in, as far as cd tells it; it gives that in which the next ones run.
func walks(dir string, commands []*Command) string {
	for _, c := range commands {
		switch c.Name {
		case "set-location", "push-location", "cd", "chdir", "pushd":
			for i := len(c.Args) - 1; i >= 0; i-- {
				to := c.Args[i].Text
				switch {
				case to == "" || to[0] == '-' || strings.EqualFold(to, "/d"):
					continue
				case !c.Args[i].Known() || strings.Contains(to, ".."):
					dir = ""
				case isDrive(strings.ToLower(to)) || to[0] == '/' && c.Dialect == PowerShell:
					dir = to
				case to[0] == '\\':
					dir = "C:" + to
				case dir != "":
					dir = strings.TrimRight(dir, `\/`) + `\` + to
				}
				break
			}
		default:
			if len(dir) <= maxDir {
				c.Dir = dir
			}
		}
	}
	return dir
}

// systemWords are words of a drive's root, or of what wipes is about.
var systemWords = []string{"windows", "program", "programdata", "users", "system32", driveRoot}

// wipesListed is met when what is deleted is a whole drive or directory of the system by a method, or all that was listed in one.
func wipesListed(c *Command) bool {
	whole := func(v Value) bool { return drive().MatchString(v.Text) || winSystem().MatchString(v.Text) }
	listed := func(v Value) bool {
		return v.Of != nil && slices.ContainsFunc(listedFor(&Command{From: v.Of}), func(w string) bool { return whole(Value{Text: w}) })
	}
	if c.Name == "remove-item" {
		return slices.ContainsFunc(c.Args, listed) && !enables("whatif").is(c)
	}
	return listed(c.On) || c.Name != ".delete" && whole(first(c.Args)) || onType("[io.directory]", "[io.file]", "[io.directoryinfo]").is(c) && whole(first(c.Args))
}

// dropsHive is met when a whole hive of the registry is deleted.
func dropsHive(c *Command) bool {
	if c.Name == "reg" && !hasWords("delete").is(c) {
		return false
	}
	return slices.ContainsFunc(c.Words(), func(w string) bool {
		w = strings.ToLower(strings.Trim(strings.ReplaceAll(w, "/", `\`), `\*`))
		root, hive, _ := strings.Cut(w, `\`)
		root = strings.TrimSuffix(root, ":")
		return (root == "hklm" || root == "hkey_local_machine" || strings.HasSuffix(root, "registry::hkey_local_machine")) && (hive == "" || hive == "system" || hive == "software" || hive == "sam" || hive == "security")
	})
}

// listedFor are the words of what lists the files that a command is given, where it leaves none out.
func listedFor(c *Command) []string {
	from := c.From
	if from != nil && from.Name == "" && from.Program == "" && len(from.Writes) == 0 { // names that stand there
		return from.Words()
	}
	if from == nil || from.Name != "get-childitem" && from.Name != "get-item" || anyOf(setsValue("include"), setsValue("exclude"), setsValue("filter")).is(from) {
		return nil
	}
	return from.Words()
}

var raw = when(func(c *Command) bool {
	return slices.ContainsFunc(c.Writes, func(v Value) bool { return rawDevice().MatchString(v.Text) }) ||
		slices.ContainsFunc(c.Words(), func(w string) bool { return rawDevice().MatchString(strings.TrimPrefix(w, "of=")) })
}, append(anywhere("physicaldrive", "harddisk"), driveRoot)...)

var windowsDisk = []Rule{
	{
		ID: "disk-format", Group: OnCommands, Refuses: "formats, cleans or removes a disk or partition",
		Why: "What was on it is gone, and no one is asked.", Instead: "List disks with Get-Disk, and ask the user to do this by hand.",
		Refused: []Example{
			{Tool: ps, Text: "Clear-Disk -Number 3 -RemoveData -Confirm:$false"}, {Tool: ps, Text: "Format-Volume -DriveLetter E -Force"},
			{Tool: ps, Text: "Get-Partition -DiskNumber 2 | Remove-Partition"}, {Tool: cmd, Text: "format D: /q /y"}, {Tool: cmd, Text: "(echo select disk 1 & echo clean all) | diskpart"},
			{Tool: cmd, Text: "diskpart /s C:\\work\\layout.txt"},
		},
		Near: []Example{
			{Tool: ps, Text: "New-Partition -DiskNumber 4 -UseMaximumSize | Format-Volume -FileSystem NTFS"}, {Tool: ps, Text: "Get-Disk | Format-Table Number, Size"},
			{Tool: cmd, Text: "echo list disk | diskpart"}, {Tool: ps, Text: "Clear-Disk -Number 3 -RemoveData -WhatIf"},
		},
		On: []trigger{
			{Names: []string{"clear-disk", "remove-partition"}, When: isNot(fresh)},
			{Names: []string{"format-volume"}, When: isNot(fresh)},
			{Names: []string{"format"}, When: when(func(c *Command) bool { return slices.ContainsFunc(c.Words(), drive().MatchString) }, driveRoot)},
			{Names: []string{"diskpart"}, When: anyOf(when(diskparts, "clean", "format", "delete"), hasWords("s"))},
			{Names: []string{".format"}, When: isMade(textContains("win32_volume"))},
			{Names: []string{"invoke-cimmethod", "invoke-wmimethod"}, When: allOf(hasValue("format"), anyOf(textContains("win32_volume"), isMade(textContains("win32_volume"))))},
			{Names: []string{"reset-physicaldisk", "remove-storagepool"}, When: isNot(enables("whatif"))},
		},
	},
	{
		ID: "disk-raw", Group: OnCommands, Refuses: "writes to a disk below its file systems",
		Why: "It overwrites the partition table or files that nobody chose.", Instead: "Write to files.",
		Refused: []Example{
			{Tool: ps, Text: `[IO.File]::OpenWrite('\\.\PhysicalDrive0')`}, {Tool: ps, Text: `Set-Content -Path '\\.\PhysicalDrive1' -Value $zeros`}, {Tool: cmd, Text: `type zero.bin > \\.\PhysicalDrive0`},
		},
		Near: []Example{{Tool: ps, Text: `Write-Host '\\.\PhysicalDrive0 is the first disk'`}, {Tool: ps, Text: `Get-CimInstance Win32_DiskDrive | Where-Object DeviceID -eq '\\.\PHYSICALDRIVE0'`}},
		On: []trigger{
			{Names: []string{".openwrite", ".writeallbytes", ".open", ".createfile", "set-content", "add-content", "out-file", "copy-item", "copy", "dd", "clear-content"}, When: raw},
			{Names: []string{"*>"}, When: raw},
		},
		Changed: []string{"/physicaldrive*", "/harddisk[0-9]*"},
	},
	{
		ID: "disk-wipe", Group: OnCommands, Refuses: "overwrites files or free space so that nothing can be brought back",
		Why: "A secure wipe cannot be undone.", Instead: "Delete files in the ordinary way.",
		Refused: []Example{{Tool: cmd, Text: `cipher /w:C:\`}, {Tool: cmd, Text: "sdelete64.exe -p 2 D:"}, {Tool: cmd, Text: `fsutil file setzerodata offset=0 length=4096 C:\work\a.db`}},
		Near:    []Example{{Tool: cmd, Text: `cipher /e /s:C:\work`}, {Tool: ps, Text: "$item.isDeleted -eq $true"}, {Tool: cmd, Text: "fsutil file queryvaliddata C:\\work\\a.db"}},
		On: []trigger{
			{Names: []string{"cipher"}, When: startsWith(`\w:`, `-w:`, `\w`)},
			{Names: []string{"sdelete", "sdelete64"}, When: hasWord(func(w string) bool { return w != "" && w[0] != '-' && w[0] != '/' && strings.ContainsAny(w, `:\`) })},
			{Names: []string{"fsutil"}, When: hasWords("file", "setzerodata")},
		},
	},
	{
		ID: "delete-system", Group: OnCommands, Refuses: "deletes a whole drive or a directory of Windows itself",
		Why: "The machine will not start again.", Instead: "Name the directory of your own work.",
		Refused: []Example{{Tool: cmd, Text: `rd /s /q C:\`}, {Tool: cmd, Text: `del /f /s /q C:\Windows\System32\*`}, {Tool: ps, Text: `Remove-Item -Recurse -Force C:\Windows`}},
		Near:    []Example{{Tool: cmd, Text: `rd /s /q C:\work\build`}, {Tool: ps, Text: `Remove-Item -Recurse C:\Windows\Temp\mine`}, {Tool: ps, Text: `Get-ChildItem -Recurse C:\Windows`}},
		On: []trigger{
			{Names: []string{"rd", "rmdir", "del", "erase", "remove-item"}, When: when(wipes, systemWords...)},
			{Names: []string{".delete", "remove-item", ".deletefolder", ".deletefile"}, When: when(wipesListed, systemWords...)},
			{Names: []string{"reg", "remove-item"}, When: when(dropsHive, "hklm", "hklm:", "hkey_local_machine", "system", "software", "sam", "security")},
		},
		Deleted: []string{"/windows", "/windows/system32", "/program files", "/program files (x86)", "/programdata", "/users"},
	},
	{
		ID: "shadow-copies", Group: OnCommands, Refuses: "deletes backups or shadow copies, or makes one to copy locked files from",
		Why: "Nothing could be restored afterwards; this is what ransomware begins with.", Instead: "List them with vssadmin list shadows, and ask the user.",
		Refused: []Example{
			{Tool: cmd, Text: "vssadmin delete shadows /for=D: /oldest /quiet"}, {Tool: cmd, Text: "wmic shadowcopy where volumename='D' delete"},
			{Tool: ps, Text: "Get-CimInstance -ClassName Win32_ShadowCopy | Remove-CimInstance"}, {Tool: ps, Text: "gwmi win32_shadowcopy | % { $_.Delete() }"},
			{Tool: cmd, Text: "wbadmin delete backup -keepversions:0"}, {Tool: cmd, Text: "diskshadow /s steps.dsh"}, {Tool: cmd, Text: "vssadmin resize shadowstorage /for=C: /on=C: /maxsize=401MB"},
			{Tool: ps, Text: `(Get-WmiObject -List Win32_ShadowCopy).Create("D:\", "ClientAccessible")`},
		},
		Near: []Example{
			{Tool: cmd, Text: "vssadmin list shadows"}, {Tool: ps, Text: "Get-CimInstance Win32_ShadowCopy | Select-Object InstallDate"}, {Tool: cmd, Text: "wbadmin get versions"},
			{Tool: ps, Text: "Write-Output 'vssadmin delete shadows is refused'"},
		},
		On: []trigger{
			{Names: []string{"vssadmin"}, When: anyOf(hasWords("delete", "shadows|shadowstorage"), allOf(hasWords("resize", "shadowstorage"), textContains("maxsize")))},
			{Names: []string{"wmic"}, When: allOf(textContains("shadowcopy"), hasWords("delete"))},
			{Names: []string{"diskshadow"}, When: anyOf(hasWords("s"), hasWords("delete", "shadows"), when(func(c *Command) bool {
				return c.From != nil && strings.Contains(textOf(c.From), "delete shadows")
			}, anywhere("shadows")...))},
			{Names: []string{"wbadmin"}, When: hasWords("delete")},
			{Names: []string{"remove-wbbackupset", "remove-wbcatalog", "disable-computerrestore"}, When: always},
			{Names: []string{"remove-wmiobject", "remove-ciminstance", ".delete", ".delete_", ".create", "invoke-cimmethod", "invoke-wmimethod", "foreach-object"}, When: when(shadows, anywhere("win32_shadowcopy")...)},
		},
	},
}

// shadows is met by what deletes or makes objects of the class of shadow copies.
func shadows(c *Command) bool {
	class := textContains("win32_shadowcopy")
	switch c.Name {
	case "foreach-object":
		return hasWords("delete").is(c) && c.Made(class.is)
	case ".create", ".delete", ".delete_":
		return c.Made(class.is) || strings.Contains(strings.ToLower(c.On.Text), "win32_shadowcopy")
	}
	return class.is(c) || c.Made(class.is)
}
