package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"weir/internal/event"
	"weir/internal/strict"
)

// order is a signed answer as it came.
type order struct {
	id    string
	allow bool
	user  string
	why   string
	scope int    // 0: not given
	shown string // hash of the text that the user had before them
	form  string // whose text that is
	from  *event.Origin
}

// by names the user as the log does: it cannot pose as a user of the host.
func (a order) by() string { return a.from.Via + " user " + a.user }

// readAnswer reads an answer in JSON.
func readAnswer(body []byte) (order, error) {
	var v struct {
		ID     string `json:"id"`
		Answer string `json:"answer"`
		User   string `json:"user"`
		Why    string `json:"why"`
		Scope  *int   `json:"scope"`
		Shown  string `json:"shown"`
		Nonce  string `json:"nonce"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return order{}, fmt.Errorf("the answer is not as it must be: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if !strict.Ended(d) {
		return order{}, errors.New("the answer has more than one JSON object")
	}
	a := order{id: v.ID, user: v.User, why: v.Why, shown: v.Shown, form: JSON, from: &event.Origin{Via: "callback", User: v.User}}
	if v.Scope != nil {
		if *v.Scope < 1 {
			return a, fmt.Errorf("scope is %d: give a number from 1, as the question lists them", *v.Scope)
		}
		a.scope = *v.Scope
	}
	return a.checked(v.Answer)
}

// readSlack reads what Slack sends when a button is pressed.
func readSlack(body []byte) (order, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return order{}, errors.New("the request is no form")
	}
	var v struct {
		Type string `json:"type"`
		User struct {
			ID string `json:"id"`
		} `json:"user"`
		Team struct {
			ID string `json:"id"`
		} `json:"team"`
		Channel struct {
			ID string `json:"id"`
		} `json:"channel"`
		Actions []struct {
			ID    string `json:"action_id"`
			Block string `json:"block_id"`
			Value string `json:"value"`
		} `json:"actions"`
	}
	if err := json.Unmarshal([]byte(form.Get("payload")), &v); err != nil {
		return order{}, errors.New("the form has no payload in JSON")
	}
	if v.Type != "block_actions" || len(v.Actions) != 1 || v.Actions[0].Block != "weir" {
		return order{}, errors.New("the payload is not that of a button of a notification")
	}
	id, shown, _ := strings.Cut(v.Actions[0].Value, " ")
	a := order{id: id, user: v.User.ID, shown: shown, form: Slack, from: &event.Origin{Via: "slack", User: v.User.ID}}
	a.from.Chat = strings.Trim(plainID(v.Team.ID)+"/"+plainID(v.Channel.ID), "/")
	return a.checked(v.Actions[0].ID)
}

func plainID(s string) string {
	if len(s) > 64 {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r > ' ' && r <= '~' {
			return r
		}
		return -1
	}, s)
}

// checked completes a with what it answers, and says what is missing.
func (a order) checked(answer string) (order, error) {
	switch answer {
	case "approve":
		a.allow = true
	case "deny":
	default:
		return a, errors.New(`the answer is neither "approve" nor "deny"`)
	}
	switch {
	case a.id == "" || len(a.id) > 64:
		return a, errors.New("the answer names no question: give its id")
	case a.user == "":
		return a, errors.New("the answer names no user")
	case len(a.why) > maxReason:
		return a, fmt.Errorf("why has more than %d bytes", maxReason)
	case !a.allow && a.scope != 0:
		return a, errors.New("a denial has no scope")
	case a.allow && a.shown == "":
		return a, errors.New("an approval needs shown: the sha256 of the text that was shown")
	}
	return a, nil
}
