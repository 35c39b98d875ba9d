package toolguard

import (
	"strings"
	"testing"
)

// ordinary scripts of each language, which nothing refuses. Of those that are read some name a command that a rule is about, some make texts of others;
// the suspect one has all words of a rule on different lines.
func ordinary(name string, n int) string {
	part := map[string]string{
		"powershell":       "$items = Get-ChildItem -Path \"C:\\work\\$name\" -Recurse | Where-Object { $_.Length -gt 1MB -and $_.Name -like '*.log' }\nforeach ($item in $items) {\n  # keep the newest\n  Copy-Item -Path $item.FullName -Destination (Join-Path 'D:\\keep' $item.Name) -Force\n  Write-Host \"copied $($item.Name) of $($items.Count)\"\n}\n",
		"powershell, read": "$items = Get-ChildItem -Path \"C:\\work\\$name\" -Recurse | Where-Object { $_.Length -gt 1MB -and $_.Name -like '*.log' }\nforeach ($item in $items) {\n  # keep the newest\n  Copy-Item -Path $item.FullName -Destination ('D:\\keep\\' + $item.Name) -Force\n  Write-Host (\"copied {0} of {1}\" -f $item.Name, $items.Count)\n}\n",
		"cmd":              "if exist build\\out.txt (copy /y build\\out.txt dist\\out.txt > nul)\r\nfor %%f in (src\\*.c) do cl /c /Fo:obj\\ %%f\r\nset target=release & echo building %target% 2>&1\r\n",
		"shell":            "for f in src/*.c; do gcc -O2 -c \"$f\" -o \"obj/$(basename \"$f\" .c).o\" || exit 1; done\nif [ -f obj/main.o ]; then rm -rf build/old && mkdir -p build && cp obj/*.o build/; fi\ngrep -rn 'TODO' src | sort -u > notes.txt\n",
		"cmd, read":        "if exist build\\out.txt (copy /y build\\out.txt dist\\out.txt > nul)\r\nfor %%f in (src\\*.c) do cl /c /Fo:obj\\ %%f\r\nset target=release & echo building %target% 2>&1\r\nreg query HKCU\\Software\\Mine\r\n",
		"shell, read":      "for f in src/*.c; do gcc -O2 -c \"$f\" -o \"obj/$(basename \"$f\" .c).o\" || exit 1; done\nif [ -f obj/main.o ]; then rm -rf build/old && mkdir -p build && cp obj/*.o build/; fi\nsystemctl status nginx\n",
		"shell, paths":     "cp src/file.txt /usr/local/share/doc/file.txt\nrm -rf /var/tmp/build\nchmod 644 /opt/app/conf.d/x\n",
		"shell, suspect":   "cp src/file.txt /usr/local/share/doc/file.txt\nrm -rf /var/tmp/build\nls /etc\nchmod 644 /opt/app/conf.d/x\n",
	}[name]
	return strings.Repeat(part, n/len(part)+1)[:n]
}

var sizes = []struct {
	name  string
	bytes int
}{{"64KiB", 64 << 10}, {"1MiB", 1 << 20}}

func BenchmarkGuard(b *testing.B) {
	g := testGuard()
	for _, d := range []struct {
		name    string
		dialect Dialect
	}{{"powershell", PowerShell}, {"powershell, read", PowerShell}, {"cmd", Cmd}, {"cmd, read", Cmd}, {"shell", POSIX}, {"shell, read", POSIX}, {"shell, paths", POSIX}, {"shell, suspect", POSIX}} {
		for _, size := range sizes {
			text := ordinary(d.name, size.bytes)
			b.Run(d.name+"/"+size.name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					if hit, ok := g.Script(d.dialect, text); ok {
						b.Fatalf("refused by %s: %s", hit.ID(), hit.Excerpt)
					}
				}
			})
		}
	}
}
