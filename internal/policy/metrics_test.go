package policy

import "testing"

func TestMetrics(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                               MetricsUnix,
		"{listen: unix}":                   MetricsUnix,
		"{listen: off}":                    MetricsOff,
		"{listen: '127.0.0.1:9464'}":       "127.0.0.1:9464",
		"{listen: '[::1]:9464'}":           "[::1]:9464",
		"{listen: '127.9.9.9:1'}":          "127.9.9.9:1",
		"{listen: '[::ffff:127.0.0.1]:1'}": "[::ffff:127.0.0.1]:1",
	} {
		p, err := Parse("p", []byte("metrics: "+text))
		if err != nil || p.Metrics.Listen != want {
			t.Errorf("%s: %q, %v: want %q", text, p.Metrics.Listen, err, want)
		}
	}
}

func TestMetricsMistakes(t *testing.T) {
	const accepted = "accepted are unix, off, and an IP address and port such as 127.0.0.1:9464 or, in quotes, [::1]:9464"
	for text, want := range map[string]string{
		"on":                         `p:1:10: metrics is "on": accepted is a mapping of listen, token_file, cert_file, key_file`,
		"{port: 1}":                  `p:1:11: unknown key "port" in metrics: accepted are listen, token_file, cert_file, key_file`,
		"{listen: }":                 "p:1:19: metrics.listen is empty: " + accepted,
		"{listen: 9464}":             `p:1:19: metrics.listen is "9464": ` + accepted,
		"{listen: [unix]}":           "p:1:19: metrics.listen is a list: " + accepted,
		"{listen: /run/m.sock}":      `p:1:19: metrics.listen is "/run/m.sock": ` + accepted,
		"{listen: 'localhost:9464'}": `p:1:19: metrics.listen is "localhost:9464": ` + accepted,
		"{listen: '[::1%lo]:9464'}":  `p:1:19: metrics.listen is "[::1%lo]:9464": ` + accepted,
		"{listen: '127.0.0.1:0'}":    `p:1:19: metrics.listen is "127.0.0.1:0": name a port`,
		"{listen: '0.0.0.0:9464'}":   `p:1:11: metrics.listen is "0.0.0.0:9464": others can reach an address that is not loopback: add metrics.token_file: /etc/weir/metrics.token, the file of a token that each request needs, or listen on 127.0.0.1`,
		"{listen: '192.0.2.1:9464'}": `p:1:11: metrics.listen is "192.0.2.1:9464": others can reach an address that is not loopback: add metrics.token_file: /etc/weir/metrics.token, the file of a token that each request needs, or listen on 127.0.0.1`,

		"{token_file: /t}":                                        "p:1:11: metrics.token_file is not used without a port: write one in metrics.listen, such as 0.0.0.0:9464, or leave this out",
		"{listen: off, cert_file: /c}":                            "p:1:24: metrics.cert_file is not used without a port: write one in metrics.listen, such as 0.0.0.0:9464, or leave this out",
		"{listen: '0.0.0.0:9464', token_file: t}":                 `p:1:35: metrics.token_file is not an absolute path: write one, such as /etc/weir/key; what the file holds never stands in a policy`,
		"{listen: '0.0.0.0:9464', token_file: ''}":                "p:1:47: metrics.token_file: accepted is the absolute path of a file, without blanks",
		"{listen: '0.0.0.0:9464', token_file: /t, cert_file: /c}": "p:1:51: metrics.cert_file needs metrics.key_file, the file of its key",
		"{listen: '127.0.0.1:9464', key_file: /k}":                "p:1:37: metrics.key_file needs metrics.cert_file, the file of its certificate",
		"{listen: '[::]:9464', cert_file: /c, key_file: /k}":      `p:1:11: metrics.listen is "[::]:9464": others can reach an address that is not loopback: add metrics.token_file: /etc/weir/metrics.token, the file of a token that each request needs, or listen on 127.0.0.1`,
	} {
		if _, err := Parse("p", []byte("metrics: "+text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

// TestF41Metrics: a port that others can reach takes a token, and better HTTPS (F41).
func TestF41Metrics(t *testing.T) {
	for text, want := range map[string]struct {
		metrics Metrics
		notes   int
	}{
		"{listen: '0.0.0.0:9464', token_file: /t}":                                    {Metrics{"0.0.0.0:9464", "/t", "", ""}, 2},
		"{listen: '[2001:db8::1]:9464', token_file: /t, cert_file: /c, key_file: /k}": {Metrics{"[2001:db8::1]:9464", "/t", "/c", "/k"}, 1},
		"{listen: '127.0.0.1:9464', token_file: /t}":                                  {Metrics{"127.0.0.1:9464", "/t", "", ""}, 1},
		"{listen: '127.0.0.1:9464', cert_file: /c, key_file: /k}":                     {Metrics{"127.0.0.1:9464", "", "/c", "/k"}, 1},
	} {
		p, notes, err := Check("p", []byte("metrics: "+text), Machine{})
		if err != nil || p.Metrics != want.metrics || len(notes) != want.notes { // one is that nothing is guarded
			t.Errorf("%s: %+v, %v, %v", text, p.Metrics, notes, err)
		}
	}
}
