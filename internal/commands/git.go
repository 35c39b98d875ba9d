package commands

import "strings"

const gitConfigured = "settings, attributes and filters of the repository can run programs here"

// gitFormat accepts formats that run nothing: %G asks gpg, %(describe) runs git, %(trailers) may do as it is configured.
func gitFormat(text string) Script {
	if i := max(strings.Index(text, "%G"), strings.Index(text, "%(")); i >= 0 {
		return Script{At: i, Why: "this placeholder can run programs"}
	}
	return Script{OK: true}
}

// checkGit finds where a pager may run, as it is configured. Tried with git 2.39 on a terminal: rev-parse and branch --show-current
// run none there, whatever pager.NAME says; remote does.
func checkGit(c *Call) {
	if len(c.Operands) == 0 || c.Piped || c.Operands[0].Fixed && Listed("version rev-parse branch", c.Operands[0].Text) {
		return
	}
	if _, ok := c.Option("--no-pager", "-P"); !ok {
		c.Git = "on a terminal git runs the pager that is configured; --no-pager or a pipe prevents it"
	}
}

// checkReading is for what only reads, as the repository's settings say.
func checkReading(c *Call) {
	c.Git = gitConfigured
	for _, w := range c.Operands {
		if w.Text != "-" && w.MayBeOption() { // behind --
			c.Grey(w, "option-unknown", "git may take this for an option")
		}
	}
}

// checkRevision tells apart plain names, which are looked up without reading an object.
func checkRevision(c *Call) {
	for _, w := range c.Operands {
		if !w.Fixed || strings.ContainsAny(w.Text, "^~:@{}") {
			checkReading(c)
			c.Git = "git may fetch an object that is missing, as it is configured"
		}
	}
	if _, ok := c.Option("--short"); ok {
		checkReading(c)
	}
}

func checkGitConfig(c *Call) {
	if _, ok := c.Option("--get", "--get-all", "--get-regexp", "--list", "-l"); !ok {
		for _, w := range c.Words {
			c.Grey(w, "git-config", "this may change settings, which can run programs")
		}
		c.Become(Grey)
	}
}

// checkBranch accepts what lists, and branch --show-current.
func checkBranch(c *Call) {
	_, current := c.Option("--show-current")
	if !current {
		checkReading(c)
	}
	if _, list := c.Option("--list", "-l"); len(c.Operands) > 0 && !list {
		c.Grey(c.Operands[0], "operand-count", "makes or changes a branch or a tag")
	}
}
