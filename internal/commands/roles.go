package commands

// ParseRoles gives options' values and operands to what their roles say.
func ParseRoles(c *Call, at Word) {
	cmd := c.Command
	for i := range c.Options {
		o := &c.Options[i]
		if !o.Has {
			continue
		}
		for _, v := range cmd.Values {
			if Listed(v.Options, o.Name) {
				role(c, o.Value, v.Role)
			}
		}
	}
	lead := cmd.Lead
	if len(lead) > 0 && cmd.NoLead != "" {
		for i := range c.Options {
			if Listed(cmd.NoLead, c.Options[i].Name) {
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
		default:
			role(c, w, cmd.Rest)
		}
	}
}

// count judges how many operands there are, where that matters.
func count(c *Call, lead []Role, at Word) {
	cmd := c.Command
	if lenient(cmd) {
		return
	}
	most := cmd.Max
	switch {
	case most == None && len(c.Operands) > 0:
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
		matters := most > 0
		for k := i; k < len(lead); k++ {
			matters = matters || sensitive(lead[k]) || sensitive(cmd.Rest)
		}
		if matters {
			c.Grey(w, "operand-count", "may become more words than one")
			return
		}
	}
}

func sensitive(r Role) bool { return r == Code || r == Write || r == Name }

// wraps finds the command behind a wrapper's own operands.
func wraps(c *Call, lead []Role, at Word) {
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

func role(c *Call, w Word, r Role) {
	switch r {
	case Read:
		c.Read(w)
	case Write:
		c.Write(w)
	case Host:
		c.Host(w)
	case Code:
		if c.Command.Language == nil {
			c.Grey(w, "code-unknown", "is a program in a language that is not known here")
			return
		}
		c.Script(w, c.Command.Language)
	case Name:
		c.Names = append(c.Names, w)
	}
}
