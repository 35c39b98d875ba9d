//go:build vmguest

// Package monitoring has Debian's Prometheus read a sensor's figures with the alert rules and the dashboard that are shipped, and weir-otel send its
// events to a collector.
package monitoring

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const (
	shipped  = "/weir/deploy/chart/weir/monitoring/"
	programs = "/prometheus/" // of Debian's package
	figures  = "127.0.0.1:9464"
	asks     = "http://127.0.0.1:9090/api/v1/"
	token    = "0123456789abcdef0123456789abcdef"
)

// start runs a program until t ends.
func start(t *testing.T, as *syscall.Credential, argv ...string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// asked is what Prometheus answers, if it does.
func asked[T any](what string) (data T, err error) {
	answer, err := http.Get(asks + what)
	if err != nil {
		return data, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return data, err
	}
	var got struct {
		Status string
		Data   T
		Error  string
	}
	if err := json.Unmarshal(text, &got); err != nil || got.Status != "success" {
		return data, fmt.Errorf("%s: %w, %s", what, err, text)
	}
	return got.Data, nil
}

// series are the values that an expression has now.
func series(expr string) ([]json.RawMessage, error) {
	found, err := asked[struct{ Result []json.RawMessage }]("query?query=" + url.QueryEscape(expr))
	return found.Result, err
}

// firing are the summaries of the alerts of a name that fire.
func firing(t *testing.T, name string) []string {
	t.Helper()
	all, err := asked[struct {
		Alerts []struct {
			State               string
			Labels, Annotations map[string]string
		}
	}]("alerts")
	if err != nil {
		t.Log(err)
	}
	var summaries []string
	for _, a := range all.Alerts {
		if a.State == "firing" && a.Labels["alertname"] == name {
			summaries = append(summaries, a.Annotations["summary"])
		}
	}
	return summaries
}

// TestPrometheus: it reads the figures with the token, the rule for held commands fires while one is held, and each panel of the dashboard can be asked.
func TestPrometheus(t *testing.T) {
	world, dir := rig.NewOutside(t), t.TempDir()
	secret := write(t, filepath.Join(dir, "token"), token+"\n")
	sensor := rig.StartSensor(t, "metrics:\n  listen: "+figures+"\n  token_file: "+secret+"\n")
	rules, err := os.ReadFile(shipped + "alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	waits := regexp.MustCompile(`for: \d+m`)
	if len(waits.FindAll(rules, -1)) < 3 {
		t.Fatal("the rules wait for nothing")
	}
	write(t, filepath.Join(dir, "alerts.yaml"), waits.ReplaceAllString(string(rules), "for: 2s"))
	config := write(t, filepath.Join(dir, "prometheus.yaml"), `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: weir
    authorization: {credentials_file: `+secret+`}
    static_configs: [{targets: ["`+figures+`"]}]
`)
	start(t, nil, programs+"prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:9090")
	rig.Eventually(t, "the sensor is read, and enforces", func() bool {
		found, err := series("up == 1 and on (instance) weir_enforcing == 1")
		return err == nil && len(found) == 1
	})
	if fires := firing(t, "WeirCommandHeld"); len(fires) > 0 {
		t.Errorf("nothing is held: %q", fires)
	}
	session, to := sensor.Guard(t, "agent", "--taint", "secret"), world.Raw(t)
	p := session.Start(t, to.Egress("tcp")...)
	question := sensor.Asked(t, to.About)
	rig.Eventually(t, "WeirCommandHeld fires", func() bool {
		return slices.Equal(firing(t, "WeirCommandHeld"), []string{"1 commands of tainted containers on " + figures + " wait for a person"})
	})
	sensor.Deny(t, question.ID)
	p.Wait(t)
	to.Nothing(t)
	rig.Eventually(t, "WeirCommandHeld is over", func() bool { return len(firing(t, "WeirCommandHeld")) == 0 })

	data, err := os.ReadFile(shipped + "dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	empty := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expr := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*").Replace(target.Expr)
			found, err := series(expr)
			if err != nil {
				t.Errorf("%s: %v", panel.Title, err)
			}
			if len(found) == 0 {
				t.Logf("%s has nothing to show: %s", panel.Title, expr)
				empty++
			}
		}
	}
	if empty > len(dashboard.Panels)/2 {
		t.Errorf("%d of %d panels show nothing", empty, len(dashboard.Panels))
	}
	sensor.Stop(t)
	rig.Eventually(t, "WeirAbsent fires once the sensor has gone", func() bool { return len(firing(t, "WeirAbsent")) == 1 })
}
