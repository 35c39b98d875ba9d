// Package strict reads the input of tools: one JSON object whose fields are known by their exact names, each at most once. The
// standard decoder takes a field in any case and the last of several, so that two readers of one text could see two requests. What it refuses
// is shown in ASCII.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Decode reads an object into a struct, whose fields are those of its json tags.
func Decode(data []byte, into any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	if !utf8.Valid(data) {
		return errors.New("the input is not UTF-8")
	}
	known := names(into)
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.New("the input is no JSON object")
	}
	var seen []string
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return errors.New("the input is no JSON object")
		}
		if !slices.Contains(known, name) {
			return fmt.Errorf("the field %s is unknown: known are %s", Quote(name), strings.Join(known, ", "))
		}
		if slices.Contains(seen, name) {
			return fmt.Errorf("the field %s stands twice", name)
		}
		seen = append(seen, name)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return errors.New("the input is no JSON object")
		}
	}
	if _, err := dec.Token(); err != nil {
		return errors.New("the input is no JSON object")
	}
	if !Ended(dec) {
		return errors.New("something follows the input's object")
	}
	err := json.Unmarshal(data, into)
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("the field %s is a %s: wanted is a %s", kind.Field, kind.Value, kind.Type)
	}
	return err
}

// Ended says that nothing follows. The decoder's More does not: it takes a closing bracket for an end.
func Ended(dec *json.Decoder) bool {
	_, err := dec.Token()
	return errors.Is(err, io.EOF)
}

func names(into any) []string {
	t := reflect.TypeOf(into).Elem()
	var all []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		all = append(all, name)
	}
	return all
}

// MostQuoted is how many bytes of a text Quote shows.
const MostQuoted = 80

// Quote shows a text of any origin in ASCII, cut to a length that fits a line.
func Quote(s string) string {
	if len(s) > MostQuoted {
		return strconv.QuoteToASCII(s[:MostQuoted]) + "…"
	}
	return strconv.QuoteToASCII(s)
}
