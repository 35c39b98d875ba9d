package commands

// Role says what a word is to its command, and so what is done with it.
type Role uint8

const (
	Data  Role = iota // text that decides nothing: a pattern, a number, a format
	Read              // a file or directory that is read
	Write             // a file or directory that is made, changed or removed; the engine judges the path
	Code              // a text in a language that Command.Language checks; grey unless it is fixed and accepted
	Host              // a host name, address or URL
	Name              // the name of a variable that is set (builtins only); the engine judges it
)

// Any stands for no limit on operands, None for no operand at all.
const (
	Any  = 0
	None = -1
)

// Command is an entry of catalogue.txt, where each field is explained by its name in lower case. Words that it does not accept make the command grey.
type Command struct {
	Names string
	Class Class // when all its words are accepted; for Network, of every use (options and operands are then read for facts only)

	Any, Number, Exact, Stop, Wraps, Bare, Raw, Builtin bool

	Short, Long string
	Values      []Value
	Refuse      []Refusal

	Lead     []Role // of the first operands
	Rest     Role   // of those that follow
	NoLead   string
	Max      int // Any, None or a number
	Language Language
	Sub      []*Command
	// Check sees the call after options and operands were told apart, and adds what it finds; nil for most. With Raw it reads c.Words alone.
	Check func(c *Call)

	// Of a program that only the guards unwrap.
	Skip         int
	Skips        func(string) bool
	Sets, Joined bool
	Text, Starts string

	Env     string
	Facts   Flags
	Why     string
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
