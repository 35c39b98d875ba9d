package console

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/show"
)

// The page's state. Every text is visible (B51) before it leaves this program; the page only ever makes text of it.
type (
	state struct {
		Error      string      `json:"error,omitempty"` // the sensor cannot be asked
		Status     string      `json:"status"`
		Looks      bool        `json:"looks,omitempty"` // and may not answer
		Warnings   []string    `json:"warnings,omitempty"`
		Containers []container `json:"containers"`
		Groups     [][]asked   `json:"groups"` // of one program about one destination
		Approvals  []approval  `json:"approvals"`
	}
	container struct {
		Ref       string   `json:"ref"` // as the sensor knows it; never shown
		Name      string   `json:"name"`
		ID        string   `json:"id"`
		Of        string   `json:"of"` // its pod, image or runtime
		State     string   `json:"state"`
		Taint     []string `json:"taint"`
		Since     string   `json:"since"`
		By        string   `json:"by"`
		Cgroup    string   `json:"cgroup"`
		Grants    []string `json:"grants"`
		Questions int      `json:"questions"`
	}
	asked struct {
		ID        string    `json:"id"`
		Container string    `json:"container"`
		Subject   string    `json:"subject"`
		Text      string    `json:"text"`
		Shown     string    `json:"shown"` // digest of the text
		Askers    string    `json:"askers"`
		Asked     time.Time `json:"asked"`
		Deadline  time.Time `json:"deadline"`
		Scopes    []string  `json:"scopes"` // who an approval can let out
		Lasting   bool      `json:"lasting"`
		Narrowest int       `json:"narrowest"` // scope from which one that goes on can be given; 0: from none
	}
	approval struct {
		ID     string    `json:"id"`
		Covers string    `json:"covers"`
		Uses   uint64    `json:"uses"`
		Left   string    `json:"left"`
		By     string    `json:"by"`
		Until  time.Time `json:"until,omitzero"`
	}
)

// word is what a container chose, quoted so that it cannot pose as another part of the page.
func word(s string) string { return event.Command([]string{s}, 0, 0) }

func (c *Console) view(st control.Status, list []control.Container, pending []gate.Question, lasting []gate.StandingApproval) state {
	s := state{
		Status:     event.Visible(fmt.Sprintf("%s, weir %s", st.Mode, st.Version)),
		Containers: []container{}, Groups: [][]asked{}, Approvals: []approval{},
	}
	if st.Refused != nil {
		s.Warnings = append(s.Warnings, "the policy file is refused, and the policy before it stays in force: "+event.Visible(strings.Join(st.Refused.Why, "; ")))
	}
	for _, d := range st.Degraded {
		s.Warnings = append(s.Warnings, event.Visible(d))
	}
	waits := map[string]int{}
	for _, q := range pending {
		waits[q.Container.ID]++
	}
	for _, k := range list {
		v := container{
			Ref: k.ID, Name: word(cmp.Or(k.Name, k.ID)), ID: word(k.ID), State: "ended", Taint: []string{}, Cgroup: word(k.Cgroup), Grants: []string{}, Questions: waits[k.ID],
		}
		if of := cmp.Or(k.Pod, k.Image, k.Runtime); of != "" {
			v.Of = word(of)
		}
		if k.Live {
			v.State = "live"
		}
		for _, bit := range k.Taint {
			v.Taint = append(v.Taint, event.Visible(bit))
		}
		if !k.Since.IsZero() {
			v.Since, v.By = show.Time(k.Since), event.Visible(k.By)
		}
		for _, g := range k.Grants {
			v.Grants = append(v.Grants, event.Visible(c.o.Grant(g)))
		}
		s.Containers = append(s.Containers, v)
	}
	for _, group := range gate.Groups(pending) {
		var rows []asked
		for _, q := range group {
			rows = append(rows, question(q))
		}
		s.Groups = append(s.Groups, rows)
	}
	for _, a := range lasting {
		s.Approvals = append(s.Approvals, approval{
			ID: event.Visible(a.ID), Covers: show.Covered(a), Uses: a.Uses, Left: fmt.Sprintf("%d of %d bytes", a.Left, a.Bytes), By: event.Visible(a.By), Until: a.Until,
		})
	}
	return s
}

func question(q gate.Question) asked {
	text := show.Question(q)
	v := asked{
		ID: event.Visible(q.ID), Container: word(cmp.Or(q.Container.Name, q.Container.ID)), Subject: show.Subject(q), Text: text, Shown: gate.Digest(text),
		Askers: strings.TrimSpace(show.Askers(q)), Asked: q.Asked, Deadline: q.Deadline, Scopes: []string{},
	}
	for i, m := range q.Chain {
		if len(q.Chain) > 1 && i < 9 {
			v.Scopes = append(v.Scopes, fmt.Sprintf("%s (pid %d)", m.Command(0, 0), m.PID))
		}
	}
	for n := len(q.Chain); n > 0; n-- {
		if _, err := q.StandingBy(gate.Reply{Allow: true, For: gate.ForSession, Scope: n}); err == nil {
			v.Narrowest = n
		}
	}
	_, err := q.StandingBy(gate.Reply{Allow: true, For: gate.ForSession, Who: gate.WhoContainer})
	v.Lasting = err == nil || v.Narrowest > 0
	return v
}
