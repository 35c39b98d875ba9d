package cop

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"

	"weir/internal/classify"
)

// Static is the embedded reviewer: deterministic, offline, conservative. It goes by
// the classifier's facts and by indicators.
type Static struct{}

// Review never fails: what it cannot read is flagged.
func (Static) Review(_ context.Context, c Case) (Opinion, error) {
	o, _ := static(c)
	return o, nil
}

// reach is any way out.
const reach = Contact | Send | DNS | Device | NetCode | Install | Outside

// rule flags a case that has an indicator of each set of all. A certain rule stands also against a model's opinion.
type rule struct {
	all     []Indicator
	certain bool
	why     string // of, and what was seen of the first set
}

// rules are tried in order; the first gives the reason. Each asks only for indicators that
// are there, never for one that is not: more indicators never unflag.
var rules = []rule{
	{[]Indicator{ReverseShell}, true, "gives a program or shell to the network"},
	{[]Indicator{Secret, reach | Listen}, true, "something secret-looking together with a way out"},
	{[]Indicator{Device}, true, "opens a connection through a device file"},
	{[]Indicator{Computed, reach}, true, "sends the output of a command, or what looks like encoded data, in what it asks for"},
	{[]Indicator{Encode, Send | DNS | NetCode}, true, "encodes data together with sending"},
	{[]Indicator{Encode, reach}, false, "encodes data together with a way out"},
	{[]Indicator{DNS}, false, "asks for names, which carries data out"},
	{[]Indicator{Send}, false, "sends data out"},
	{[]Indicator{NetCode, Open}, false, "runs code that uses the network"},
	{[]Indicator{OpaqueCode, Contact | Install | Outside}, false, "runs code that cannot be seen, together with a way out"},
	{[]Indicator{Executable, Contact}, false, "makes a file executable together with a way out"},
	{[]Indicator{Install}, false, "installs software from outside"},
	{[]Indicator{Unnamed}, false, "wants to go where its text does not say"},
	{[]Indicator{Contact | Outside, Tainted}, false, "contacts a host outside, from a container that has read a secret"},
	{[]Indicator{Unreadable}, false, "cannot be read"},
}

// static gives the opinion, and whether it stands against a model's.
func static(c Case) (o Opinion, certain bool) {
	s := observe(c)
	for _, r := range rules {
		if !r.met(s.Has) {
			continue
		}
		reason := r.why
		if seen := s.Why(r.all[0]); seen != "" {
			reason += ": " + strings.ToValidUTF8(seen, "?")
		}
		return Opinion{true, reason}, r.certain
	}
	if s.Has&Contact != 0 {
		return Opinion{false, "asks for something outside and is not seen to send anything"}, false
	}
	return Opinion{false, "is not seen to use the network outside this machine"}, false
}

func (r rule) met(has Indicator) bool {
	return !slices.ContainsFunc(r.all, func(set Indicator) bool { return has&set == 0 })
}

// observe gathers the indicators of a case.
func observe(c Case) Indicators {
	var s Indicators
	if c.Command != "" {
		s = Text(c.Command)
	}
	if len(c.Argv) > 0 {
		s.Merge(said(c.Argv, c.Ancestry))
	}
	addDestination(&s, c.Destination) // which nothing above the command explains: that may be about another one (B166)
	for i, p := range c.Ancestry {
		// What a shell was given says what feeds the command; a shell that reads a terminal says nothing.
		if bare := len(p.Argv) < 2; !bare {
			s.Merge(said(p.Argv, c.Ancestry[i+1:]))
		}
	}
	if c.Truncated || c.Command == "" && len(c.Argv) == 0 {
		s.Add(Unreadable, "the command is not all there")
	}
	addFacts(&s, c.Judged)
	if c.Taint.Secret {
		s.Add(Tainted, "")
	}
	return s
}

// said reads the words of a process. What git has fetch and push only fetches where it is seen to be started by a git that does.
func said(argv []string, above []Process) Indicators {
	s := Argv(argv)
	if len(argv) < 2 || !strings.HasPrefix(base(argv[0])+"-"+argv[1], "git-remote-http") || len(above) == 0 || len(above[0].Argv) < 2 {
		return s
	}
	if base(above[0].Argv[0]) == "git" && said(above[0].Argv, above[1:]).Has&(Contact|Send) == Contact {
		s.Has &^= Send
	}
	return s
}

// addFacts adds what the classifier says.
func addFacts(s *Indicators, j classify.Result) {
	f := j.Facts
	read := slices.ContainsFunc(f.Programs, Connects) // then the indicators of the text say more
	known := false
	for _, list := range [][]string{f.Hosts, f.URLs} {
		for _, h := range list {
			host, ok := Host(h)
			if known = true; ok && !Local(host) || !ok && !read {
				s.Add(Contact, h)
			}
		}
	}
	if f.Upload && (s.Has&Contact != 0 || !known && !read) {
		s.Add(Contact|Send, strings.Join(f.Programs, ", "))
	}
	if f.Install && !read {
		s.Add(Install|Contact, strings.Join(f.Programs, ", "))
	}
	for _, name := range f.Encoders {
		if !Knows(name) {
			s.Add(Encode, name)
		}
	}
	for _, list := range [][]string{f.Reads, f.Writes} {
		for _, path := range list {
			if SecretPath(path) {
				s.Add(Secret, path)
			}
		}
	}
	for _, l := range f.Listens {
		s.Add(Listen, l)
	}
	if f.Cut {
		s.Add(Unreadable, "it names more than was looked at")
	}
	for _, r := range j.Reasons {
		if strings.HasPrefix(r.Rule, "limit-") || r.Rule == "truncated" {
			s.Add(Unreadable, r.Text)
		}
	}
}

// addDestination compares where the command wants to go with what its own words name.
func addDestination(s *Indicators, d Destination) {
	if local(d) {
		return
	}
	s.Add(Open, "")
	if d == (Destination{}) {
		return
	}
	where := cmp.Or(d.Name, d.Address.String())
	s.Add(Outside, where)
	named := d.Name == "" && s.Names // a name's address is not known here
	for _, h := range s.Hosts {
		h = strings.TrimSuffix(h, ".")
		a, err := netip.ParseAddr(h)
		named = named || d.Name != "" && strings.EqualFold(h, strings.TrimSuffix(d.Name, ".")) || err == nil && d.Name == "" && a.Unmap() == d.Address.Unmap()
	}
	if !named {
		s.Add(Unnamed, where)
	}
}

// local tells whether a destination is this machine. A name alone does not make it so: the
// container may have written its own hosts file, and choose who is asked for the name (B147).
func local(d Destination) bool {
	a := d.Address.Unmap()
	return a.IsValid() && (LocalAddr(a) || a.IsPrivate() && Local(d.Name))
}
