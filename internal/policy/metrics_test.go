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
	const accepted = "accepted are unix, off, and an address and port on loopback such as 127.0.0.1:9464"
	for text, want := range map[string]string{
		"on":                         `p:1:10: metrics is "on": accepted is a mapping of listen`,
		"{port: 1}":                  `p:1:11: unknown key "port" in metrics: accepted are listen`,
		"{listen: }":                 "p:1:19: metrics.listen is empty: " + accepted,
		"{listen: 9464}":             `p:1:19: metrics.listen is "9464": ` + accepted,
		"{listen: [unix]}":           "p:1:19: metrics.listen is a list: " + accepted,
		"{listen: /run/m.sock}":      `p:1:19: metrics.listen is "/run/m.sock": ` + accepted,
		"{listen: 'localhost:9464'}": `p:1:19: metrics.listen is "localhost:9464": ` + accepted,
		"{listen: '[::1%lo]:9464'}":  `p:1:19: metrics.listen is "[::1%lo]:9464": ` + accepted,
		"{listen: '127.0.0.1:0'}":    `p:1:19: metrics.listen is "127.0.0.1:0": name a port`,
		"{listen: '0.0.0.0:9464'}":   `p:1:19: metrics.listen is "0.0.0.0:9464": containers can reach an address that is not loopback: name 127.0.0.1 or [::1], or unix`,
		"{listen: '192.0.2.1:9464'}": `p:1:19: metrics.listen is "192.0.2.1:9464": containers can reach an address that is not loopback: name 127.0.0.1 or [::1], or unix`,
	} {
		if _, err := Parse("p", []byte("metrics: "+text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}
