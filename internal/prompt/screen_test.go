package prompt

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/control"
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

// inEmulator is what runs on the emulator's screen: questions of the file TOP_ASKED. Answers are in a file beside it when it has ended.
func inEmulator(t *testing.T) bool {
	file := os.Getenv("TOP_ASKED")
	if file == "" {
		return false
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &sensor{containers: []control.Container{{ID: "c1", Name: texts["escapes"], Cgroup: "/weir/" + texts["poses as another row"], Mode: "enforce", Taint: []string{"secret"}, Live: true}}}
	if err := json.Unmarshal(data, &s.list); err != nil {
		t.Fatal(err)
	}
	if err := Top(t.Context(), s, Options{By: "alice"}, os.Stdin, os.Stdout); err != nil {
		t.Fatal(err)
	}
	var all []gate.Reply
	for _, o := range s.replies {
		all = append(all, o.reply)
	}
	if data, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".part", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".part", file+".answers"); err != nil {
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
	file := filepath.Join(t.TempDir(), "asked")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOP_FILE", file)
	return prompttest.Start(t, width, height, []string{"TOP_ASKED=" + file}, os.Args[0], "-test.run", "^"+t.Name()+"$")
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

// F08: of a group, all that tells its questions apart is on the screen, whatever somebody hid there, before it is answered together.
func TestF08Group(t *testing.T) {
	if inEmulator(t) {
		return
	}
	for name, text := range texts {
		list := alike("aaaaaa", "bbbbbb")
		list[1].Process.Argv = []string{"curl", text}
		list[1].Chain[0] = list[1].Process.Member()
		want := prompttest.Words(show.Question(list[0]) + show.Besides(list[1], list[0]))
		s := emulate(t, 80, 400, list...)
		for _, width := range []int{80, 40, 200, 30} {
			s.Resize(width, 400)
			s.Until(fmt.Sprintf("%s: all of the text at %d columns", name, width), func(lines []string) bool {
				return strings.TrimRight(lines[2], " ") == strings.Repeat("-", width) && prompttest.Words(detail(lines)...) == want
			})
		}
		s.Resize(80, 400)
		s.Types("a")
		s.Shows("approve aaaaaa and 1 alike?  y: yes")
		s.Types("y")
		s.Shows("weir: 0 questions wait")
	}
}

// A hundred questions are decided by keys alone, each after its whole text was on a screen of 80 by 24, in under two minutes: alone, together,
// for longer, with a wider scope, denied with a reason, and found.
func TestHundredQuestions(t *testing.T) {
	if inEmulator(t) {
		return
	}
	var list []gate.Question
	for n := range 70 {
		q := alike(fmt.Sprintf("one%03d", n))[0]
		q.Destination.Port = uint16(1000 + n)
		list = append(list, q)
	}
	for n := range 10 {
		group := alike(fmt.Sprintf("grpa%02d", n), fmt.Sprintf("grpb%02d", n), fmt.Sprintf("grpc%02d", n))
		for i := range group {
			group[i].Destination.Port = uint16(2000 + n)
		}
		list = append(list, group...)
	}
	s := emulate(t, 80, 24, list...)
	start := time.Now()
	s.Shows("weir: 100 questions wait")
	left := 100
	answer := func(n int, keys ...string) {
		t.Helper()
		for i := 0; i < len(keys); i += 2 {
			s.Types(keys[i])
			s.Shows(keys[i+1])
		}
		left -= n
		s.Types("y")
		s.Shows(fmt.Sprintf("weir: %d questions wait", left))
	}
	for n := range 70 {
		id := fmt.Sprintf("one%03d", n)
		s.Shows("> " + id)
		switch n % 5 {
		case 0:
			answer(1, "d", "deny "+id+"?")
		case 1:
			s.Types("a")
			s.Shows("approve " + id + "?")
			s.Types("2")
			s.Shows("for make all and everything it starts?")
			answer(1)
		case 2:
			answer(1, "l", "for 30m, 64 MiB in all", "t", "for 2h, 64 MiB in all")
		default:
			answer(1, "a", "approve "+id+"?")
		}
	}
	for n := range 10 {
		id := fmt.Sprintf("grpa%02d", n)
		s.Shows("> " + id)
		s.Types(" ")
		s.Shows(fmt.Sprintf("grpc%02d: the same", n))
		if n%2 == 0 {
			answer(3, "a", "approve "+id+" and 2 alike?")
			continue
		}
		answer(3, "l", "every process of", "t", "for 2h, 256 MiB")
	}
	took := time.Since(start)
	s.Types("q")
	var answers []gate.Reply
	s.Until("the answers", func([]string) bool {
		data, err := os.ReadFile(os.Getenv("TOP_FILE") + ".answers")
		return err == nil && json.Unmarshal(data, &answers) == nil
	})
	denied, longer, wider := 0, 0, 0
	for _, r := range answers {
		if r.Shown == "" || r.By != "alice" {
			t.Errorf("an answer without what was shown: %+v", r)
		}
		if !r.Allow {
			denied++
		}
		if r.For != "" {
			longer++
		}
		if r.Scope == 2 {
			wider++
		}
	}
	if denied != 14 || longer != 14+5 || wider != 14 || len(answers) != 90 { // five of those for longer were for three questions
		t.Errorf("%d answers, of which %d denied, %d for longer, %d with scope 2", len(answers), denied, longer, wider)
	}
	t.Logf("a hundred questions took %v", took)
	if took > 2*time.Minute {
		t.Error("that is more than two minutes")
	}
}

// F08: a word of 100 KB neither fills the screen with anything else nor slows the keys, and is not approved before its end was seen.
func TestF08Huge(t *testing.T) {
	if inEmulator(t) {
		return
	}
	s := emulate(t, 80, 24, asked("aaaaaa", strings.Repeat("\u0440\u0430ypal\u202e\x1b[2J", 100_000/16)), asked("bbbbbb"))
	s.Shows("more lines: space")
	s.Types("   bb b")
	s.Types("a")
	s.Shows("there is more of aaaaaa: see all of it first (space)")
	lines := s.Shows(`\u0440\u0430ypal\u202e\x1b[2J`)
	if !strings.HasPrefix(lines[0], "weir: 2 questions wait") || !strings.HasPrefix(lines[23], "a approve  d deny") {
		t.Errorf("the screen is not as it should be:\n%s", strings.Join(lines, "\n"))
	}
	s.Types("d")
	s.Shows("deny aaaaaa?")
	s.Types("y")
	s.Shows("aaaaaa: denied by root")
	s.Shows("> bbbbbb")
}

// B51: the page of containers is all there, on screens of many sizes, and what a container calls itself is text.
func TestB51Containers(t *testing.T) {
	if inEmulator(t) {
		return
	}
	s := emulate(t, 80, 24, asked("aaaaaa"), asked("bbbbbb", "https://example.org/"))
	s.Shows("weir: 2 questions wait  enforce  1 of 1 tainted")
	s.Types("\t")
	s.Shows("  secret  enforce  0 grants  2 questions")
	m := start(asked("aaaaaa"), asked("bbbbbb", "https://example.org/"))
	m.take(update{list: m.list, containers: []control.Container{{ID: "c1", Name: texts["escapes"], Cgroup: "/weir/" + texts["poses as another row"], Mode: "enforce", Taint: []string{"secret"}, Live: true}}})
	want := prompttest.Words(m.aboutContainer(m.containers[0]))
	for _, width := range []int{80, 40, 30, 200, 81} {
		s.Resize(width, 60)
		s.Until(fmt.Sprintf("all of the text at %d columns", width), func(lines []string) bool { return prompttest.Words(detail(lines)...) == want })
	}
	s.Resize(30, 12)
	s.Shows("more lines: space")
	s.Types("\td")
	s.Shows("deny aaaaaa?")
	s.Resize(29, 12)
	s.Shows("too small")
	s.Types("y")
	s.Resize(80, 24)
	s.Shows("weir: 2 questions wait")
}
