package wire

// The names. What starts, stores or protects something of Weir's takes them from here.
const (
	Service    = "weir"
	Watch      = Service + "-watch" // the unit that outlives it
	Program    = "/usr/local/bin/weir"
	Hook       = "/usr/local/bin/weir-hook"
	Config     = "/etc/weir"
	State      = "/var/lib/weir"
	Run        = "/run/weir"
	Pins       = "/sys/fs/bpf/weir"
	Cgroup     = "/sys/fs/cgroup/weir"
	KillSwitch = State + "/kill-switch"
	Rules      = Config + "/guard-rules" // what an operator appended (K12)
)
