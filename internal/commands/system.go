package commands

import "strings"

// anySystem is why commands that show the state of the machine are local for every argument.
const anySystem = "shows the state of the machine; nothing it can be given runs code, connects or writes"

var systemCommands = []*Command{
	{Names: "cal ncal", Class: Local, AnyArgs: true, Rest: Data, Why: "prints a calendar", Example: "cal 2026"},
	{Names: "uname arch", Class: Local, AnyArgs: true, Rest: Data, Why: anySystem, Example: "uname -a"},
	{Names: "id whoami groups logname users tty", Class: Local, AnyArgs: true, Rest: Data, Why: anySystem + " (names may come from a directory service)", Example: "id -un"},
	{Names: "free uptime nproc lscpu lsmem vmstat lsmod", Class: Local, AnyArgs: true, Rest: Data, Why: anySystem, Example: "free -m"},
	{Names: "ps pgrep pidof pstree", Class: Local, AnyArgs: true, Rest: Data, Why: anySystem, Example: "ps aux"},
	{Names: "locale", Class: Local, AnyArgs: true, Rest: Data, Why: "shows settings; LOCPATH, which loads data, is not accepted", Example: "locale -a"},
	{Names: "printenv", Class: Local, AnyArgs: true, Rest: Data, Why: "prints variables of the environment", Example: "printenv HOME"},
	{Names: "sleep", Class: Local, AnyArgs: true, Rest: Data, Why: "waits", Example: "sleep 2"},
	{Names: "clear", Class: Local, Max: None, Why: "prints control characters", Example: "clear"},
	{
		Names: "which", Class: Local, Short: "as", Long: "all version help", Rest: Data,
		Refuse: []Refusal{{Options: "-i --read-alias --read-functions", Why: "reads aliases from its input"}},
		Why:    "tells where programs are", Example: "which python3",
	},
	{Names: "whereis", Class: Local, AnyArgs: true, Rest: Data, Why: "tells where programs and manuals are", Example: "whereis gcc"},
	{
		Names: "date", Class: Local, Short: "d:f:I::Rr:uhV",
		Long:   "date= debug file= iso-8601=? resolution rfc-email rfc-3339= reference= utc universal uct gmt rfc-822 rfc-2822 help version",
		Values: []Value{{Options: "-f --file -r --reference", Role: Read}},
		Refuse: []Refusal{{Options: "-s --set=", Why: "sets the clock of the machine"}},
		Check:  checkDate, Rest: Data,
		Why: "prints the time; -s and a bare operand set the clock", Example: "date -u +%F",
	},
	{Names: "ldd", Class: Grey, AnyArgs: true, Rest: Read, Why: "some ldd run the program that they look at"},
	{Names: "man info", Class: Grey, AnyArgs: true, Rest: Data, Why: "runs formatters and a pager that the environment names"},
	{Names: "who", Class: Local, Short: "abdHlmpqrstTuw", Long: "all boot dead heading login process count runlevel short time users message writable mesg help version", Max: None, Refuse: []Refusal{{Options: "--lookup", Why: "asks for host names over the network"}}, Why: "lists who is logged in, as the machine noted it", Example: "who -b"},
	{Names: "w", Class: Local, Short: "hsuofi", Max: 1, Rest: Data, Why: "lists who is logged in, as the machine noted it", Example: "w -h"},
	{Names: "hostname", Class: Local, Max: None, Why: "prints the name of the machine; options may ask for names over the network, an operand sets it", Example: "hostname"},
	{Names: "dmesg", Class: Local, Short: "TtxkuerL::f:l:", Max: None, Refuse: []Refusal{{Options: "-H --human", Why: "runs a pager"}, {Options: "-C --clear -c --read-clear -D --console-off -E --console-on -n --console-level=", Why: "changes what the kernel keeps or prints"}}, Why: "prints the kernel's messages", Example: "dmesg -T"},
	{Names: "hostid last lsof ss netstat lspci", Class: Grey, AnyArgs: true, Rest: Data, Why: "may ask for host names, open a socket or run a pager"},
	{Names: "kill pkill killall", Class: Grey, AnyArgs: true, Rest: Data, Why: "ends other programs"},
}

// checkDate accepts formats alone as operands.
func checkDate(c *Call) {
	for _, w := range c.Operands {
		if !strings.HasPrefix(w.Text, "+") || w.Split {
			c.Grey(w, "date-sets", "an operand without + sets the clock")
		}
	}
}
