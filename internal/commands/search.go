package commands

import "strings"

// The primaries of find that are accepted, by how many words follow them.
const (
	findTests = " -empty -print -print0 -ls -prune -quit -true -false -not -and -or -depth -d -daystart -follow -mount -xdev -noleaf -warn -nowarn " +
		"-ignore_readdir_race -noignore_readdir_race -readable -writable -executable -nouser -nogroup -a -o ! ( ) , -help --help -version --version "
	findValues = " -name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -mtime -atime -ctime -mmin -amin -cmin " +
		"-newer -anewer -cnewer -perm -user -group -uid -gid -links -inum -samefile -fstype -used -context -maxdepth -mindepth -regextype -printf "
)

// checkFind reads the expression of find.
func checkFind(c *Call) {
	words := c.Words
	for len(words) > 0 && words[0].Fixed && Listed("-H -L -P -O0 -O1 -O2 -O3", words[0].Text) {
		words = words[1:]
	}
	start := Word{Text: "./", Glob: true} // what {} becomes
	found := false
	for len(words) > 0 && !findExpression(words[0]) {
		w := words[0]
		if w.MayBeOption() || w.Split {
			c.Grey(w, "word-unknown", "find would read this as an expression if it began with a dash or a bracket")
			return
		}
		c.Read(w)
		if found && w.Text != start.Text {
			start.Text = commonPrefix(start.Text, w.Text)
		} else {
			start.Text = w.Text
		}
		found, words = true, words[1:]
	}
	if start.Text == "" {
		start = Unknown()
	}
	for len(words) > 0 {
		w := words[0]
		words = words[1:]
		if !w.Fixed {
			if !plainGlob(w) {
				c.Grey(w, "word-unknown", "this may become an action of find")
				return
			}
			continue // files that match the glob of an earlier -name; find then ends with an error
		}
		switch {
		case strings.Contains(findTests, " "+w.Text+" "):
		case strings.Contains(findValues, " "+w.Text+" "), len(w.Text) == 8 && strings.HasPrefix(w.Text, "-newer") &&
			strings.IndexByte("aBcmt", w.Text[6]) >= 0 && strings.IndexByte("aBcmt", w.Text[7]) >= 0:
			if len(words) == 0 || words[0].Many() && !plainGlob(words[0]) {
				c.Grey(w, "word-unknown", "the value of this test is not one word")
				return
			}
			words = words[1:]
		case Listed("-exec -execdir -ok -okdir", w.Text):
			if words = findExec(c, w, words, start); words == nil {
				return
			}
		case w.Text == "-delete":
			c.Grey(w, "find-delete", "find removes what it finds")
			return
		case Listed("-fprint -fprint0 -fprintf -fls", w.Text):
			c.Grey(w, "find-writes", "find writes a file, even when it finds nothing")
			return
		case w.Text == "-files0-from":
			c.Grey(w, "find-start", "the places to search are not seen here")
			return
		default:
			c.Grey(w, "option-unknown", "this word of find is not known")
			return
		}
	}
}

// findExpression tells whether find begins its expression at this word.
func findExpression(w Word) bool {
	return w.Fixed && (strings.HasPrefix(w.Text, "-") && w.Text != "-" || Listed("( ) ! ,", w.Text))
}

// plainGlob tells whether no word of an unquoted pattern can be a primary of find.
func plainGlob(w Word) bool {
	return w.Glob && w.Text != "" && strings.IndexByte("-(!,)", w.Text[0]) < 0
}

// findExec hands over the command of -exec, and gives the words behind it, or nil.
func findExec(c *Call, action Word, words []Word, start Word) []Word {
	var inner []Word
	for i, w := range words {
		if !w.Fixed && w.Many() {
			c.Grey(w, "word-unknown", "the command of find ends at an unknown place")
			return nil
		}
		plus := w.Is("+") && i > 0 && words[i-1].Is("{}")
		if !w.Is(";") && !plus {
			inner = append(inner, w)
			continue
		}
		if len(inner) == 0 || strings.Contains(inner[0].Text, "{}") || !inner[0].Fixed {
			c.Grey(action, "find-exec", "find runs what it finds")
			return nil
		}
		if strings.HasSuffix(action.Text, "dir") {
			start, c.Elsewhere = Word{Text: "./", Glob: true}, true
		}
		c.Run(findWords(inner, start, plus))
		return words[i+1:]
	}
	c.Grey(action, "find-exec", "the command of find does not end")
	return nil
}

// findWords puts what find found in the place of {}.
func findWords(inner []Word, start Word, plus bool) []Word {
	out := make([]Word, len(inner))
	for i, w := range inner {
		at := strings.Index(w.Text, "{}")
		switch {
		case at < 0:
		case at > 0:
			w = Word{Text: w.Text[:at], Offset: w.Offset, Length: w.Length}
		case start.Split:
			w = Word{Split: plus, Offset: w.Offset, Length: w.Length}
		default:
			w = Word{Text: start.Text, Glob: plus, Offset: w.Offset, Length: w.Length}
		}
		out[i] = w
	}
	return out
}

func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// checkTree reads words as tree does: in a cluster, an option with a value takes the next word.
func checkTree(c *Call) {
	options := true
	for i := 0; i < len(c.Words); i++ {
		w := c.Words[i]
		switch {
		case w.Text == "" && !w.Fixed, w.Split:
			c.Grey(w, "word-unknown", "this may be an option of tree")
			return
		case !options || w.Text == "-" || !strings.HasPrefix(w.Text, "-"):
			c.Read(w)
			continue
		case !w.Fixed:
			c.Grey(w, "word-unknown", "this is an option of tree that is not literal")
			return
		case w.Text == "--":
			options = false
			continue
		}
		value := false
		if strings.HasPrefix(w.Text, "--") {
			name, _, glued := strings.Cut(w.Text, "=")
			value = Listed("--filelimit --charset --timefmt --sort --gitfile --infofile", name) && !glued
			if !value && !Listed("--filelimit --charset --timefmt --sort --gitfile --infofile --dirsfirst --filesfirst --noreport --inodes --device --du --si "+
				"--prune --gitignore --matchdirs --ignore-case --metafirst --nolinks --fromfile --help --version", name) {
				c.Grey(w, "option-unknown", "this option of tree is not known to be harmless")
				return
			}
		} else {
			flags := w.Text[1:]
			last := flags[len(flags)-1:]
			value = strings.Contains("LPIHT", last)
			if value {
				flags = flags[:len(flags)-1]
			}
			if strings.Trim(flags, "adflxpsughDFqNQCnAStcrvUXJi") != "" {
				c.Grey(w, "option-unknown", "this option of tree writes, runs a command or is not known")
				return
			}
		}
		if value {
			if i++; i < len(c.Words) && c.Words[i].Many() {
				c.Grey(c.Words[i], "word-unknown", "the value of this option is not one word")
				return
			}
		}
	}
}
