package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The lengths of a secret, in bytes. What is shorter would be found where it is not.
const (
	Least = 8
	Most  = 4096
)

const std, urls = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// form is one spelling of a secret.
type form struct {
	text []byte
	fold bool // its letters count in any case
	join bool // white space may stand in it; it has none itself
	// again says of each byte how many from there on are those of the beginning, in any case.
	again []int
	// In base64, the characters before and after share their bits with what stands there: masks and bits of the secret's share.
	edges         *edges
	before, after edge
}

type edges struct{ alphabet string }

// edge is what a secret says of a shared character; a mask of 0: there is none.
type edge struct{ mask, bits byte }

// plainLen is the length from which a secret cannot be an ordinary word or number.
const plainLen = 16

// mixed says whether a text has letters as well as digits, or is long.
func mixed(text []byte) bool {
	letters, digits := false, false
	for _, c := range text {
		letters = letters || lower[c] != other[lower[c]]
		digits = digits || c >= '0' && c <= '9'
	}
	return letters && digits || len(text) >= plainLen
}

// formsOf lists the spellings of a secret; escapes are undone when they are looked for. Of a short secret that may be a word, its own case
// counts, and of a short one that it stands in one piece, or it would be found in ordinary text.
func formsOf(secret []byte) []form {
	var forms []form
	add := func(f form) {
		for _, have := range forms {
			if bytes.Equal(have.text, f.text) {
				return
			}
		}
		forms = append(forms, f)
	}
	fold := mixed(secret)
	join := len(without(secret)) >= plainLen
	raw := func(text []byte) {
		bare := without(text)
		add(form{text: text, fold: fold, join: join && len(bare) == len(text)})
		if join && len(bare) < len(text) {
			add(form{text: bare, fold: fold, join: true})
		}
	}
	raw(bytes.Clone(secret))
	for shift := range 3 {
		for _, alphabet := range []string{std, urls} {
			add(inBase64(secret, shift, alphabet))
		}
	}
	add(form{text: hex.AppendEncode(nil, secret), fold: true, join: true})
	if fold {
		raw(backwards(secret))
	}
	if !utf8.Valid(secret) {
		return forms
	}
	var little, big []byte
	for _, u := range utf16.Encode([]rune(string(secret))) {
		little = append(little, byte(u), byte(u>>8))
		big = append(big, byte(u>>8), byte(u))
	}
	raw(little)
	raw(big)
	if fold && bytes.ContainsFunc(secret, func(r rune) bool { return r >= utf8.RuneSelf }) { // what is no ASCII is compared as it is
		runes := []rune(string(secret))
		slices.Reverse(runes)
		for _, text := range [][]byte{bytes.Clone(secret), []byte(string(runes))} {
			raw(text)
			raw(bytes.ToUpper(text))
			raw(bytes.ToLower(text))
		}
	}
	return forms
}

// without is a text without its white space.
func without(text []byte) []byte {
	bare := make([]byte, 0, len(text))
	for _, c := range text {
		if !space[c] {
			bare = append(bare, c)
		}
	}
	return bare
}

func backwards(text []byte) []byte {
	text = bytes.Clone(text)
	slices.Reverse(text)
	return text
}

// inBase64 gives the characters that a secret alone decides when shift bytes stand before it.
func inBase64(secret []byte, shift int, alphabet string) form {
	padded := append(make([]byte, shift), secret...)
	encoded := make([]byte, base64.RawStdEncoding.EncodedLen(len(padded)))
	base64.NewEncoding(alphabet).WithPadding(base64.NoPadding).Encode(encoded, padded)
	clear(padded)
	first := (shift*8 + 5) / 6
	last := len(padded) * 8 / 6
	f := form{edges: &edges{alphabet}, fold: true, join: true}
	if n := shift * 8 % 6; n > 0 { // the secret's share of the character before: its low bits
		f.before = edge{mask: 1<<(6-n) - 1, bits: byte(strings.IndexByte(alphabet, encoded[first-1]))}
		f.before.bits &= f.before.mask
	}
	if n := len(padded) * 8 % 6; n > 0 { // of the one after: its high bits
		f.after = edge{mask: 0x3f &^ (1<<(6-n) - 1), bits: byte(strings.IndexByte(alphabet, encoded[last]))}
		f.after.bits &= f.after.mask
	}
	f.text = bytes.Clone(encoded[first:last])
	clear(encoded)
	return f
}

// shares says whether a character is what a secret leaves in it.
func (f form) shares(e edge, c byte, exact bool) bool {
	if e.mask == 0 {
		return false
	}
	if !exact && f.shares(e, other[c], true) {
		return true
	}
	at := strings.IndexByte(f.edges.alphabet, c)
	return at >= 0 && byte(at)&e.mask == e.bits
}

// markers stand for what was taken out. One is chosen whose brackets no secret has, so that it can be a part of none.
var markers = []string{"[removed]", "<removed>", "{removed}", "(removed)", "*removed*", "#removed#", "~removed~", "|removed|", "^removed^",
	"!removed!", "@removed@", "$removed$", ",removed,", ";removed;", ":removed:", "?removed?"}

func markerFor(secrets [][]byte) (string, error) {
	for _, m := range markers {
		free := true
		for _, s := range secrets {
			free = free && bytes.IndexByte(s, m[0]) < 0 && bytes.IndexByte(s, m[len(m)-1]) < 0
		}
		if free {
			return m, nil
		}
	}
	return "", errors.New("redact: the secret uses every kind of bracket and sign")
}

// Check says whether a secret can be taken out of texts. The error does not repeat it.
func Check(secret []byte) error {
	switch {
	case len(secret) < Least:
		return fmt.Errorf("the secret has %d bytes: %d are the least, or it could not be told from other text", len(secret), Least)
	case len(secret) > Most:
		return fmt.Errorf("the secret has %d bytes: %d are the most", len(secret), Most)
	case bytes.Count(secret, secret[:1]) == len(secret):
		return errors.New("the secret is one character again and again: it could not be told from other text")
	}
	_, err := markerFor([][]byte{secret})
	return err
}
