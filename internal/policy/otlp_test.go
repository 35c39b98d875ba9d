package policy

import "testing"

func TestOTLP(t *testing.T) {
	for text, notes := range map[string]int{
		"{}": 1, // no guarded parent
		"{endpoint: 'https://otel.example.org:4318', headers_file: /h, ca_file: /a, cert_file: /c, key_file: /k, without: [exec], metrics_seconds: 0}": 1,
		"{endpoint: 'https://otel.example.org/in/'}":              1,
		"{endpoint: 'http://127.0.0.1:4318', headers_file: /h}":   1,
		"{endpoint: 'http://[::1]:4318'}":                         1,
		"{endpoint: 'http://localhost:4318'}":                     1,
		"{endpoint: 'http://otel-collector.monitoring.svc:4318'}": 2,
	} {
		if _, got, err := Check("p", []byte("otlp: "+text), Machine{}); err != nil || len(got) != notes {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestOTLPMistakes(t *testing.T) {
	const accepted = `accepted is the URL of a collector such as https://otel.example.org:4318, or "" for none`
	for text, want := range map[string]string{
		"on":                                       `p:1:7: otlp is "on": accepted is a mapping of endpoint, headers_file, ca_file, cert_file, key_file, without, metrics_seconds`,
		"{endpoint: 'otel:4318'}":                  `p:1:18: otlp.endpoint is "otel:4318": ` + accepted,
		"{endpoint: 'grpc://otel:4317'}":           `p:1:18: otlp.endpoint is "grpc://otel:4317": ` + accepted,
		"{endpoint: 'https://o/?a=b'}":             `p:1:18: otlp.endpoint is "https://o/?a=b": ` + accepted,
		"{endpoint: 'https://u:secret@o/'}":        `p:1:18: otlp.endpoint is "https://u:[hidden]@o/": it holds a user: write Authorization: Basic … into the file of otlp.headers_file`,
		"{headers_file: /h}":                       `p:1:8: otlp.headers_file is not used without otlp.endpoint: write one such as https://otel.example.org:4318, or leave this out`,
		"{endpoint: 'https://o', key_file: /k}":    `p:1:31: otlp.key_file needs otlp.cert_file, the file of its certificate`,
		"{endpoint: 'https://o', cert_file: /c}":   `p:1:31: otlp.cert_file needs otlp.key_file, the file of its key`,
		"{endpoint: 'http://o', headers_file: /h}": `p:1:8: otlp.endpoint is http: the headers of otlp.headers_file would go in the clear: write https://`,
		"{endpoint: 'http://o', ca_file: /h}":      `p:1:8: otlp.endpoint is http, and files of certificates are set: write https://`,
		"{endpoint: 'https://o', headers_file: h}": `p:1:31: otlp.headers_file is not an absolute path: write one, such as /etc/weir/key; what the file holds never stands in a policy`,
		"{without: [execs]}":                       `p:1:18: otlp.without has "execs": no kind of event: did you mean "exec"?`,
		"{metrics_seconds: 1m}":                    `p:1:25: otlp.metrics_seconds is "1m": accepted are seconds from 0 to 3600`,
	} {
		if _, err := Parse("p", []byte("otlp: "+text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}
