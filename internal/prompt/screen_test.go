package prompt

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"weir/internal/gate"
	"weir/internal/show"
	"weir/test/prompttest"
)

// texts are what somebody might hide in, by whoever writes a command: each is one argument.
var texts = map[string]string{
	"pushed over the edge": "http://uploads.example.org/" + strings.Repeat("p", 59) + "+main",
	"counted":              counted(700),
	"wide":                 strings.Repeat("漢字", 90),
	"wide, one further":    "x" + strings.Repeat("漢字", 90),
	"wide and narrow":      strings.Repeat("a漢b한🙂", 60),
	"emoji":                strings.Repeat("🙂🚀", 70) + "x",
	"combining":            strings.Repeat("e\u0301o\u0308\u0301", 100),
	"emoji put together":   strings.Repeat("👍🏽🇩🇪1\ufe0f\u20e3", 40),
	"syllables":            strings.Repeat("ᄒ\u1161\u11abกำ\u0e49क्षि ", 40),
	"vowels alone":         strings.Repeat("\u1161\u1175", 90),
	"vowels on a syllable": "한" + strings.Repeat("\u1161", 90) + "ᄒ" + strings.Repeat("\u1161\u11ab\ud7b0\ud7cb", 20) + " 가\u11ab",
	"ambiguous":            strings.Repeat("§×…→é°", 60),
	"zero width, tabs":     strings.Repeat("a\u200bb\tc\u200d", 30),
	"escapes":              strings.Repeat("\x1b[2K\x1b[1A\x1b[8mx\x07\r\u009b2J", 8),
	"bidi":                 strings.Repeat("\u202egro.live\u202c\u05d0", 20),
	"poses as another row": strings.Repeat("x", 67) + "destination  192.0.2.9:443/tcp" + strings.Repeat(" ", 40) + "state  held",
}

func counted(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d.", i)
	}
	return b.String()[:n]
}

// inEmulator is what runs on the emulator's screen: questions of FOLLOW_ASKED, followed.
func inEmulator(t *testing.T) bool {
	data := os.Getenv("FOLLOW_ASKED")
	if data == "" {
		return false
	}
	var list []gate.Question
	if err := json.Unmarshal([]byte(data), &list); err != nil {
		t.Fatal(err)
	}
	if err := Follow(t.Context(), &sensor{list: list}, "alice", os.Stdin, os.Stdout); err != nil {
		t.Fatal(err)
	}
	return true
}

// emulate follows questions on the screen of a terminal emulator.
func emulate(t *testing.T, width, height int, list ...gate.Question) *prompttest.Screen {
	t.Helper()
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return prompttest.Start(t, width, height, []string{"FOLLOW_ASKED=" + string(data)}, os.Args[0], "-test.run", "^"+t.Name()+"$")
}

// detail is what the screen has between the rules: the selected question.
func detail(lines []string) []string {
	from, to := -1, len(lines)
	for i, l := range lines {
		switch {
		case !strings.HasPrefix(l, "--"):
		case from < 0:
			from = i
		default:
			to = i
		}
	}
	if from < 0 || to <= from {
		return nil
	}
	return lines[from+1 : to]
}

// F08: every column of what is approved is on the screen of a real terminal, whatever its width, also after it was resized.
func TestF08Screen(t *testing.T) {
	if inEmulator(t) {
		return
	}
	for name, text := range texts {
		q := asked("aaaaaa", text)
		want := prompttest.Words(show.Question(q))
		s := emulate(t, 80, 90, q)
		for _, width := range []int{80, 40, 81, 200, 30, 79} {
			s.Resize(width, 90)
			rule := strings.Repeat("-", width)
			lines := s.Until(fmt.Sprintf("%s: all of the text at %d columns", name, width), func(lines []string) bool {
				return strings.TrimRight(lines[2], " ") == rule && prompttest.Words(detail(lines)...) == want
			})
			for _, l := range detail(lines) {
				if row, _, _ := strings.Cut(l, " "); row != "" && !strings.Contains("container program command process destination state", row) {
					t.Errorf("%s: at %d columns a line poses as row %q: %q", name, width, row, l)
				}
			}
		}
	}
}

// F08: what does not fit on the screen is told, and not approved before all of it was there, in whatever sizes.
func TestF08Pages(t *testing.T) {
	if inEmulator(t) {
		return
	}
	q := asked("aaaaaa", texts["counted"])
	s := emulate(t, 80, 14, q)
	s.Shows("more lines: space")
	s.Types("a")
	s.Shows("there is more of aaaaaa: see all of it first (space)")
	s.Types(" ")
	s.Until("the next page", func(lines []string) bool { return !strings.HasPrefix(detail(lines)[0], "container") })
	s.Resize(81, 60) // what was between the first page and what would be the next one is on the screen now
	want := prompttest.Words(show.Question(q))
	s.Until("all of the text", func(lines []string) bool { return prompttest.Words(detail(lines)...) == want })
	s.Resize(20, 60)
	s.Shows("too small")
	s.Types("ay")
	s.Resize(40, 60) // all keys are on the screen as well
	s.Until("all of the text", func(lines []string) bool { return prompttest.Words(detail(lines)...) == want })
	s.Types("a")
	s.Until("the whole prompt", func(lines []string) bool {
		return prompttest.Words(lines[len(lines)-2:]...) == prompttest.Words("approve aaaaaa?  y: yes  r: yes, with a reason  any other key: no")
	})
	s.Types("y")
	s.Shows("aaaaaa: approved by root")
}
