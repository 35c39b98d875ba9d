package commands

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadG22K5: where the command stands. Commands are in brackets, texts in braces.
func TestReadG22K5(t *testing.T) {
	for line, want := range map[string]string{
		"sudo p a": "[p a]", "sudo -u root p": "[p]", "sudo -uroot p": "[p]", "sudo -nu root p": "[p]", "sudo -un p": "[p]", "sudo --user root p": "[p]", "sudo --us=root -- p -x": "[p -x]",
		"sudo A=b p C=d": "[p C=d]", "nice -n 5 p": "[p]", "nice -5 p": "[p]", "nice --adj 5 p": "[p]", "timeout 5 p": "[p]", "timeout -k 1 -s KILL 5 p 6": "[p 6]", "timeout --sig=KILL 5 p": "[p]",
		"chrt -f 10 p": "[p]", "chrt -b p": "[p]", "chroot / p": "[p]", "chroot --userspec a:b /x p": "[p]", "taskset -c 0,1 p": "[p]", "parallel --tag --jobs 4 p a ::: b": "[p a]", "parallel ::: a b": "{a}{b}",
		"parallel p ::: b": "{p}", "xargs -iI p": "[p]", "xargs -I X p": "[p]", "xargs -0n1 p": "[p]", "xargs": "", "strace -fo f p": "[p]", "strace --summary p": "[p]", "strace --summary-sort-by time p": "[p]",
		"watch -n 2 p": "{p}", "watch -d p a": "[p a]", "flock f p": "[p]", "flock -w 5 f p": "[p]", "flock f -c p": "{p}", "flock f": "", "env - A=b p": "[p]", "env -S p a": "{p a}", "env -u A -iSp": "{p }",
		"su -c p": "{p}", "su -lc p dev": "{p}", "su - dev --command=p": "{p}", "su dev": "", "runuser -u dev p -c x": "[p -c x]", "runuser dev -c p": "{p}", "script -qc p f": "{p}", "script f": "", "sg g p": "{p}",
		"find . -exec p {} ; -ok q {} + -print": "[p {}][q {}]", "find . -exec p {} + -exec": "[p {}]", "find . -exec p + -x": "[p + -x]", "find -exec ;": "", "fd x -x p": "[p]", "ls -exec p": "", "exec -a x p": "[p]",
		"sudo": "", "sudo -u": "", "timeout 5": "", "systemd-run --user --unit x p": "[p]", "nsenter -t 1 -m -n p": "[p]", "unshare -rm --map-user 0 p": "[p]",
		"setarch x86_64 -R p a": "[p a]", "setarch -R p": "[p]", "linux32 p": "[p]", "ld.so --preload x.so /bin/p a": "[/bin/p a]", "ld-linux-x86-64.so.2 /bin/p": "[/bin/p]", "fakeroot -- p": "[p]", "setpriv --reuid 5 p": "[p]",
	} {
		words := strings.Fields(line)
		commands, texts := Unwrap(words[0], words[1:], func(s string) string { return s })
		got := ""
		for _, c := range commands {
			got += "[" + strings.Join(c, " ") + "]"
		}
		for _, t := range texts {
			got += "{" + t + "}"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	}
}

// FuzzRead: no command is empty, and no word in two.
func FuzzRead(f *testing.F) {
	f.Add("find . -exec a {} + -ok b ;")
	f.Add("parallel -j 4 a ::: b c")
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, " ")
		commands, _ := Unwrap(words[0], words[1:], func(s string) string { return s })
		n := 0
		for _, c := range commands {
			if len(c) == 0 {
				t.Errorf("%q: an empty command", line)
			}
			n += len(c)
		}
		if n > len(words)-1 {
			t.Errorf("%q: %d words of %d", line, n, len(words)-1)
		}
	})
}
