package commands

import "strings"

// builtinCommands are builtins of bash. Those that change the state of the shell are
// followed by the engine; their entries are documentation and what is accepted of them
// elsewhere.
var builtinCommands = []*Command{
	{Names: "echo", Class: Local, AnyArgs: true, Why: "prints its words", Example: "echo done"},
	{Names: "printf", Class: Local, AnyArgs: true, Why: "prints its words; the builtin's -v is followed", Example: "printf '%s\\n' done"},
	{Names: "pwd", Class: Local, AnyArgs: true, Why: "prints the working directory", Example: "pwd -P"},
	{Names: "true false", Class: Local, AnyArgs: true, Why: "does nothing", Example: "true"},
	{Names: "test [", Class: Local, AnyArgs: true, Why: "compares words and looks at files; names with subscripts are refused", Example: "test -f go.mod"},
	{Names: "cd pushd popd", Class: Local, AnyArgs: true, Builtin: true, Why: "changes the working directory, which is followed", Example: "cd src"},
	{Names: ": break continue return exit logout", Class: Local, AnyArgs: true, Builtin: true, Why: "does nothing outside the shell", Example: "exit 1"},
	{Names: "dirs times caller umask ulimit type suspend disown fg bg", Class: Local, AnyArgs: true, Builtin: true,
		Why: "shows or sets the shell's own state", Example: "type -a ls"},
	{Names: "jobs", Class: Local, Builtin: true, Short: "lnprs", Why: "lists jobs", Example: "jobs -l",
		Refuse: []Refusal{{Options: "-x", Why: "runs a command", Class: Network}}},
	{Names: "wait", Class: Local, Builtin: true, Short: "fn", Why: "waits for jobs", Example: "wait",
		Refuse: []Refusal{{Options: "-p", Why: "evaluates the subscript of a name, which can run commands"}}},
	{Names: "hash", Class: Local, Builtin: true, Short: "r", Max: None, Why: "forgets where programs are", Example: "hash -r",
		Refuse: []Refusal{{Options: "-p", Why: "makes a name stand for another program", Class: Network}}},
	{Names: "shopt", Class: Local, Builtin: true, Short: "supqo", Rest: Data, Check: checkShopt,
		Why: "sets options of the shell that change file names only", Example: "shopt -s nullglob"},
	{Names: "alias", Class: Local, Builtin: true, Short: "p", Check: checkAlias, Why: "lists aliases; defining one is not followed", Example: "alias -p"},
	{Names: "unalias", Class: Local, Builtin: true, Short: "a", Why: "forgets aliases", Example: "unalias -a"},
	{Names: "read", Class: Local, Builtin: true, Short: "rsp:d:n:N:t:u:a:", Values: []Value{{Options: "-a", Role: Name}}, Rest: Name,
		Refuse: []Refusal{{Options: "-e -i", Why: "reads a line with an editor, which can run commands"}},
		Why:    "reads input into variables, whose names have to be plain and harmless", Example: "read -r line"},
	{Names: "mapfile readarray", Class: Local, Builtin: true, Short: "td:n:O:s:u:", Rest: Name, Refuse: []Refusal{{Options: "-C -c", Why: "runs a command for some of the lines"}},
		Why: "reads input into an array, whose name has to be plain and harmless", Example: "mapfile -t lines"},
	{Names: "getopts", Class: Local, Builtin: true, Lead: []Role{Data, Name}, Rest: Data, Why: "puts options into a variable, whose name has to be plain and harmless", Example: "getopts ab: option"},
	{Names: "set shift unset", Class: Local, Builtin: true, Max: None, Why: "changes the shell's parameters and variables, which is followed",
		Example: "set -euo pipefail"},
	{Names: "eval", Class: Network, Builtin: true, Facts: Shell, Why: "runs a text that is not known", Example: `eval "$x"`},
	{Names: ". source", Class: Network, Builtin: true, Facts: Shell, Rest: Read, Why: "runs a file", Example: "source env.sh"},
	{Names: "command builtin", Class: Local, Builtin: true, Max: None, Why: "judged by the command that it runs", Example: "command -v gcc"},
	{Names: "exec", Class: Local, Builtin: true, Wraps: true, Bare: true, Short: "cla:", Why: "judged by the command that it runs", Example: "exec ls"},
	{Names: "trap", Class: Local, Builtin: true, Max: None, Why: "judged by the commands that it keeps for later", Example: "trap - EXIT"},
	{Names: "export declare typeset local readonly let", Builtin: true, Why: "is not followed when its name is quoted or computed", Example: `\export A=1`},
	{Names: "enable bind complete compopt compgen history fc coproc", Builtin: true, Why: "loads or runs code, or writes files", Example: "enable -f x.so x"},
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
