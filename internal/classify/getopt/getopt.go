package getopt

import (
	"strings"

	"weir/internal/classify/rules"
	"weir/internal/classify/table"
)

// Arity is whether an option takes a value.
type Arity uint8

const (
	Refused  Arity = iota // is not accepted
	Flag                  // takes no value
	Value                 // takes one, glued or as the next word
	Optional              // takes one that is glued
)

// Split tells a call's options from its operands, as getopt_long does.
func Split(c *table.Call, at table.Word) {
	cmd := c.Command
	// A wrapper and a command with subcommands stop at their first operand.
	stop := cmd.Stop || cmd.Wraps || cmd.Sub != nil
	for i := 0; i < len(c.Words); i++ {
		w := c.Words[i]
		switch {
		case w.Fixed && (len(w.Text) < 2 || w.Text[0] != '-'), !w.Fixed && !w.MayBeOption():
			if stop {
				c.Operands = append(c.Operands, c.Words[i:]...)
				return
			}
			c.Operands = append(c.Operands, w)
		case w.Is("--"):
			c.Operands = append(c.Operands, c.Words[i+1:]...)
			return
		case !w.Fixed && len(w.Text) < 2, !w.Fixed && w.Text == "--":
			if stop && !cmd.AnyArgs || !lenient(cmd) {
				c.Grey(w, "word-unknown", "may become an option that is not known")
			}
			c.Operands = append(c.Operands, w)
		case strings.HasPrefix(w.Text, "--") || cmd.OneDash && dashed(cmd, w):
			i = long(c, i)
		default:
			i = short(c, i)
		}
	}
}

// lenient tells whether a command's words are read for facts only.
func lenient(cmd *table.Command) bool { return cmd.AnyArgs || cmd.Class == table.Network }

// dashed tells whether a word is a long option with one dash.
func dashed(cmd *table.Command, w table.Word) bool {
	name, _, _ := strings.Cut(w.Text[1:], "=")
	return longArity(cmd.Long, name) != Refused
}

// long reads the option at word i, and gives the index of the last word it takes.
func long(c *table.Call, i int) int {
	cmd, w := c.Command, c.Words[i]
	body := strings.TrimPrefix(w.Text[1:], "-")
	name, _, glued := strings.Cut(body, "=")
	if !w.Fixed && !glued {
		if !lenient(cmd) {
			c.Grey(w, "word-unknown", "may become an option that is not known")
		}
		return i
	}
	full, a, refusal := resolve(cmd, name)
	if a == Refused {
		if !lenient(cmd) {
			refuse(c, w, refusal)
		}
		return i
	}
	o := table.Option{Name: "--" + full, Word: w}
	switch {
	case glued:
		if a == Flag && !lenient(cmd) {
			c.Grey(w, "option-unknown", "this option takes no value")
			return i
		}
		o.Value, o.Has = w.At(strings.IndexByte(w.Text, '=')+1), true
		tail(c, w)
	case a == Value:
		if i+1 >= len(c.Words) {
			return i
		}
		i++
		o.Value, o.Has = c.Words[i], true
		whole(c, c.Words[i])
	}
	c.Options = append(c.Options, o)
	return i
}

// tail judges a word that is glued to an option: where it is split, the rest is words
// of their own.
func tail(c *table.Call, w table.Word) {
	if w.Split && !lenient(c.Command) {
		c.Grey(w, "word-unknown", "may become more words, which are not known")
	}
}

// whole judges a word that is an option's value: it has to be one.
func whole(c *table.Call, w table.Word) {
	if w.Many() && !lenient(c.Command) {
		c.Grey(w, "word-unknown", "may become more words than one")
	}
}

func refuse(c *table.Call, w table.Word, r *table.Refusal) {
	if r == nil {
		c.Grey(w, "option-unknown", "this option is not known to be harmless")
		return
	}
	if r.Class == table.Network {
		c.Network(w, "option-Refused", r.Why)
		return
	}
	c.Grey(w, "option-Refused", r.Why)
}

// resolve finds a long option by its name or, unless the command is exact, by a prefix
// that no other has.
func resolve(cmd *table.Command, name string) (string, Arity, *table.Refusal) {
	for i := range cmd.Refuse {
		r := &cmd.Refuse[i]
		for o := range strings.FieldsSeq(r.Options) {
			if l, ok := strings.CutPrefix(o, "--"); ok && strings.TrimRight(l, "=?") == name {
				return "", Refused, r
			}
		}
	}
	if a := longArity(cmd.Long, name); a != Refused {
		return name, a, nil
	}
	if cmd.Exact || cmd.OneDash || name == "" {
		return "", Refused, nil
	}
	full, a, n := "", Refused, 0
	for o := range strings.FieldsSeq(cmd.Long) {
		if strings.HasPrefix(o, name) {
			full, n = strings.TrimRight(o, "=?"), n+1
			a = arityOf(o)
		}
	}
	for i := range cmd.Refuse {
		r := &cmd.Refuse[i]
		for o := range strings.FieldsSeq(r.Options) {
			if strings.HasPrefix(o, "--") && strings.HasPrefix(o[2:], name) {
				return "", Refused, r
			}
		}
	}
	if n != 1 {
		return "", Refused, nil
	}
	return full, a, nil
}

// longArity finds an option in a list as "all lines= color=?".
func longArity(list, name string) Arity {
	for name != "" {
		i := strings.Index(list, name)
		if i < 0 {
			return Refused
		}
		end := i + len(name)
		if (i == 0 || list[i-1] == ' ') && (end == len(list) || list[end] == ' ' || list[end] == '=') {
			one := list[i:]
			if k := strings.IndexByte(one, ' '); k >= 0 {
				one = one[:k]
			}
			return arityOf(one)
		}
		list = list[end:]
	}
	return Refused
}

func arityOf(o string) Arity {
	switch {
	case strings.HasSuffix(o, "=?"):
		return Optional
	case strings.HasSuffix(o, "="):
		return Value
	}
	return Flag
}

// ShortArity finds an option in a list as "an:c::".
func ShortArity(list string, c byte) Arity {
	i := strings.IndexByte(list, c)
	switch {
	case i < 0 || c == ':':
		return Refused
	case strings.HasPrefix(list[i+1:], "::"):
		return Optional
	case strings.HasPrefix(list[i+1:], ":"):
		return Value
	}
	return Flag
}

// short reads the cluster at word i, and gives the index of the last word it takes.
func short(c *table.Call, i int) int {
	cmd, w := c.Command, c.Words[i]
	if cmd.Number && w.Fixed && rules.Digits(w.Text[1:]) {
		c.Options = append(c.Options, table.Option{Name: "-0", Value: w.At(1), Has: true, Word: w})
		return i
	}
	for k := 1; k < len(w.Text); k++ {
		ch := w.Text[k]
		if r := refusedShort(cmd, ch); r != nil && !lenient(cmd) {
			refuse(c, w, r)
			return i
		}
		o := table.Option{Name: shortName(ch), Word: w}
		a := ShortArity(cmd.Short, ch)
		switch a {
		case Refused:
			if lenient(cmd) {
				continue
			}
			refuse(c, w, nil)
			return i
		case Value, Optional:
			switch {
			case k+1 < len(w.Text) || !w.Fixed:
				o.Value, o.Has = w.At(k+1), true
				tail(c, w)
				if k+1 == len(w.Text) && !lenient(cmd) {
					c.Grey(w, "word-unknown", "if this is empty, the option takes the next word")
				}
			case a == Value && i+1 < len(c.Words):
				i++
				o.Value, o.Has = c.Words[i], true
				whole(c, c.Words[i])
			}
			c.Options = append(c.Options, o)
			return i
		}
		c.Options = append(c.Options, o)
	}
	if !w.Fixed && !lenient(cmd) {
		c.Grey(w, "word-unknown", "may become an option that is not known")
	}
	return i
}

const shortNames = "-!-\"-#-$-%-&-'-(-)-*-+-,---.-/-0-1-2-3-4-5-6-7-8-9-:-;-<-=->-?-@-A-B-C-D-E-F-G-H-I-J-K-L-M-N-O-P-Q-R-S-T-U-V-W-X-Y-Z-[-\\-]-^-_-`-a-b-c-d-e-f-g-h-i-j-k-l-m-n-o-p-q-r-s-t-u-v-w-x-y-z"

// shortName gives "-c" without making a string.
func shortName(c byte) string {
	if i := 2 * (int(c) - '!'); i >= 0 && i+2 <= len(shortNames) {
		return shortNames[i : i+2]
	}
	return "-?"
}

func refusedShort(cmd *table.Command, ch byte) *table.Refusal {
	for i := range cmd.Refuse {
		if rules.Listed(cmd.Refuse[i].Options, shortName(ch)) {
			return &cmd.Refuse[i]
		}
	}
	return nil
}

// Roles gives options' values and operands to what their roles say.
func Roles(c *table.Call, at table.Word) {
	cmd := c.Command
	for i := range c.Options {
		o := &c.Options[i]
		if !o.Has {
			continue
		}
		for _, v := range cmd.Values {
			if rules.Listed(v.Options, o.Name) {
				role(c, o.Value, v.Role)
			}
		}
	}
	lead := cmd.Lead
	if len(lead) > 0 && cmd.NoLead != "" {
		for i := range c.Options {
			if rules.Listed(cmd.NoLead, c.Options[i].Name) {
				lead = lead[1:]
				break
			}
		}
	}
	if cmd.Wraps {
		wraps(c, lead, at)
		return
	}
	count(c, lead, at)
	for i, w := range c.Operands {
		switch {
		case i < len(lead):
			role(c, w, lead[i])
		case cmd.Last != table.Data && i == len(c.Operands)-1 && i > 0:
			role(c, w, cmd.Last)
			if cmd.Last == table.Write {
				into(c, w)
			}
		default:
			role(c, w, cmd.Rest)
		}
	}
}

// count judges how many operands there are, where that matters.
func count(c *table.Call, lead []table.Role, at table.Word) {
	cmd := c.Command
	if lenient(cmd) {
		return
	}
	most := cmd.Max
	switch {
	case most == table.None && len(c.Operands) > 0:
		c.Grey(c.Operands[0], "operand-count", "takes no operand here")
		return
	case most > 0 && len(c.Operands) > most:
		c.Grey(c.Operands[most], "operand-count", "has more operands than are known to be harmless")
		return
	}
	for i, w := range c.Operands {
		if !w.Many() {
			continue
		}
		// How many words this becomes is not known, and so the roles of those behind it.
		matters := most > 0 || sensitive(cmd.Last)
		for k := i; k < len(lead); k++ {
			matters = matters || sensitive(lead[k]) || sensitive(cmd.Rest)
		}
		if matters {
			c.Grey(w, "operand-count", "may become more words than one")
			return
		}
	}
}

func sensitive(r table.Role) bool { return r == table.Code || r == table.Write || r == table.Name }

// into judges the files that appear in a directory that is the last operand (cp a b dir).
func into(c *table.Call, dir table.Word) {
	for _, w := range c.Operands[:len(c.Operands)-1] {
		base := strings.TrimRight(w.Text, "/")
		base = base[strings.LastIndexByte(base, '/')+1:]
		if w.Fixed && base != "" && base != "." && base != ".." && dir.Fixed {
			if rules.Protected(base) {
				c.Write(table.Word{Text: strings.TrimRight(dir.Text, "/") + "/" + base, Fixed: true, Offset: w.Offset, Length: w.Length})
			}
			continue
		}
		c.Grey(w, "redirect-write", "writes files whose names are not known")
	}
}

// wraps finds the command behind a wrapper's own operands.
func wraps(c *table.Call, lead []table.Role, at table.Word) {
	n := len(lead)
	for i, w := range c.Operands {
		if i == n {
			break
		}
		if w.Many() {
			c.Grey(w, "operand-count", "may become more words than one")
			return
		}
		role(c, w, lead[i])
	}
	if len(c.Operands) > n {
		c.Run(c.Operands[n:])
	} else if !c.Command.Bare {
		c.Grey(at, "word-unknown", "the command that it runs is missing")
	}
}

func role(c *table.Call, w table.Word, r table.Role) {
	switch r {
	case table.Read:
		c.Read(w)
	case table.Write:
		c.Write(w)
	case table.Host:
		c.Host(w)
	case table.Code:
		if c.Command.Language == nil {
			c.Grey(w, "code-unknown", "is a program in a language that is not known here")
			return
		}
		c.Script(w, c.Command.Language)
	case table.Name:
		if !w.Fixed || !rules.Assignable(w.Text) {
			c.Grey(w, "assign", "is not the plain name of a harmless variable")
		}
	}
}
