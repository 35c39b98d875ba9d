package family

import (
	"strings"

	"weir/internal/classify/table"
)

// anySystem is why commands that show the state of the machine are local for every argument.
const anySystem = "shows the state of the machine; nothing it can be given runs code, connects or writes"

var systemCommands = []*table.Command{
	{Names: "cal ncal", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: "prints a calendar", Example: "cal 2026"},
	{Names: "uname arch", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: anySystem, Example: "uname -a"},
	{Names: "id whoami groups logname users tty", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: anySystem + " (names may come from a directory service)", Example: "id -un"},
	{Names: "free uptime nproc lscpu lsmem vmstat lsmod", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: anySystem, Example: "free -m"},
	{Names: "ps pgrep pidof pstree", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: anySystem, Example: "ps aux"},
	{Names: "locale", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: "shows settings; LOCPATH, which loads data, is not accepted", Example: "locale -a"},
	{Names: "printenv", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: "prints variables of the environment", Example: "printenv HOME"},
	{Names: "sleep", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: "waits", Example: "sleep 2"},
	{Names: "clear", Class: table.Local, Max: table.None, Why: "prints control characters", Example: "clear"},
	{
		Names: "which", Class: table.Local, Short: "as", Long: "all version help", Rest: table.Data,
		Refuse: []table.Refusal{{Options: "-i --read-alias --read-functions", Why: "reads aliases from its input"}},
		Why:    "tells where programs are", Example: "which python3",
	},
	{Names: "whereis", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: "tells where programs and manuals are", Example: "whereis gcc"},
	{
		Names: "date", Class: table.Local, Short: "d:f:I::Rr:uhV",
		Long:   "date= debug file= iso-8601=? resolution rfc-email rfc-3339= reference= utc universal uct gmt rfc-822 rfc-2822 help version",
		Values: []table.Value{{Options: "-f --file -r --reference", Role: table.Read}},
		Refuse: []table.Refusal{{Options: "-s --set=", Why: "sets the clock of the machine"}},
		Check:  checkDate, Rest: table.Data,
		Why: "prints the time; -s and a bare operand set the clock", Example: "date -u +%F",
	},
	{Names: "ldd", Class: table.Grey, AnyArgs: true, Rest: table.Read, Why: "some ldd run the program that they look at"},
	{Names: "man info", Class: table.Grey, AnyArgs: true, Rest: table.Data, Why: "runs formatters and a pager that the environment names"},
	{Names: "who", Class: table.Local, Short: "abdHlmpqrstTuw", Long: "all boot dead heading login process count runlevel short time users message writable mesg help version", Max: table.None, Refuse: []table.Refusal{{Options: "--lookup", Why: "asks for host names over the network"}}, Why: "lists who is logged in, as the machine noted it", Example: "who -b"},
	{Names: "w", Class: table.Local, Short: "hsuofi", Max: 1, Rest: table.Data, Why: "lists who is logged in, as the machine noted it", Example: "w -h"},
	{Names: "hostname", Class: table.Local, Max: table.None, Why: "prints the name of the machine; options may ask for names over the network, an operand sets it", Example: "hostname"},
	{Names: "dmesg", Class: table.Local, Short: "TtxkuerL::f:l:", Max: table.None, Refuse: []table.Refusal{{Options: "-H --human", Why: "runs a pager"}, {Options: "-C --clear -c --read-clear -D --console-off -E --console-on -n --console-level=", Why: "changes what the kernel keeps or prints"}}, Why: "prints the kernel's messages", Example: "dmesg -T"},
	{Names: "hostid last lsof ss netstat lspci", Class: table.Grey, AnyArgs: true, Rest: table.Data, Why: "may ask for host names, open a socket or run a pager"},
	{Names: "kill pkill killall", Class: table.Grey, AnyArgs: true, Rest: table.Data, Why: "ends other programs"},
}

// checkDate accepts formats alone as operands.
func checkDate(c *table.Call) {
	for _, w := range c.Operands {
		if !strings.HasPrefix(w.Text, "+") || w.Split {
			c.Grey(w, "date-sets", "an operand without + sets the clock")
		}
	}
}
