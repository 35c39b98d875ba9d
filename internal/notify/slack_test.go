package notify

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"weir/internal/gate"
)

// live is what a chat would make something of: links, addresses it would look up,
// mentions, markup that is not escaped, and what a terminal or an eye obeys (B51).
var live = regexp.MustCompile(`://|[a-z0-9]\.[a-z0-9]|@|<|>|&(?:[^agl]|$)|[\x00-\x09\x0b-\x1f\x7f\x{202a}-\x{202e}\x{2066}-\x{2069}]`)

// B50: nothing of a container is live in a chat, previews are off, and the
// notification tells nothing of it.
func TestB50SlackForm(t *testing.T) {
	r, g := newReceiver(t), &questions{}
	_, events := run(t, Options{Form: Slack, URL: r.URL + "/services/T0/B0/key", Gate: g})
	q := ask("abc234")
	q.Container.Name = "https://evil.example/<!here>@channel\n*bold* `x` :bomb:"
	q.Process.Argv = append(q.Process.Argv, "ftp://a.b.c.d/x?y=1.2.3.4", "@everyone", "<@U1|x>", "&lt;", "a\u2066b", "http://xn--e1awd7f.example")
	g.put(q)
	events <- hold("abc234")
	<-r.news
	if _, err := g.Answer("abc234", gate.Reply{By: "root (<!here> evil.example)", Why: "see https://evil.example/ @here"}); err != nil {
		t.Fatal(err)
	}
	events <- entry("abc234")
	<-r.news
	for i, got := range r.all() {
		var m slackBody
		if err := json.Unmarshal(got.body, &m); err != nil {
			t.Fatal(err)
		}
		var raw map[string]any
		if err := json.Unmarshal(got.body, &raw); err != nil {
			t.Fatal(err)
		}
		for _, off := range []string{"unfurl_links", "unfurl_media", "mrkdwn"} {
			if raw[off] != false {
				t.Errorf("%s is %v", off, raw[off])
			}
		}
		if want := []string{"Weir: question abc234", "Weir: question abc234 has ended"}[i]; m.Text != want {
			t.Errorf("notification: %q", m.Text)
		}
		if got.header.Get("Weir-Signature") != "" {
			t.Error("a chat gets a signature")
		}
		for _, b := range m.Blocks {
			if b.Text == nil {
				continue
			}
			if b.Text.Type != "plain_text" || b.Text.Emoji || len(b.Text.Text) > 3000 {
				t.Errorf("text %+v", b.Text)
			}
			if found := live.FindString(strings.ReplaceAll(b.Text.Text, "[.]", "")); found != "" {
				t.Errorf("%q is live in %q", found, b.Text.Text)
			}
			if strings.Contains(b.Text.Text, "s3cr3tvalue") {
				t.Errorf("a secret is in %q", b.Text.Text)
			}
		}
	}
}

// The buttons carry the id and the hash of what is shown; a question that is cut has
// none that approves.
func TestSlackButtons(t *testing.T) {
	q := ask("abc234")
	text, _ := shownText(Slack, q)
	m := slackMessage(asked, "host1", q)
	actions := m.Blocks[2].Elements
	if len(actions) != 2 || actions[0].Action != "deny" || actions[1].Action != "approve" || actions[1].Value != "abc234 "+gate.Digest(text) {
		t.Errorf("%+v", actions)
	}
	if m.Blocks[1].Text.Text != escapeSlack(text) {
		t.Errorf("another text is hashed than shown: %q", m.Blocks[1].Text.Text)
	}
	q.Process.Argv = []string{strings.Repeat("<", 5000)}
	m = slackMessage(asked, "host1", q)
	if n := len(m.Blocks[1].Text.Text); n > 3000 {
		t.Errorf("%d bytes in a section", n)
	}
	if actions := m.Blocks[2].Elements; len(actions) != 1 || actions[0].Action != "deny" {
		t.Errorf("%+v", actions)
	}
}
