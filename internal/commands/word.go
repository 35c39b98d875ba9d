package commands

// Word is one word of a command, as far as it can be known. There are three kinds:
//
//   - Fixed: exactly one word, and Text is all of it.
//   - not Fixed, not Glob, not Split: exactly one word that begins with Text and
//     goes on in an unknown way, possibly not at all ("$x", "a$(b)c").
//   - Glob: one or more words that all begin with Text (src/*.go). Split: zero or
//     more words; the first begins with Text and the others are anything (a$x, "$@").
//
// So a word that is not Fixed may be an option when Text is empty or begins with a dash.
type Word struct {
	Text  string
	Fixed bool
	Glob  bool
	Split bool
	// Tail is what all words of a Glob surely end with (*.py: ".py"); often empty.
	Tail string
	// Offset and Length are where the word stands in the text that was asked about, in bytes.
	Offset, Length int
}

// Lit makes a fixed word.
func Lit(text string) Word { return Word{Text: text, Fixed: true} }

// Unknown makes any number of words of which nothing is known.
func Unknown() Word { return Word{Split: true} }

// Many tells whether the word may become another number of words than one.
func (w Word) Many() bool { return w.Glob || w.Split }

// MayBeOption tells whether the word, or one of those it becomes, may begin with a dash.
func (w Word) MayBeOption() bool {
	if w.Text != "" {
		return w.Text[0] == '-' || w.Split
	}
	return !w.Fixed
}

// Is tells whether the word is exactly s.
func (w Word) Is(s string) bool { return w.Fixed && w.Text == s }

// At gives the part of the word from byte i on; it stands at the same place.
func (w Word) At(i int) Word {
	w.Text = w.Text[i:]
	return w
}
