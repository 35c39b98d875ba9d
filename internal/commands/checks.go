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

// checkDpkg tells the uses of dpkg that only read its database and never use a pager.
func checkDpkg(c *Call) {
	if c.Name != "dpkg" || len(c.Words) == 0 {
		return
	}
	switch c.Words[0].Text {
	case "--print-architecture", "--print-foreign-architectures", "--version":
		if len(c.Words) == 1 && c.Words[0].Fixed {
			c.Become(Local)
		}
	}
}

// checkVersion accepts what only prints the version: the interpreter is not started.
func checkVersion(c *Call) {
	if len(c.Words) == 1 && c.Words[0].Fixed && Listed("--version", c.Words[0].Text) ||
		len(c.Words) == 1 && c.Words[0].Is("-V") && c.Name[0] == 'p' || len(c.Words) == 1 && c.Words[0].Is("-v") && c.Name[0] == 'n' {
		c.Become(Local)
	}
}

// checkCompiler accepts questions for the version.
func checkCompiler(c *Call) {
	if len(c.Words) == 1 && c.Words[0].Fixed && Listed("gcc g++ cc c++ clang clang++", c.Name) && Listed("--version -dumpversion -dumpmachine", c.Words[0].Text) {
		c.Become(Local)
	}
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
