package event

import (
	"fmt"
	"strings"
)

// String tells where an answer came from, in a few words that are harmless for a
// terminal: "control, pts/3, ssh 192.0.2.7".
func (o Origin) String() string {
	parts := []string{Visible(o.Via)}
	add := func(format, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf(format, quote(value)))
		}
	}
	add("user %s", o.User)
	add("chat %s", o.Chat)
	add("%s", o.Terminal)
	client, _, _ := strings.Cut(o.SSH, " ")
	add("ssh %s", client)
	add("from %s", o.Address)
	if o.Terminal == "" && o.PID != 0 {
		add(fmt.Sprintf("pid %d %%s", o.PID), o.Exe)
	}
	return strings.Join(parts, ", ")
}
