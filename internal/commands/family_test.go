package commands

import (
	"strings"
	"testing"
)

// starting is the list of G5; builtins of the shell among them are the engine's.
const starting = "awk base64 basename bc cal cat column comm cut date df diff dirname du expand expr fd file find fmt fold free grep head hexdump id " +
	"iconv jq less locale ls lscpu md5sum mktemp nl nproc od paste readelf realpath rev rg sed seq sha256sum sort stat strings tac tail tr tree uname " +
	"unexpand uniq uptime wc which whoami xxd"

// G6 names these.
const capable = "curl wget nc netcat ncat telnet ssh scp sftp rsync nslookup dig host ping traceroute apt-get apt pip# npm yarn cargo python# node ruby# perl# php#"

func TestG5CommandsAreListed(t *testing.T) { allHave(t, starting, Local) }
func TestG6CommandsAreListed(t *testing.T) { allHave(t, capable, Network) }

func allHave(t *testing.T, names string, class Class) {
	t.Helper()
	have := map[string]Class{}
	for _, f := range Families() {
		for _, c := range f.Commands {
			for _, n := range strings.Fields(c.Names) {
				have[n] = c.Class
			}
		}
	}
	for _, n := range strings.Fields(names) {
		if got, ok := have[n]; !ok || got != class {
			t.Errorf("%s: %v, want %v", n, got, class)
		}
	}
}

// Each name has one entry, a reason, and local ones an example; what is written as an
// option can be read as one.
func TestEntriesAreWhole(t *testing.T) {
	seen := map[string]string{}
	for _, f := range Families() {
		for _, c := range f.Commands {
			for _, n := range strings.Fields(c.Names) {
				if seen[n] != "" {
					t.Errorf("%s is in %s and in %s", n, seen[n], f.Name)
				}
				seen[n] = f.Name
			}
			wholeFlags(t, c)
		}
	}
}

func wholeFlags(t *testing.T, c *Command) {
	t.Helper()
	if c.Names == "" || c.Why == "" || strings.HasSuffix(c.Why, ".") {
		t.Errorf("%q: want a name and a reason without a full stop, have %q", c.Names, c.Why)
	}
	if c.Class == Local && c.Example == "" {
		t.Errorf("%s: want an example", c.Names)
	}
	if c.Any && c.Class == Local && (c.Check != nil || c.Language != nil || c.Rest == Write) {
		t.Errorf("%s: any argument is accepted, but some are judged", c.Names)
	}
	for _, list := range []string{c.Long, strings.ReplaceAll(c.NoLead, "-", "")} {
		for _, o := range strings.Fields(list) {
			if strings.HasPrefix(o, "-") || strings.ContainsAny(o, ":,") {
				t.Errorf("%s: option %q", c.Names, o)
			}
		}
	}
	seen := map[byte]bool{}
	for i := range len(c.Short) {
		if b := c.Short[i]; b != ':' {
			if seen[b] {
				t.Errorf("%s: option -%c is there twice", c.Names, b)
			}
			seen[b] = true
		}
	}
	for _, r := range c.Refuse {
		if r.Why == "" {
			t.Errorf("%s: want a reason against %s", c.Names, r.Options)
		}
		for _, o := range strings.Fields(r.Options) {
			if !strings.HasPrefix(o, "-") {
				t.Errorf("%s: option %q", c.Names, o)
			}
			if len(o) == 2 && seen[o[1]] {
				t.Errorf("%s: option %s is accepted and refused", c.Names, o)
			}
		}
	}
	for _, s := range c.Sub {
		wholeFlags(t, s)
	}
}
