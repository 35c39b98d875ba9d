package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/policy"
)

// B50: what is wrong with keys and addresses ends the start, in one line that names
// the key of the policy and repeats no secret.
func TestAnnounceMistakesEndTheStart(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", "not-a-real-key-0123456789", 0o600)
	url := "url: 'https://alerts.example.com/'"
	for _, tt := range []struct{ text, want string }{
		{"{" + url + ", key_file: " + dir + "/none}", "notify.key_file: read key: open "},
		{"{" + url + ", key_file: " + file("open", "not-a-real-key-0123456789", 0o644) + "}", "chmod 600"},
		{"{" + url + ", key_file: " + file("short", "secret", 0o600) + "}", "the key has 6 bytes: make one of at least 16"},
		{"{" + url + ", key_env: WEIR_TEST_UNSET}", "environment variable WEIR_TEST_UNSET is empty"},
		{"{form: slack, url_file: " + file("url", "T000/not-a-url", 0o600) + "}", "the URL is not an http or https URL"},
		{"{callback: {listen: '127.0.0.1:1', key_file: " + dir + "/none, users: [a]}}", "notify.callback.key_file: read key: open "},
		{"{callback: {listen: '127.0.0.1:1', slack_key_env: WEIR_TEST_UNSET, users: [a]}}", "notify.callback.slack_key_file: read key: environment"},
		{"{callback: {listen: " + good + ", key_file: " + good + ", users: [a]}}", "is there and is no socket: remove it"},
	} {
		p, err := policy.Parse("p", []byte("notify: "+tt.text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = openNotifier(p.Notify, &daemon{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") ||
			strings.Contains(err.Error(), "not-a-real") || strings.Contains(err.Error(), "T000") {
			t.Errorf("%s: got %v, want %q", tt.text, err, tt.want)
		}
	}
	p, err := policy.Parse("p", []byte("notify: {"+url+", key_file: "+good+"}"))
	if err != nil {
		t.Fatal(err)
	}
	if a, err := openNotifier(p.Notify, &daemon{}); err != nil || a.teller == nil || a.callback != nil {
		t.Errorf("%v, %+v", err, a)
	}
}
