package commands

// Role says what a word is to its command, and so what is done with it.
type Role uint8

const (
	Data   Role = iota // text that decides nothing: a pattern, a number, a format
	Read               // a file or directory that is read
	Write              // a file or directory that is made, changed or removed; the engine judges the path
	Code               // a text in a language that Command.Language checks; grey unless it is fixed and accepted
	Host               // a host name, address or URL
	Name               // the name of a variable that is set (builtins only); the engine judges it
	Ignore             // as Data, and not worth a fact
)

// Any stands for no limit on operands, None for no operand at all.
const (
	Any  = 0
	None = -1
)

// Command is what is accepted of one command, in a form that is also its documentation.
// Words that it does not accept make the command grey.
type Command struct {
	// Names are all names of the command, separated by spaces. A name that ends in
	// '#' also matches with a version behind: "python#" is python, python3, python3.11.
	Names string
	// Class of the command when all its words are accepted; for Network, of every
	// use (options and operands are then read for facts only). Zero is grey.
	Class Class
	// AnyArgs: the class holds for every possible argument. Options are then used
	// only to tell operands apart.
	AnyArgs bool

	// Short are the accepted short options as for getopt: "an:c::" is -a, -n VALUE
	// and -c[VALUE] (the value only glued).
	Short string
	// Long are the accepted long options without dashes, separated by spaces:
	// "all lines= color=?" is --all, --lines=VALUE or --lines VALUE, --color[=VALUE].
	Long string
	// Number: -5 is an option (head -5).
	Number bool
	// Exact: long options may not be abbreviated (rg, fd, jq). Otherwise a unique
	// prefix among Long and Refuse is accepted.
	Exact bool
	// OneDash: long options have one dash and are never clustered with short ones (java -version).
	OneDash bool
	// Stop: options end at the first operand (env, xargs); else they may follow operands.
	Stop bool
	// Values are the options whose value is more than data.
	Values []Value
	// Refuse are options that are known to be dangerous, to say why.
	Refuse []Refusal

	// Lead are the roles of the first operands, Rest of those that follow.
	Lead []Role
	Rest Role
	// Last, when not Data, is the role of the last operand when there is more than one (cp, mv).
	Last Role
	// NoLead are options, separated by spaces as "-e --regexp", that replace the first operand (grep -e).
	NoLead string
	// Max is how many operands are accepted: Any, None or a number.
	Max int
	// Language checks words with the role Code.
	Language Language

	// Wraps: after the lead operands comes a command, which is judged in its turn
	// (nice, timeout DURATION). The wrapper's own Class must be Local for the whole to be.
	Wraps bool
	// Sub are subcommands, by the first operand; the options above are those before
	// it. A subcommand that is not here is grey.
	Sub []*Command
	// Bare: without a subcommand or any operand, the command is accepted as it is.
	Bare bool

	// Check sees the call after options and operands were told apart, and adds what it
	// finds; nil for most. With Raw, nothing is told apart: Check reads c.Words alone,
	// and the entry is accepted unless Check refuses.
	Check func(c *Call)
	Raw   bool

	// Env are names of variables that may be set for this command, beside the ones
	// that are harmless for all (LC_*, LANG, TZ, NO_COLOR).
	Env string
	// Builtin: exists as a builtin of bash only; never looked up in PATH.
	Builtin bool
	Facts   Flags
	// Why says in a sentence why the class is what it is; a person reads it.
	Why string
	// Example is a command line of this class, for documentation and tests.
	Example string
}

// Value is the role of the values of some options, written "-o --output".
type Value struct {
	Options string
	Role    Role
}

// Refusal is why some options, written "-o --output", are not accepted. A long one
// is written with "=" when it takes a value. Class is Grey or Network.
type Refusal struct {
	Options string
	Why     string
	Class   Class
}

// Language checks a text in a sub-language. It accepts only what it is sure of.
type Language func(text string) Script

// Script is what a text in a sub-language does.
type Script struct {
	// OK: neither runs a program nor reaches the network.
	OK bool
	// Why it is not OK, At which byte of the text; Network when it surely runs code.
	Why     string
	At      int
	Network bool
	// Files that it reads and writes, literally named.
	Reads, Writes []string
}
