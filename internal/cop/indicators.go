package cop

import (
	"math/bits"
	"net/netip"
	"net/url"
	"strings"

	"weir/internal/commands"
	"weir/internal/linux"
)

// Indicator is a set of observations.
type Indicator uint32

const (
	Contact      Indicator = 1 << iota // a program that uses the network, with a host outside or an unknown one
	Computed                           // what it sends or asks for is the output of a command
	Send                               // data is sent: uploads, pushes, two-way connections
	DNS                                // names are asked for
	Device                             // /dev/tcp, /dev/udp or awk's /inet
	ReverseShell                       // a program or shell is connected to the network
	NetCode                            // code for an interpreter that uses the network
	OpaqueCode                         // code runs that stands nowhere: from input, from a command
	Shell                              // a shell runs
	Pipe                               // a named pipe is made
	Install                            // software is fetched
	Encode                             // data is made to look different
	Secret                             // a secret-looking file, variable or the whole environment
	Listen                             // something listens
	Executable                         // a file is made executable
	Unreadable                         // not a text that could be read

	// Never seen in a text: what a case adds.
	Outside // it wants to go to a host outside
	Unnamed // that its texts do not name
	Open    // it is not known to want to go to this machine only
	Tainted // the container has read a secret
	count   = iota
)

// Indicators is what was seen in a command. The zero value is nothing.
type Indicators struct {
	Has Indicator
	// Hosts are the hosts outside that are named, at most maxHosts; Names tells
	// that one of them is a name and not an address.
	Hosts []string
	Names bool

	why [count]string
}

const maxHosts = 64

// Add notes an indicator. What is first said of it is kept.
func (s *Indicators) Add(indicator Indicator, why string) {
	s.Has |= indicator
	for b := indicator; b != 0; b &= b - 1 {
		if i := bits.TrailingZeros32(uint32(b)); s.why[i] == "" {
			s.why[i] = clip(why)
		}
	}
}

// Why tells what was seen of the first indicator of a set.
func (s *Indicators) Why(indicator Indicator) string {
	for b := indicator & s.Has; b != 0; b &= b - 1 {
		return s.why[bits.TrailingZeros32(uint32(b))]
	}
	return ""
}

// Merge adds what was seen elsewhere.
func (s *Indicators) Merge(o Indicators) {
	for i, why := range o.why {
		if indicator := Indicator(1 << i); o.Has&indicator != 0 {
			s.Add(indicator, why)
		}
	}
	for _, h := range o.Hosts {
		s.AddHost(h)
	}
}

// AddHost notes a host outside.
func (s *Indicators) AddHost(host string) {
	if _, err := netip.ParseAddr(host); err != nil {
		s.Names = true
	}
	if len(s.Hosts) < maxHosts {
		s.Hosts = append(s.Hosts, clip(host))
	}
}

// Local tells whether a host, as a command writes it, is this machine (G12).
func Local(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if linux.LocalName(host) {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && LocalAddr(a)
}

// LocalAddr tells whether an address is this machine's.
func LocalAddr(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsUnspecified()
}

// Host gives the host of a URL, of host:port or of user@host; false when it cannot be told.
func Host(s string) (string, bool) {
	if i := strings.Index(s, "://"); i >= 0 {
		u, err := url.Parse(strings.ReplaceAll(s[:authority(s, i+3)], hole, "%00"))
		if err != nil || u.Hostname() == "" || strings.ContainsAny(u.Hostname(), hole+"\x00%\\ ") || strings.ContainsAny(s[i:], "\\") {
			return "", false
		}
		return u.Hostname(), true
	}
	s = commands.HostPart(s[:authority(s, 0)])
	return s, s != "" && !strings.ContainsAny(s, hole+"\\ ")
}

// authority tells where the part of a URL that names the host ends.
func authority(s string, from int) int {
	if i := strings.IndexAny(s[from:], "/?#"); i >= 0 {
		return from + i
	}
	return len(s)
}

func clip(s string) string {
	const most = 80
	s = strings.ReplaceAll(s, hole, "…")
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
