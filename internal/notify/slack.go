package notify

import (
	"fmt"
	"strings"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/show"
)

// maxSlack is how much of a question a chat shows, in bytes as escaped: a section
// takes 3,000 characters.
const maxSlack = 2800

// slackText makes a text harmless in a chat: nothing in it is a link, a mention,
// an emoji or markup, or looks up a name (B50). What is too long is cut in the
// middle: then whole is false, and it must not be approved from there.
func slackText(text string) (defanged string, whole bool) {
	text = show.Defang(text)
	if len(escapeSlack(text)) <= maxSlack {
		return text, true
	}
	for room := min(maxSlack, len(text)); ; room = room * 3 / 4 {
		head := strings.ToValidUTF8(text[:room*2/3], "")
		tail := strings.ToValidUTF8(text[len(text)-room/3:], "")
		cut := fmt.Sprintf("%s\n… %d bytes are not shown: see weir pending on the host …\n%s", head, len(text)-len(head)-len(tail), tail)
		if len(escapeSlack(cut)) <= maxSlack {
			return cut, false
		}
	}
}

// escapeSlack writes the three characters that a chat's text gives a meaning to.
func escapeSlack(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

type slackBody struct {
	Text        string  `json:"text"` // what a notification shows: nothing of a container
	Blocks      []block `json:"blocks"`
	Markdown    bool    `json:"mrkdwn"`
	UnfurlLinks bool    `json:"unfurl_links"`
	UnfurlMedia bool    `json:"unfurl_media"`
}

type block struct {
	Type     string    `json:"type"`
	ID       string    `json:"block_id,omitempty"`
	Text     *plain    `json:"text,omitempty"`
	Elements []element `json:"elements,omitempty"`
}

// plain is text without markup.
type plain struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji bool   `json:"emoji"`
}

type element struct {
	Type   string `json:"type"`
	Action string `json:"action_id"`
	Text   *plain `json:"text"`
	Value  string `json:"value"`
	Style  string `json:"style,omitempty"`
}

func plainText(s string) *plain { return &plain{Type: "plain_text", Text: escapeSlack(s)} }

func slackMessage(kind, host string, q gate.Question) slackBody {
	host = show.Defang(event.Visible(host))
	if kind == ended {
		line := fmt.Sprintf("Weir on %s: question %s %s", host, q.ID, show.Outcome(q))
		line, _ = slackText(line)
		return slackBody{Text: fmt.Sprintf("Weir: question %s has ended", q.ID), Blocks: []block{{Type: "section", Text: plainText(line)}}}
	}
	text, whole := shownText(Slack, q)
	buttons := []element{{Type: "button", Action: "deny", Text: plainText("Deny"), Value: q.ID + " " + gate.Digest(text), Style: "danger"}}
	if whole {
		buttons = append(buttons, element{Type: "button", Action: "approve", Text: plainText("Approve"), Value: q.ID + " " + gate.Digest(text), Style: "primary"})
	}
	until := fmt.Sprintf("Weir on %s asks, until %s: question %s", host, q.Deadline.UTC().Format("15:04:05 UTC"), q.ID)
	if !whole {
		until += "; not all of it is shown: it can be approved on the host"
	}
	return slackBody{
		Text: fmt.Sprintf("Weir: question %s", q.ID),
		Blocks: []block{
			{Type: "section", Text: plainText(until)},
			{Type: "section", Text: plainText(text)},
			{Type: "actions", ID: "weir", Elements: buttons},
		},
	}
}
