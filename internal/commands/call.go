package commands

// Call is one use of a command: what the engine hands to a Check, and where the
// Check puts what it finds. The engine judges what is put in Runs, Texts, Writes.
type Call struct {
	Command *Command
	Name    string // as it was called: egrep
	Words   []Word // all words after the name
	// Options and Operands are nil for a Raw entry.
	Options  []Option
	Operands []Word
	// Globals are the options before a subcommand (git -C dir).
	Globals []Option

	Found []Finding // what is not local, each with its word
	Runs  [][]Word  // inner commands, judged as if they were written alone
	Texts []Text    // shell texts, judged as a whole
	// Piped: its output surely goes to no terminal.
	Piped bool
	// Elsewhere: what it runs, runs in another directory (env -C).
	Elsewhere bool
	Sets      []Set // variables set for the inner commands (env A=1 CMD)
	Reads     []Word
	Writes    []Word
	Hosts     []Word
	Listens   []Word // addresses or ports
	Names     []Word // of variables that are set
	Flags     Flags
	// Git is why git may run a program here, where its settings name one; empty if no setting can.
	Git string
	// Brings: it puts directories or links somewhere, in which repositories may be.
	Brings bool
	// Why it is local, where its entry says something else.
	Why string
	// Class raises the class of the call: Network wins over all, Grey over Local.
	class Class
	moved bool
}

// Option is a short (-n) or long (--lines) option that was accepted, in its full name.
type Option struct {
	Name  string // "-n" or "--lines"
	Value Word   // when HasValue
	Has   bool   // a value was given
	Word  Word   // the word it stands in
}

// Finding is a part that makes a call less than local.
type Finding struct {
	Word  Word
	Class Class // Grey or Network
	Rule  string
	Text  string
}

// Text is a shell text to be judged, with its positional parameters ($0 first).
type Text struct {
	Word Word
	Args []Word
}

// Set is a variable set for what the call runs.
type Set struct {
	Name  string
	Value Word
	Word  Word
}

// Grey says that the word cannot be proved harmless. Rule is short and stable
// ("find-delete"); text is a sentence.
func (c *Call) Grey(w Word, rule, text string) {
	c.Found = append(c.Found, Finding{w, Grey, rule, text})
}

// Network says that the word surely runs code or reaches the network.
func (c *Call) Network(w Word, rule, text string) {
	c.Found = append(c.Found, Finding{w, Network, rule, text})
}

// Run asks for the words to be judged as a program with its arguments (find -exec, env).
func (c *Call) Run(words []Word) { c.Runs = append(c.Runs, words) }

// Sh asks for a word to be judged as a shell text with args as $0, $1 …
func (c *Call) Sh(w Word, args ...Word) { c.Texts = append(c.Texts, Text{w, args}) }

// Read, Write, Host and Listen note what a word is.
func (c *Call) Read(w Word)  { c.Reads = append(c.Reads, w) }
func (c *Call) Write(w Word) { c.Writes = append(c.Writes, w) }
func (c *Call) Host(w Word)  { c.Hosts = append(c.Hosts, w) }

// Listen notes where a socket listens; a word that is not literal may be anywhere.
func (c *Call) Listen(w Word) {
	if !w.Fixed || w.Text == "" {
		c.Flags |= Listen
		return
	}
	c.Listens = append(c.Listens, w)
}

// Become gives the call another class than its entry's (pip list is local, pip install network).
func (c *Call) Become(class Class) { c.class, c.moved = class, true }

// Class is the call's own class, before what it found.
func (c *Call) Class() Class {
	if c.moved {
		return c.class
	}
	return c.Command.Class
}

// Option gives the last option of one of these names.
func (c *Call) Option(names ...string) (Option, bool) {
	for i := len(c.Options) - 1; i >= 0; i-- {
		for _, name := range names {
			if c.Options[i].Name == name {
				return c.Options[i], true
			}
		}
	}
	return Option{}, false
}

// Script judges a word by a language.
func (c *Call) Script(w Word, language Language) {
	if !w.Fixed {
		c.Grey(w, "code-unknown", "a program text that is not literal cannot be judged")
		return
	}
	s := language(w.Text)
	for _, f := range s.Reads {
		c.Read(Word{Text: f, Fixed: true, Offset: w.Offset, Length: w.Length})
	}
	for _, f := range s.Writes {
		c.Write(Word{Text: f, Fixed: true, Offset: w.Offset, Length: w.Length})
	}
	switch {
	case s.OK:
	case s.Network:
		c.Network(w, "code-runs", s.Why)
	default:
		c.Grey(w, "code-refused", s.Why)
	}
}
