package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnnounce(t *testing.T) {
	usual := Default().Notify
	with := func(f func(*Notify)) Notify { a := usual; f(&a); return a }
	for _, c := range []struct {
		text string
		want Notify
	}{
		{"{}", usual},
		{"{callback: {}}", usual},
		{"{url: 'https://a.example.com/x?y=z', key_file: /k}", with(func(a *Notify) { a.URL, a.KeyFile = "https://a.example.com/x?y=z", "/k" })},
		{"{url: 'http://127.0.0.1:80/', key_env: K, proxy: 'http://proxy.example.com:3128'}",
			with(func(a *Notify) {
				a.URL, a.KeyEnv, a.Proxy = "http://127.0.0.1:80/", "K", "http://proxy.example.com:3128"
			})},
		{"{form: slack, url_file: /u}", with(func(a *Notify) { a.Form, a.URLFile = formSlack, "/u" })},
		{"{callback: {listen: '127.0.0.1:8787', key_file: /k, users: [alice, U012], window_seconds: 10}}", with(func(a *Notify) {
			a.Callback = Callback{Listen: "127.0.0.1:8787", KeyFile: "/k", Users: []string{"alice", "U012"}, Window: 10}
		})},
		{"{callback: {listen: '192.0.2.1:80', exposed: true, slack_key_env: S, users: [a]}}", with(func(a *Notify) {
			a.Callback = Callback{Listen: "192.0.2.1:80", Exposed: true, SlackKeyEnv: "S", Users: []string{"a"}, Window: 300}
		})},
		{"{callback: {listen: /run/c.sock, key_env: K, slack_key_file: /s, users: [a]}}", with(func(a *Notify) {
			a.Callback = Callback{Listen: "/run/c.sock", KeyEnv: "K", SlackKeyFile: "/s", Users: []string{"a"}, Window: 300}
		})},
	} {
		p, err := Parse("p", []byte("notify: "+c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if diff := cmp.Diff(c.want, p.Notify); diff != "" {
			t.Errorf("%s, want - got +\n%s", c.text, diff)
		}
	}
}

// B50: mistakes are told in one line, and nothing that may be a key is repeated.
func TestAnnounceMistakes(t *testing.T) {
	const key = "T000/B000/not-a-real-key"
	for _, c := range []struct{ text, want string }{
		{"x", `p:1:9: notify is "x": accepted is a mapping of form, url, url_file, key_file, key_env, proxy, callback`},
		{"{form: teams}", `p:1:16: notify.form is "teams": accepted are json, slack`},
		{"{key: " + key + "}", `p:1:10: unknown key "key" in notify: accepted are form, url, url_file, key_file, key_env, proxy, callback`},
		{"{url: 'https://a.example.com'}", `p:1:9: notify needs a key that signs: set notify.key_file or notify.key_env`},
		{"{url_file: /u}", `p:1:9: notify needs a key that signs: set notify.key_file or notify.key_env`},
		{"{url: 'https://a.example.com', url_file: /u, key_env: K}", `p:1:40: notify.url_file and notify.url are both set: keep one`},
		{"{url: 'http://chat.example.com/" + key + "', key_env: K}", `p:1:10: notify.url is http, so commands would go out in the clear: use https`},
		{"{url: 'https://u:" + key + "@a.example.com', key_env: K}", `p:1:10: notify.url is not an https URL such as https://alerts.example.com/weir`},
		{"{url: 'https://u:p@a.example.com', key_env: K}", `p:1:10: notify.url holds a user: leave it out, notifications are signed`},
		{"{url: 'https://a.example.com/#x', key_env: K}", `p:1:10: notify.url has a fragment: leave it out`},
		{"{url: 'ftp://a.example.com/', key_env: K}", `p:1:10: notify.url is not an https URL such as https://alerts.example.com/weir`},
		{"{url: 'https://a.example.com', key_env: K, key_file: /k}", `p:1:40: notify.key_env and notify.key_file are both set: keep one`},
		{"{url: 'https://a.example.com', key_env: " + key + "}", `p:1:40: notify.key_env is not the name of an environment variable such as WEIR_KEY: the key itself never stands in a policy`},
		{"{url: 'https://a.example.com', key_file: k}", `p:1:40: notify.key_file is not an absolute path: write one, such as /etc/weir/key; what the file holds never stands in a policy`},
		{"{url_file: u, key_env: K}", `p:1:10: notify.url_file is not an absolute path: write one, such as /etc/weir/key; what the file holds never stands in a policy`},
		{"{key_file: /k}", `p:1:10: notify.key_file is not used without notify.url or notify.url_file: set one of them, or leave it out`},
		{"{form: slack, url_file: /u, key_env: K}", `p:1:10: notify.form slack signs nothing: leave notify.key_file and notify.key_env out`},
		{"{url: 'https://a.example.com', key_env: K, proxy: proxy}", `p:1:52: notify.proxy is not an http or https URL such as https://models.example.com/v1`},
		{"{callback: 1}", `p:1:20: notify.callback is "1": accepted is a mapping of listen, exposed, key_file, key_env, slack_key_file, slack_key_env, users, window_seconds`},
		{"{callback: {users: [a]}}", `p:1:21: notify.callback.users is not used without notify.callback.listen: set it, or leave this out`},
		{"{callback: {listen: '127.0.0.1:80', users: [a]}}", `p:1:21: notify.callback.listen needs a key that answers are signed with: set notify.callback.key_file or slack_key_file`},
		{"{callback: {listen: '127.0.0.1:80', key_env: K}}", `p:1:21: notify.callback.listen needs notify.callback.users: name who may answer`},
		{"{callback: {listen: '127.0.0.1:80', key_env: K, users: []}}", `p:1:21: notify.callback.listen needs notify.callback.users: name who may answer`},
		{"{callback: {listen: '0.0.0.0:80', key_env: K, users: [a]}}", `p:1:21: notify.callback.listen is "0.0.0.0:80": containers can reach an address that is not loopback: listen on 127.0.0.1 or a Unix socket behind a proxy of yours, or set notify.callback.exposed: true`},
		{"{callback: {listen: 'localhost:80', key_env: K, users: [a]}}", `p:1:21: notify.callback.listen is "localhost:80": accepted is an IP address and port such as 127.0.0.1:8787 or [::1]:8787, or the absolute path of a Unix socket`},
		{"{callback: {listen: '127.0.0.1:0', key_env: K, users: [a]}}", `p:1:21: notify.callback.listen is "127.0.0.1:0": name a port`},
		{"{callback: {listen: /run/../c.sock, key_env: K, users: [a]}}", `p:1:21: notify.callback.listen is "/run/../c.sock": write it as "/c.sock"`},
		{"{callback: {listen: '127.0.0.1:80', key_env: K, users: [a, a]}}", `p:1:68: notify.callback.users has "a" twice: it stands on line 1 already`},
		{"{callback: {listen: '127.0.0.1:80', key_env: K, users: ['a b']}}", `p:1:65: notify.callback.users has "a b": a name is 1 to 64 letters, digits and signs, without blanks`},
		{"{callback: {listen: '127.0.0.1:80', slack_key_env: K, slack_key_file: /k, users: [a]}}", `p:1:45: notify.callback.slack_key_env and notify.callback.slack_key_file are both set: keep one`},
		{"{callback: {listen: '127.0.0.1:80', key_env: K, users: [a], window_seconds: 901}}", `p:1:85: notify.callback.window_seconds is "901": accepted are seconds from 10 to 900`},
	} {
		_, err := Parse("p", []byte("notify: "+c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}
