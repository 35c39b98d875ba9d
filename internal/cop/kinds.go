package cop

import (
	"strings"
	"sync"

	"weir/internal/commands"
)

// kind is how a program uses the network, or what else it can mean.
type kind uint8

const (
	nothing  kind = iota
	fetcher       // asks for URLs, can upload
	sender        // two-way connections: whatever it reads goes out
	copier        // copies files between machines
	asker         // asks for names
	prober        // sends packets
	mailer        // sends, wherever
	cloud         // speaks with a service, by subcommands
	versions      // git and the like
	packages      // package managers
	runsText
	interpreter
	awk
	encoder
	decoder
	socat
	openssl
	wrapper // runs the command that follows
)

// kindRows are the rows of programs in the catalogue.
var kindRows = []string{
	fetcher: "fetcher", sender: "sender", copier: "copier", asker: "asker", prober: "prober", mailer: "mailer", cloud: "cloud", versions: "versions", packages: "packages", runsText: "runsText",
	interpreter: "interpreter", awk: "awk", encoder: "encoder", decoder: "decoder", socat: "socat", openssl: "openssl",
}

// kinds are those of programs; a trailing # stands for a version.
var kinds = sync.OnceValue(func() map[string]kind {
	m := map[string]kind{}
	for k, row := range kindRows {
		for name := range strings.FieldsSeq(commands.Table("kinds")[row]) {
			m[name] = kind(k)
		}
	}
	return m
})

func lookup(name string) kind {
	if k, ok := kinds()[name]; ok {
		return k
	}
	switch {
	case commands.IsShell(name):
		return runsText
	case commands.KnowsWrapper(name):
		return wrapper
	case name == "git-remote-http" || name == "git-remote-https": // what git has fetch and push
		return fetcher
	}
	if stem := strings.TrimRight(name, "0123456789.-"); stem != "" {
		return kinds()[stem+"#"]
	}
	return nothing
}

// Connects tells whether a program is one whose use of the network is read from its arguments.
func Connects(program string) bool {
	k := lookup(base(program))
	return k >= fetcher && k <= packages || k == socat || k == openssl
}

// Knows tells whether a program is one whose arguments are read.
func Knows(program string) bool { return lookup(base(program)) != nothing }
