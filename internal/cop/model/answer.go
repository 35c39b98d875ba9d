package model

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"weir/internal/cop"
	"weir/internal/strict"
)

const maxAnswer = 8 << 10 // bytes of an answer

// schema is what a model is told to answer. decode does not rely on it.
func schema() map[string]any {
	return map[string]any{
		"type": "object",
		"properties": map[string]any{
			"flagged": map[string]any{"type": "boolean", "description": "true if the command is suspicious"},
			"reason":  map[string]any{"type": "string", "description": "one short sentence for the person who reads the log"},
		},
		"required":             []string{"flagged", "reason"},
		"additionalProperties": false,
	}
}

// decode reads {"flagged": bool, "reason": "..."} and nothing else: no prose around
// it, no other key, no key twice or in other letters, nothing missing.
func decode(answer string) (cop.Opinion, error) {
	if len(answer) > maxAnswer || !utf8.ValidString(answer) {
		return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: too long, or not text")
	}
	dec := json.NewDecoder(strings.NewReader(answer))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: not a JSON object")
	}
	var out cop.Opinion
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		name, _ := key.(string)
		if err != nil || seen[name] {
			return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: broken JSON or a key twice")
		}
		seen[name] = true
		value, err := dec.Token()
		if err != nil {
			return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: broken JSON")
		}
		ok := false
		switch name {
		case "flagged":
			out.Flagged, ok = value.(bool)
		case "reason":
			out.Reason, ok = value.(string)
			ok = ok && strings.TrimSpace(out.Reason) != "" && len(out.Reason) <= cop.MaxReason
		}
		if !ok {
			return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: a key that is not accepted, or a value of the wrong kind")
		}
	}
	if _, err := dec.Token(); err != nil {
		return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: broken JSON")
	}
	if !strict.Ended(dec) {
		return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: more than one JSON object")
	}
	if len(seen) != 2 {
		return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: a key is missing")
	}
	return out, nil
}
