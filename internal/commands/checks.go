package commands

import "strings"

// checkDate accepts formats alone as operands.
func checkDate(c *Call) {
	for _, w := range c.Operands {
		if !strings.HasPrefix(w.Text, "+") || w.Split {
			c.Grey(w, "date-sets", "an operand without + sets the clock")
		}
	}
}

// checkInstall notes that something is installed, by the subcommand or its option.
func checkInstall(c *Call) {
	for _, w := range c.Words {
		if Listed("install i add get ci update upgrade dist-upgrade full-upgrade sync require reinstall download tool run exec create in -S -Sy -Syu -i -U --add", w.Text) {
			c.Flags |= Install
			return
		}
	}
	if Listed("npx uvx pnpx bunx easy_install debootstrap", c.Name) || len(c.Words) == 0 {
		c.Flags |= Install
	}
}

// checkDpkg tells the uses of dpkg and dpkg-query that only read the database: where their output surely goes to no terminal, they start no pager.
func checkDpkg(c *Call) {
	lists := "-l -L -s -S -p --list --listfiles --status --search --print-avail"
	switch c.Name {
	case "dpkg":
		lists += " --get-selections"
	case "dpkg-query":
		lists += " -W --show"
	default:
		return
	}
	if !c.Piped || len(c.Words) == 0 || !c.Words[0].Fixed || !Listed(lists, c.Words[0].Text) {
		return
	}
	for _, w := range c.Words[1:] {
		if !w.Fixed && w.Text == "" || strings.HasPrefix(w.Text, "-") && !(w.Fixed && c.Name == "dpkg-query" && (strings.HasPrefix(w.Text, "-f") || strings.HasPrefix(w.Text, "--showformat"))) {
			return
		}
	}
	c.Become(Local)
}

// LoneOptions are the options that make a program print something and end when they are all that it is given, by its name with # for a version.
func LoneOptions() map[string]string { return known().alone }

// Alone says whether the one word that a program is given makes it print something and end.
func (c *Call) Alone() bool {
	if len(c.Words) != 1 || !c.Words[0].Fixed {
		return false
	}
	k := known()
	options := k.alone[c.Name]
	if options == "" {
		options = k.alone[strings.TrimRight(c.Name, "0123456789.-")+"#"]
	}
	return Listed(options, c.Words[0].Text)
}

// fileNameOptions are options of shopt that change what patterns match.
var fileNameOptions = Names("nullglob dotglob globstar failglob nocaseglob nocasematch inherit_errexit globasciiranges")

func checkShopt(c *Call) {
	_, sets := c.Option("-s")
	if _, clears := c.Option("-u"); !sets && !clears {
		return
	}
	for _, w := range c.Operands {
		// extglob is off in a shell that runs commands, so that turning it off changes nothing.
		if !w.Fixed || !fileNameOptions[w.Text] && (sets || w.Text != "extglob" && w.Text != "expand_aliases") {
			c.Grey(w, "option-unknown", "this option of the shell is not known to be harmless")
		}
	}
}

func checkAlias(c *Call) {
	for _, w := range c.Operands {
		if !w.Fixed || strings.Contains(w.Text, "=") {
			c.Grey(w, "alias", "an alias is not followed: shells differ in when it holds")
		}
	}
}
