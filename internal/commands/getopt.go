package commands

import "strings"

// Arity is whether an option takes a value.
type Arity uint8

const (
	Refused    Arity = iota // is not accepted
	Flag                    // takes no value
	TakesValue              // takes one, glued or as the next word
	Optional                // takes one that is glued
)

// ParseSplit tells a call's options from its operands, as getopt_long does.
func ParseSplit(c *Call, at Word) {
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
			if stop && !cmd.Any || !lenient(cmd) {
				c.Grey(w, "word-unknown", "may become an option that is not known")
			}
			c.Operands = append(c.Operands, w)
		case strings.HasPrefix(w.Text, "--"):
			i = long(c, i)
		default:
			i = short(c, i)
		}
	}
}

// lenient tells whether a command's words are read for facts only.
func lenient(cmd *Command) bool { return cmd.Any || cmd.Class == Network }

// long reads the option at word i, and gives the index of the last word it takes.
func long(c *Call, i int) int {
	cmd, w := c.Command, c.Words[i]
	body := w.Text[2:]
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
			return i
		}
		full, a = name, Flag
	}
	o := Option{Name: "--" + full, Word: w}
	switch {
	case glued:
		if a == Flag && !lenient(cmd) {
			c.Grey(w, "option-unknown", "this option takes no value")
			return i
		}
		o.Value, o.Has = w.At(strings.IndexByte(w.Text, '=')+1), true
		tail(c, w)
	case a == TakesValue:
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
func tail(c *Call, w Word) {
	if w.Split && !lenient(c.Command) {
		c.Grey(w, "word-unknown", "may become more words, which are not known")
	}
}

// whole judges a word that is an option's value: it has to be one.
func whole(c *Call, w Word) {
	if w.Many() && !lenient(c.Command) {
		c.Grey(w, "word-unknown", "may become more words than one")
	}
}

func refuse(c *Call, w Word, r *Refusal) {
	if r == nil {
		c.Grey(w, "option-unknown", "this option is not known to be harmless")
		return
	}
	if r.Class == Network {
		c.Network(w, "option-refused", r.Why)
		return
	}
	c.Grey(w, "option-refused", r.Why)
}

// resolve finds a long option by its name or, unless the command is exact, by a prefix
// that no other has.
func resolve(cmd *Command, name string) (string, Arity, *Refusal) {
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
	if cmd.Exact || name == "" {
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
		return TakesValue
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
		return TakesValue
	}
	return Flag
}

// short reads the cluster at word i, and gives the index of the last word it takes.
func short(c *Call, i int) int {
	cmd, w := c.Command, c.Words[i]
	if cmd.Number && w.Fixed && Digits(w.Text[1:]) {
		c.Options = append(c.Options, Option{Name: "-0", Value: w.At(1), Has: true, Word: w})
		return i
	}
	for k := 1; k < len(w.Text); k++ {
		ch := w.Text[k]
		if r := refusedShort(cmd, ch); r != nil && !lenient(cmd) {
			refuse(c, w, r)
			return i
		}
		o := Option{Name: shortName(ch), Word: w}
		a := ShortArity(cmd.Short, ch)
		switch a {
		case Refused:
			if !lenient(cmd) {
				refuse(c, w, nil)
				return i
			}
		case TakesValue, Optional:
			switch {
			case k+1 < len(w.Text) || !w.Fixed:
				o.Value, o.Has = w.At(k+1), true
				tail(c, w)
				if k+1 == len(w.Text) && !lenient(cmd) {
					c.Grey(w, "word-unknown", "if this is empty, the option takes the next word")
				}
			case a == TakesValue && i+1 < len(c.Words):
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

func refusedShort(cmd *Command, ch byte) *Refusal {
	for i := range cmd.Refuse {
		if Listed(cmd.Refuse[i].Options, shortName(ch)) {
			return &cmd.Refuse[i]
		}
	}
	return nil
}
