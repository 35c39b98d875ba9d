package policy

import (
	"strings"
	"testing"
)

// TestFleetMistakes: each mistake in fleet is one line, which repeats no secret.
func TestFleetMistakes(t *testing.T) {
	const key = "3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs="
	for text, want := range map[string]string{
		"node: a b":                             "accepted is a name such as build-07",
		"node: a..b":                            "accepted is a name such as build-07",
		"node: '*'":                             "accepted is a name such as build-07",
		"prefix: a.b":                           "accepted is a word such as weir",
		"prefix: '>'":                           "accepted is a word such as weir",
		"servers: [nats.example]":               "not a URL such as tls://nats.example.org:4222",
		"servers: ['https://nats.example.org']": "not a URL such as tls://nats.example.org:4222",
		"servers: ['nats://nats.example.org']":  "write tls://",
		"servers: ['nats://192.0.2.1']":         "write tls://",
		"servers: ['tls://user:hunter2-hunter2@nats.example.org']":               "it holds a user",
		"creds_file: SUAIBDPBAUTWCWBKIO6XHQNINK5FWJW4OHLXC3HQ2KFE4PEJUA44CNHTC4": "not an absolute path",
		"operators: [alice]":                                                                                               "accepted is a mapping of name, key, roles",
		"operators: [{name: a, roles: [answer]}]":                                                                          "an item without key",
		"operators: [{name: a, key: '" + key + "'}]":                                                                       "an item without roles",
		"operators: [{name: a, key: '" + key[:40] + "', roles: [answer]}]":                                                 "not a public key",
		"operators: [{name: a, key: '" + key + "', roles: [approve]}]":                                                     "unknown role",
		"operators: [{name: a b, key: '" + key + "', roles: [answer]}]":                                                    "without blanks",
		"operators: [{name: a, key: '" + key + "', roles: [answer]}, {name: b, key: '" + key + "', roles: [answer]}]":      "a key of their own",
		"operators: [{name: a, key: '" + key + "', roles: [answer]}, {name: a, key: 'A" + key[1:] + "', roles: [answer]}]": `the name "a" twice`,
		"operators: [{name: a, key: '" + key + "', roles: [answer]}, {name: A, key: 'A" + key[1:] + "', roles: [answer]}]": `the name "A" twice`,
		"label: weir.agent": "fleet.identity is not on",
		"two_people: true":  "0 of fleet.operators may answer",
		"two_people: true\n  operators: [{name: a, key: '" + key + "', roles: [answer]}, {name: b, key: 'A" + key[1:] + "', roles: [seal]}]": "1 of fleet.operators may answer",
		"revoked: [alice]": "not a public key",
	} {
		_, err := Parse("p", []byte("fleet:\n  "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "SUAIB") {
			t.Errorf("%s: %v, want one line with %q", text, err, want)
		}
	}
	// A stolen key is revoked by this alone, also if too few are left to approve anything.
	if _, err := Parse("p", []byte("fleet:\n  two_people: true\n  operators: [{name: a, key: '"+key+"', roles: [answer]}, {name: b, key: 'A"+key[1:]+"', roles: [answer]}]\n  revoked: ['"+key+"']\n")); err != nil {
		t.Error(err)
	}
}
