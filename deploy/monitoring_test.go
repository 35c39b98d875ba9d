package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// exported are the labels of each series, and whether it is a counter: those of docs/metrics.md, which internal/metrics compares with what
// the sensor exports.
func exported(t *testing.T) map[string]series {
	t.Helper()
	doc, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]series{}
	word := regexp.MustCompile(`\w+`)
	for _, m := range regexp.MustCompile("(?m)^\\| `(weir_[a-z_]+)` \\| (counter|gauge|histogram) \\| ([^|]*) \\|").FindAllStringSubmatch(string(doc), -1) {
		s := series{append(word.FindAllString(m[3], -1), "instance"), m[2] == "counter"}
		if m[2] == "histogram" {
			m[1], s = m[1]+"_bucket", series{append(s.labels, "le"), true}
		}
		all[m[1]] = s
	}
	if len(all) < 30 {
		t.Fatalf("docs/metrics.md has %d series", len(all))
	}
	return all
}

type series struct {
	labels  []string
	counter bool
}

var (
	used    = regexp.MustCompile(`(\w+\()?(weir_[a-z_]+)(?:\{([^}]*)\})?`)
	matched = regexp.MustCompile(`(\w+)=`)
	summed  = regexp.MustCompile(`by \(([^)]*)\)`)
	shown   = regexp.MustCompile(`\{\{ ?(?:\$labels\.)?(\w+) ?\}\}`)
)

// check says what is wrong with an expression and the text that shows its labels.
func check(t *testing.T, all map[string]series, expr, text string) {
	t.Helper()
	var labels []string
	names := used.FindAllStringSubmatch(expr, -1)
	if len(names) == 0 {
		t.Errorf("%s: no series", expr)
	}
	for _, m := range names {
		s, ok := all[m[2]]
		if !ok {
			t.Errorf("%s: the sensor exports no %s", expr, m[2])
		}
		if rated := m[1] == "rate(" || m[1] == "increase("; rated != s.counter {
			t.Errorf("%s: %s is a counter: %v, and rated: %v", expr, m[2], s.counter, rated)
		}
		for _, label := range matched.FindAllStringSubmatch(m[3], -1) {
			if !slices.Contains(s.labels, label[1]) {
				t.Errorf("%s: %s has no label %s", expr, m[2], label[1])
			}
		}
		labels = append(labels, s.labels...)
	}
	if by := summed.FindAllStringSubmatch(expr, -1); by != nil {
		left := strings.Split(by[0][1], ", ")
		for _, label := range left {
			if !slices.Contains(labels, label) {
				t.Errorf("%s: no label %s", expr, label)
			}
		}
		labels = left
	}
	for _, m := range shown.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(labels, m[1]) {
			t.Errorf("%s: %s shows %s, which it does not have", expr, text, m[1])
		}
	}
}

// Alerts and the dashboard speak of series and labels that the sensor exports.
func TestMonitoring(t *testing.T) {
	all := exported(t)
	read := func(file string, into any) {
		data, err := os.ReadFile("chart/weir/monitoring/" + file)
		if err == nil && strings.HasSuffix(file, ".json") {
			err = json.Unmarshal(data, into)
		} else if err == nil {
			err = yaml.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Annotations, Labels map[string]string
			}
		}
	}
	read("alerts.yaml", &alerts)
	tests, err := os.ReadFile("chart/weir/monitoring/alerts_test.yaml")
	if err != nil || len(alerts.Groups) != 1 {
		t.Fatalf("%d groups, %v", len(alerts.Groups), err)
	}
	doc, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range alerts.Groups[0].Rules {
		if !strings.Contains(string(doc), "| `"+r.Alert+"` | "+r.Labels["severity"]+" |") {
			t.Errorf("docs/metrics.md lacks %s, or its severity", r.Alert)
		}
		check(t, all, r.Expr, r.Annotations["summary"]+r.Annotations["description"])
		if !strings.Contains(string(tests), "alertname: "+r.Alert+"\n        exp_alerts:\n") {
			t.Errorf("%s: nothing tests that it fires", r.Alert)
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	read("dashboard.json", &dashboard)
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			check(t, all, target.Expr, target.LegendFormat)
		}
	}
}
