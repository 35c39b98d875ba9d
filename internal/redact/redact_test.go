package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

// awkward has characters that every encoding changes.
const awkward = "p@ss/w+rd=\"é\\%41&<k> ñ😀'x"

func random(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// spellings gives what servers make of a secret.
func spellings(secret []byte) map[string]string {
	all := map[string]string{"raw": string(secret), "bearer": "Bearer " + string(secret)}
	for shift := range 3 {
		text := append([]byte("abc"[:shift]), secret...)
		for tail := range 3 {
			for name, enc := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding, "raw": base64.RawStdEncoding, "rawurl": base64.RawURLEncoding} {
				all[fmt.Sprintf("base64 %s %d %d", name, shift, tail)] = enc.EncodeToString(append(bytes.Clone(text), "xyz"[:tail]...))
			}
		}
	}
	all["basic"] = "Basic " + base64.StdEncoding.EncodeToString(append([]byte("user:"), secret...))
	all["hex"] = hex.EncodeToString(secret)
	all["HEX"] = strings.ToUpper(hex.EncodeToString(secret))
	for name, text := range map[string]string{"raw": string(secret), "basic": all["basic"]} {
		all[name+" query"] = url.QueryEscape(text)
		all[name+" path"] = url.PathEscape(text)
		all[name+" query, lower"] = lowerPercent(url.QueryEscape(text))
		all[name+" every byte"] = everyByte(text)
		all[name+" html"] = html.EscapeString(text)
		all[name+" slashes"] = strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), "/", `\/`)
		if strings.ToValidUTF8(text, "") == text {
			quoted, _ := json.Marshal(text)
			all[name+" json"] = string(quoted)
			all[name+" ascii json"] = ascii(text)
		}
	}
	return all
}

func lowerPercent(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:], bytes.ToLower(out[i+1:i+3]))
		}
	}
	return string(out)
}

func everyByte(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

func scrubber(t testing.TB, secrets ...[]byte) *Scrubber {
	t.Helper()
	s, err := New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// through writes a text in steps.
func through(s *Scrubber, text string, step int) string {
	var out bytes.Buffer
	w := s.Writer(&out)
	w.block = s.hold + 1 // every boundary shall count
	for len(text) > 0 {
		n := min(step, len(text))
		io.WriteString(w, text[:n])
		text = text[n:]
	}
	w.Close()
	return out.String()
}

// V5: every form, however it is cut.
func TestEveryFormV5(t *testing.T) {
	for _, secret := range [][]byte{[]byte("ghp_0123456789abcdefghij"), []byte(awkward), random(40), []byte("12345678"), []byte("a b+c d%20e")} {
		s := scrubber(t, secret)
		for name, form := range spellings(secret) {
			text := "before: " + form + " :after"
			for _, step := range []int{len(text), 1, 2, 7} {
				out := through(s, text, step)
				if !strings.Contains(out, s.Marker()) || !strings.HasPrefix(out, "before: ") || !strings.HasSuffix(out, " :after") {
					t.Errorf("%q, %s, by %d: %q", secret, name, step, out)
				}
				for other, form := range spellings(secret) {
					if other != "bearer" && !strings.HasPrefix(other, "base64") && strings.Contains(out, form) {
						t.Errorf("%q, %s, by %d: %s is left: %q", secret, name, step, other, out)
					}
				}
				if spans := s.spans([]byte(out), false); len(spans) > 0 {
					t.Errorf("%q, %s: a second pass finds more", secret, name)
				}
			}
		}
	}
}

func TestOtherTextStays(t *testing.T) {
	s := scrubber(t, []byte("ghp_0123456789abcdefghij"), []byte(awkward))
	for _, text := range []string{"", "x", "ghp_0123456789abcdefghi", "hp_0123456789abcdefghij", "%%%\\\\\\\\&&&;\\u12\\uD800+", strings.Repeat("ghp_0123456789", 9999)} {
		for _, step := range []int{1, 3, 1 << 20} {
			if step == 1 && len(text) > 1000 {
				continue
			}
			if out := through(s, text, step); out != text {
				t.Errorf("%.60q became %.60q", text, out)
			}
		}
	}
}

// V5: many secrets among text full of halves of escapes, across the blocks of a stream.
func TestLongStreamsV5(t *testing.T) {
	secret := []byte(awkward)
	s := scrubber(t, secret)
	var text, want bytes.Buffer
	r := rand.New(rand.NewPCG(3, 4))
	quoted, _ := json.Marshal(awkward)
	for range 3000 {
		noise := make([]byte, r.IntN(400))
		for i := range noise {
			noise[i] = "abcdef \\\\%&+;u0123"[r.IntN(18)]
		}
		noise = append(noise, '|', '\n') // ends what an odd backslash began
		text.Write(noise)
		want.Write(noise)
		if r.IntN(2) == 0 {
			text.Write(quoted[1 : len(quoted)-1])
		} else {
			text.WriteString(awkward)
		}
		want.WriteString(s.Marker())
	}
	for _, step := range []int{1 << 20, 4096, 333} {
		var out bytes.Buffer
		w := s.Writer(&out)
		for rest := text.Bytes(); len(rest) > 0; {
			n := min(step, len(rest))
			w.Write(rest[:n])
			rest = rest[n:]
		}
		w.Close()
		if !bytes.Equal(out.Bytes(), want.Bytes()) {
			t.Errorf("by %d: %d bytes, want %d", step, out.Len(), want.Len())
		}
	}
}

func TestSecretsThatCannotBeFound(t *testing.T) {
	for _, bad := range []string{"", "short", "aaaaaaaaaaaaaaaa", strings.Repeat("ab", 3000), "[<{(*#~|^!@$,;:?"} {
		if _, err := New([]byte(bad)); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	s := scrubber(t, []byte("[removed"))
	if out := s.String("x[removedx"); strings.Contains(out, "[removed") {
		t.Error(out)
	}
}

func TestWipe(t *testing.T) {
	s := scrubber(t, []byte(awkward))
	forms := s.find.forms
	s.Wipe()
	for _, f := range forms {
		if len(bytes.Trim(f.text, "\x00")) > 0 {
			t.Errorf("%q is left", f.text)
		}
	}
}

// V5: a stream that ends early shows no beginning of a secret.
func TestCutShowsNoPartOfASecretV5(t *testing.T) {
	s := scrubber(t, []byte(awkward))
	for n := range len(awkward) {
		var out bytes.Buffer
		w := s.Writer(&out)
		io.WriteString(w, strings.Repeat("x", 5000)+awkward[:n])
		if err := w.Cut(); err != nil || strings.Trim(out.String(), "x") != "" {
			t.Errorf("%d bytes: %q %v", n, out.String(), err)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestWriterTellsErrors(t *testing.T) {
	w := scrubber(t, []byte(awkward)).Writer(broken{})
	_, err := w.Write(make([]byte, 1<<20))
	if err == nil || w.Close() == nil {
		t.Error("no error")
	}
}

// No output contains a form, however the text was cut; all other text is as it was.
func FuzzScrub(f *testing.F) {
	f.Add([]byte("ghp_0123456789abcdef"), []byte("x"), []byte("y"), uint8(1), uint8(3))
	f.Add([]byte(awkward), []byte("\\\\\\"), []byte("%25"), uint8(9), uint8(1))
	f.Add([]byte("n\"secret\\n"), []byte("\\\\"), []byte("\\\""), uint8(12), uint8(2))
	f.Fuzz(func(t *testing.T, secret, before, after []byte, kind, step uint8) {
		if len(secret) > 64 || len(before)+len(after) > 512 {
			return // the writer starts anew with every byte here
		}
		s, err := New(secret)
		if err != nil {
			return
		}
		forms := spellings(secret)
		names := make([]string, 0, len(forms))
		for name := range forms {
			names = append(names, name)
		}
		name := names[int(kind)%len(names)]
		text := string(before) + "|" + forms[name] + "|" + string(after)
		whole := through(s, text, len(text))
		if cut := through(s, text, int(step)+1); cut != whole {
			t.Fatalf("%q (%s) cut by %d: %q, whole %q", text, name, step, cut, whole)
		}
		if left := s.spans([]byte(whole), false); len(left) > 0 {
			t.Fatalf("%q has the secret still: %v of %q", text, left, whole)
		}
		if !strings.Contains(whole, s.Marker()) {
			t.Fatalf("%q (%s): nothing was found", text, name)
		}
		// The slow way: what stands between markers stands in the text, in order.
		rest := text
		for i, part := range strings.Split(whole, s.Marker()) {
			at := strings.Index(rest, part)
			if at < 0 || i == 0 && at > 0 && !strings.Contains(text, s.Marker()) {
				t.Fatalf("%q was not in %q", part, text)
			}
			rest = rest[at+len(part):]
		}
		if plain := string(before); len(s.spans(before, false)) == 0 && s.String(plain) != plain {
			t.Fatalf("%q was changed", plain)
		}
	})
}

func BenchmarkScrub(b *testing.B) {
	var doc bytes.Buffer
	for i := range 4000 {
		fmt.Fprintf(&doc, `{"id":%d,"name":"item %d","url":"https://api.example.com/v1/items/%d","text":"the quick brown fox said \"no\"\n"},`, i, i*7, i)
	}
	plain := bytes.ReplaceAll(bytes.ReplaceAll(doc.Bytes(), []byte(`\"`), []byte("'")), []byte(`\n`), nil)
	noise := random(1 << 20)
	for _, bb := range []struct {
		name string
		text []byte
	}{{"json", plain}, {"json with escapes", doc.Bytes()}, {"random", noise}} {
		b.Run(bb.name, func(b *testing.B) {
			s, err := New([]byte("ghp_0123456789abcdefghijklmnopqrstuvwxyz"))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(bb.text)))
			for b.Loop() {
				w := s.Writer(io.Discard)
				w.Write(bb.text)
				w.Close()
			}
		})
	}
}
