package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// object is a JSON object that is being written, with the tags of Event and of what it holds. Empty values are left out where a tag
// says so, by the methods without an x. encoding/json does the same by reflection, for five times the instructions; a test compares both.
type object []byte

func (o *object) key(name string) {
	if last := (*o)[len(*o)-1]; last != '{' {
		*o = append(*o, ',')
	}
	*o = append(append(append(*o, '"'), name...), '"', ':')
}

func (o *object) text(name, value string) {
	if value != "" {
		o.xtext(name, value)
	}
}

func (o *object) xtext(name, value string) {
	o.key(name)
	*o = appendText(*o, value)
}

func (o *object) texts(name string, all []string) {
	if len(all) == 0 {
		return
	}
	o.key(name)
	*o = append(*o, '[')
	for i, s := range all {
		if i > 0 {
			*o = append(*o, ',')
		}
		*o = appendText(*o, s)
	}
	*o = append(*o, ']')
}

func (o *object) number(name string, value uint64) {
	if value != 0 {
		o.xnumber(name, value)
	}
}

func (o *object) xnumber(name string, value uint64) {
	o.key(name)
	*o = strconv.AppendUint(*o, value, 10)
}

func (o *object) xint(name string, value int) {
	o.key(name)
	*o = strconv.AppendInt(*o, int64(value), 10)
}

func (o *object) yes(name string, value bool) {
	if value {
		o.key(name)
		*o = append(*o, "true"...)
	}
}

func (o *object) begin(name string) {
	o.key(name)
	*o = append(*o, '{')
}

func (o *object) end() { *o = append(*o, '}') }

// rare writes what few events have.
func (o *object) rare(name string, value any) error {
	line, err := marshal(value)
	if err != nil {
		return err
	}
	o.key(name)
	*o = append(*o, line...)
	return nil
}

// appendText writes a string as encoding/json does without its escapes for HTML, and with escapes for whatever does not print.
func appendText(to []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			line, _ := marshal(s) // a string has no error
			return append(to, line...)
		}
	}
	return append(append(append(to, '"'), s...), '"')
}

// marshal is encoding/json's.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return escapeJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// appendEvent writes e as one JSON object: by hand what is told of each execution and connect, and by encoding/json an event with more.
func appendEvent(to []byte, e *Event) ([]byte, error) {
	more := *e
	more.Time, more.Kind, more.Container, more.Process, more.Destination = time.Time{}, "", nil, nil, nil
	more.Hook, more.Question, more.Verdict, more.Mode, more.Command, more.Message = "", "", nil, "", "", ""
	if more != (Event{}) {
		line, err := marshal(e)
		return append(to, line...), err
	}
	o := object(append(to, '{'))
	o.key("time")
	o = append(o, '"')
	if year := e.Time.Year(); year < 0 || year > 9999 {
		return to, fmt.Errorf("encode event: its year is %d", year)
	}
	o = append(e.Time.AppendFormat(o, time.RFC3339Nano), '"')
	o.xtext("kind", string(e.Kind))
	if c := e.Container; c != nil {
		o.container(c)
	}
	if p := e.Process; p != nil {
		o.process(p)
	}
	if d := e.Destination; d != nil {
		o.begin("destination")
		o.xtext("address", d.Address)
		o.number("port", uint64(d.Port))
		o.xtext("protocol", d.Protocol)
		o.yes("dns", d.DNS)
		o.text("name", d.Name)
		o.end()
	}
	o.text("hook", e.Hook)
	o.text("question", e.Question)
	if v := e.Verdict; v != nil {
		if err := o.verdict(v); err != nil {
			return to, err
		}
	}
	o.text("mode", e.Mode)
	o.text("command", e.Command)
	o.text("message", e.Message)
	o.end()
	return o, nil
}

func (o *object) container(c *Container) {
	o.begin("container")
	o.xtext("id", c.ID)
	o.text("name", c.Name)
	o.text("cgroup", c.Cgroup)
	o.number("cgroup_id", c.CgroupID)
	o.texts("taint", c.Taint)
	o.text("runtime", c.Runtime)
	o.text("namespace", c.Namespace)
	o.text("runtime_id", c.RuntimeID)
	o.text("image", c.Image)
	o.text("pod", c.Pod)
	o.text("pod_namespace", c.PodNamespace)
	o.text("pod_uid", c.PodUID)
	o.end()
}

func (o *object) process(p *Process) {
	o.begin("process")
	o.xint("pid", p.PID)
	o.xnumber("start", p.Start)
	o.xnumber("uid", uint64(p.UID))
	o.text("comm", p.Comm)
	if f := p.Exe; f != nil {
		o.begin("exe")
		o.xtext("path", f.Path)
		o.xnumber("device", f.Device)
		o.xnumber("inode", f.Inode)
		o.yes("memfd", f.Memfd)
		o.yes("deleted", f.Deleted)
		o.end()
	}
	o.texts("argv", p.Argv)
	o.yes("argv_truncated", p.Truncated)
	o.yes("argv_claimed", p.Claimed)
	if p.ArgvHash != 0 {
		o.key("argv_hash")
		*o = append(strconv.AppendUint(append(*o, '"'), p.ArgvHash, 10), '"')
	}
	o.text("script", p.Script)
	o.text("interpreter", p.Interp)
	o.texts("env", p.Env)
	o.yes("env_truncated", p.EnvCut)
	o.text("cwd", p.Dir)
	o.text("cgroup", p.Cgroup)
	if len(p.Ancestry) > 0 {
		o.key("ancestry")
		*o = append(*o, '[')
		for i, a := range p.Ancestry {
			if i > 0 {
				*o = append(*o, ',')
			}
			*o = append(*o, '{')
			o.xint("pid", a.PID)
			o.xnumber("start", a.Start)
			o.xtext("comm", a.Comm)
			o.texts("argv", a.Argv)
			o.text("exe", a.Exe)
			o.yes("inside", a.Inside)
			o.end()
		}
		*o = append(*o, ']')
	}
	o.number("netns", p.NetNS)
	o.number("pidns", p.PidNS)
	o.end()
}

func (o *object) verdict(v *Decision) error {
	if v.Scope != 0 || v.Process != nil || v.For != "" || v.Why != "" || v.From != nil || v.Shown != nil { // of a person
		return o.rare("verdict", v)
	}
	o.begin("verdict")
	o.xtext("decision", v.Decision)
	o.xtext("reason", v.Reason)
	o.text("text", v.Text)
	o.text("by", v.By)
	o.text("class", v.Class)
	o.text("judged", v.Judged)
	o.text("failed", v.Failed)
	o.text("tool", v.Tool)
	o.text("rule", v.Rule)
	o.end()
	return nil
}
