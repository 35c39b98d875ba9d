package gate

import (
	"cmp"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"weir/internal/event"
	"weir/internal/policy"
)

// Lesson is a line of a policy that would have made an answer needless, with what speaks for it.
type Lesson struct {
	Edit     policy.Edit `json:"edit"`
	Opens    string      `json:"opens"`              // what it newly lets through, for people
	Approved uint64      `json:"approved"`           // times that a person let it through
	Observed uint64      `json:"observed,omitempty"` // times that the mode observe let it through, which nobody approved
	By       []string    `json:"by,omitempty"`       // who approved
	Commands []string    `json:"commands,omitempty"` // some of those that did it
	In       []string    `json:"in,omitempty"`       // some of the containers
	First    time.Time   `json:"first"`
	Last     time.Time   `json:"last"`

	key    string
	denied uint64
}

// Learning reads events for what a policy could have let through by itself. It only suggests what a person has let through, or what the
// mode observe did, and nothing that a person ever denied.
type Learning struct {
	policy  policy.Policy
	replay  *Replay
	lessons map[string]*Lesson
	tainted map[string]map[string][]*taintedBy // by container and bit, since it was cleared last
}

// taintedBy is what a lesson would not have tainted.
type taintedBy struct {
	lesson *Lesson
	event  event.Event
}

// maxLessons bounds how many are kept: who is guarded chooses where it goes.
const maxLessons = 10_000

// NewLearning makes a learning that adds to p.
func NewLearning(p policy.Policy) (*Learning, error) {
	r, err := NewReplay(p)
	if err != nil {
		return nil, err
	}
	return &Learning{policy: p, replay: r, lessons: map[string]*Lesson{}, tainted: map[string]map[string][]*taintedBy{}}, nil
}

// Event takes up one event; they come in the order of the log.
func (l *Learning) Event(e event.Event) {
	switch {
	case e.Container == nil:
	case e.Change != nil:
		l.changed(e)
	case e.Verdict != nil && e.Destination != nil && e.Process != nil:
		l.decided(e)
	}
}

// decided learns from a connection that was let through or denied.
func (l *Learning) decided(e event.Event) {
	v, d := e.Verdict, *e.Destination
	d.Protocol = strings.ToLower(d.Protocol)
	if d.DNS || d.Port == 0 || d.Protocol != policy.TCP && d.Protocol != policy.UDP || l.open(d) {
		return
	}
	approved := e.Kind == event.Verdict && v.Reason == string(Standing) || e.Kind == event.Verdict && v.Reason == string(Approved) && v.From != nil && v.For == ""
	observed := e.Kind == event.Connect && v.Reason == string(Observe)
	denied := e.Kind == event.Verdict && v.Reason == string(Denied) && v.From != nil
	if !approved && !observed && !denied {
		return
	}
	if strings.HasPrefix(d.Name, "*") {
		return // in a policy that is every name below
	}
	to, item := d.Name, []string{"name: " + quoted(d.Name)}
	if to == "" {
		addr, err := netip.ParseAddr(d.Address)
		if err != nil {
			return
		}
		to = addr.Unmap().String()
		item = []string{"prefix: " + quoted(to)}
	}
	item = append(item, "protocol: "+d.Protocol, fmt.Sprint("ports: ", d.Port))
	lesson := l.lesson("allow "+strings.Join(item, " "), policy.Edit{Key: "allow", Add: item}, fmt.Sprintf(
		"every tainted container may send all that it has read to %s, port %d (%s), unasked", event.Visible(to), d.Port, d.Protocol))
	switch {
	case denied:
		lesson.denied++
	case approved:
		lesson.saw(e, v.By)
	default:
		lesson.Observed++
		lesson.seen(e)
	}
}

// open says whether the policy lets a destination through already.
func (l *Learning) open(d event.Destination) bool {
	if d.Name == "" {
		addr, err := netip.ParseAddr(d.Address)
		return err != nil || l.replay.listed(addr.Unmap(), d)
	}
	return slices.ContainsFunc(l.policy.Allow, func(a policy.Allow) bool {
		below, all := strings.CutPrefix(a.Name, "*")
		if a.Name == "" || a.Name != d.Name && !(all && strings.HasSuffix(d.Name, below)) || a.Protocol != policy.Any && a.Protocol != d.Protocol {
			return false
		}
		return len(a.Ports) == 0 || slices.ContainsFunc(a.Ports, func(r policy.PortRange) bool { return r.Low <= d.Port && d.Port <= r.High })
	})
}

// changed learns from taint that a person cleared.
func (l *Learning) changed(e event.Event) {
	for _, bit := range e.Change.Set {
		if lesson := l.source(e, bit); lesson != nil {
			of := l.tainted[e.Container.ID]
			if of == nil {
				of = map[string][]*taintedBy{}
				l.tainted[e.Container.ID] = of
			}
			of[bit] = append(of[bit], &taintedBy{lesson, e})
		}
	}
	for _, bit := range e.Change.Cleared {
		for _, t := range l.tainted[e.Container.ID][bit] {
			t.lesson.saw(t.event, cmp.Or(e.Change.By, e.Change.Source))
		}
		delete(l.tainted[e.Container.ID], bit)
	}
}

// source is the lesson of what tainted; nil: the policy can do nothing about it.
func (l *Learning) source(e event.Event, bit string) *Lesson {
	switch e.Change.Source {
	case "destination":
		word, _, _ := strings.Cut(e.Change.Why, " ")
		addr, err := netip.ParseAddr(word)
		if err != nil || bit != "corruption" || !l.policy.Taint.Untrusted || l.policy.Taint.Trusts(addr) {
			return nil
		}
		text := addr.Unmap().String()
		return l.lesson("trust "+text, policy.Edit{Key: "taint.trusted_networks", Add: []string{quoted(text)}},
			"what "+event.Visible(text)+" answers, on every port, counts as input that nobody else controls")
	case "file":
		i := slices.IndexFunc(l.policy.Taint.SecretFiles, func(f policy.SecretFile) bool { return reads(f, e.Change.Why) })
		if i < 0 || bit != "secret" {
			return nil
		}
		text := l.policy.Taint.SecretFiles[i].Text
		return l.lesson("file "+text, policy.Edit{Key: "taint.secret_files", Remove: text}, "every container may read "+event.Visible(text)+" and send it anywhere")
	}
	return nil
}

// reads says whether a line of secret_files is what an event tells was read, as far as its path says.
func reads(f policy.SecretFile, why string) bool {
	i := strings.Index(why, " /")
	if i < 0 {
		return false
	}
	file := why[i+1:]
	in := func(dir string) bool {
		if f.Dir == "" {
			return true
		}
		homes := []string{f.Dir}
		if rest, ok := strings.CutPrefix(f.Dir, policy.Home); ok {
			homes = []string{"/root" + rest, "/home/*" + rest}
		}
		return slices.ContainsFunc(homes, func(pattern string) bool { ok, err := path.Match(pattern, dir); return ok && err == nil })
	}
	if f.Name != "" {
		ok, err := path.Match(f.Name, path.Base(file))
		return ok && err == nil && in(path.Dir(file))
	}
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if in(dir) {
			return true
		}
		if dir == "/" || dir == "." {
			return false
		}
	}
}

func (l *Learning) lesson(key string, edit policy.Edit, opens string) *Lesson {
	lesson := l.lessons[key]
	if lesson == nil && len(l.lessons) >= maxLessons {
		return &Lesson{} // it is not told
	}
	if lesson == nil {
		lesson = &Lesson{Edit: edit, Opens: opens, key: key}
		l.lessons[key] = lesson
	}
	return lesson
}

// saw notes that a person let it through.
func (l *Lesson) saw(e event.Event, by string) {
	l.Approved++
	l.By = few(l.By, by)
	l.seen(e)
}

func (l *Lesson) seen(e event.Event) {
	if l.First.IsZero() {
		l.First = e.Time
	}
	l.Last = e.Time
	l.In = few(l.In, cmp.Or(e.Container.Name, e.Container.ID))
	if e.Process != nil {
		l.Commands = few(l.Commands, event.Command(e.Process.Argv, 60, 120))
	}
}

// few adds a word to a few different ones.
func few(list []string, word string) []string {
	if word == "" || len(list) == 3 || slices.Contains(list, word) {
		return list
	}
	return append(list, word)
}

// quoted is a text in a policy file.
func quoted(s string) string { return fmt.Sprintf("%q", s) }

// Lessons are what was learned, of what was let through at least so often: what was approved most first. left are those that a person
// denied as well, and taint that is not cleared, which are not suggested.
func (l *Learning) Lessons(least uint64) (all []Lesson, left int) {
	open := map[*Lesson]bool{}
	for _, of := range l.tainted {
		for _, list := range of {
			for _, t := range list {
				open[t.lesson] = true
			}
		}
	}
	for _, lesson := range l.lessons {
		switch {
		case lesson.denied > 0, open[lesson]:
			left++
		case lesson.Approved+lesson.Observed >= max(least, 1):
			all = append(all, *lesson)
		}
	}
	slices.SortFunc(all, func(a, b Lesson) int {
		return cmp.Or(cmp.Compare(a.Edit.Key, b.Edit.Key), cmp.Compare(b.Approved, a.Approved), cmp.Compare(b.Observed, a.Observed), strings.Compare(a.key, b.key))
	})
	return all, left
}
