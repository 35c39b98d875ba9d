package notify

import (
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// docs/approvals.md: the worked example, run by a shell as it stands there, gives the
// documented signature, and the callback takes it.
func TestDocumentedSignature(t *testing.T) {
	data, err := os.ReadFile("../../docs/approvals.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(data), "```\nbody=")
	script, after, closed := strings.Cut("body="+rest, "```\n")
	if !found || !closed {
		t.Fatal("the example is not there")
	}
	documented := regexp.MustCompile("`sign` is\n`([0-9a-f]{64})`").FindStringSubmatch(after)
	if documented == nil {
		t.Fatal("the example's signature is not there")
	}
	body := regexp.MustCompile(`body='(.*)'`).FindStringSubmatch(script)[1]
	at := regexp.MustCompile(`at=(.*)`).FindStringSubmatch(script)[1]
	key := regexp.MustCompile(`-hmac '(.*?)'`).FindStringSubmatch(script)[1]
	if got := signature([]byte(key), purposeAnswer, at, []byte(body)); got != documented[1] {
		t.Errorf("signature %s, documented %s", got, documented[1])
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Fatal("openssl is needed to try the example: ", err)
	}
	lines := strings.Split(strings.TrimSpace(script), "\n")
	recipe := strings.Join(lines[:len(lines)-1], "\n") + "\necho $sign" // all but curl, which would need the port
	out, err := exec.Command("sh", "-c", recipe).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != documented[1] {
		t.Errorf("the recipe gives %s, %v", out, err)
	}
	c := serve(t, func(o *CallbackOptions) { o.Key = key })
	c.now = time.Unix(1800000000, 0)
	c.put(ask("abc234"))
	code, text := c.post("/v1/answer", at, "v1="+documented[1], body)
	if code != 200 || !strings.Contains(string(data), "| 200 `"+text+"` |") {
		t.Errorf("the callback answers %d %s", code, text)
	}
}

// Every counter and bound that is documented is there.
func TestDocumentedNames(t *testing.T) {
	data, err := os.ReadFile("../../docs/approvals.md")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{headerTime, headerSign, pathAnswer, pathSlack, unsignedText}
	for name := range (&Notifier{}).Counters() {
		names = append(names, "`"+name+"`")
	}
	for name := range (&Callback{}).Counters() {
		names = append(names, "`"+name+"`")
	}
	for _, name := range names {
		if !strings.Contains(string(data), name) {
			t.Errorf("docs/approvals.md does not tell of %s", name)
		}
	}
}

// Every status that the callback answers with has a row, and so has each text of a 401.
func TestDocumentedAnswers(t *testing.T) {
	doc, err := os.ReadFile("../../docs/approvals.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("callback.go")
	if err != nil {
		t.Fatal(err)
	}
	for code := 200; code < 600; code++ {
		given := strings.Contains(string(source), "http.Status"+strings.ReplaceAll(http.StatusText(code), " ", "")) && http.StatusText(code) != ""
		row := regexp.MustCompile(`(?m)^\|( [0-9]+,)* ` + strconv.Itoa(code) + `[ ,]`).Match(doc)
		if given != row {
			t.Errorf("status %d is given: %v, documented: %v", code, given, row)
		}
	}
	for _, text := range regexp.MustCompile(`http\.StatusUnauthorized, (?:fmt\.Sprintf\()?"(refused: [a-z ]+)`).FindAllStringSubmatch(string(source), -1) {
		if !strings.Contains(string(doc), "| 401 `"+text[1]) {
			t.Errorf("docs/approvals.md has no row 401 %q", text[1])
		}
	}
}
