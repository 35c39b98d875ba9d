package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Debian's promtool takes the alert rules, and says of each when it fires; and it takes each expression of the dashboard.
func TestMonitoring(t *testing.T) {
	must(t, repo, "scripts/prometheus")
	promtool, err := filepath.Abs(filepath.Join(repo, ".cache/prometheus/promtool"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(repo, "deploy/chart/weir/monitoring")
	must(t, dir, promtool, "check", "rules", "--lint-fatal", "alerts.yaml")
	must(t, dir, promtool, "test", "rules", "alerts_test.yaml")
	data, err := os.ReadFile(filepath.Join(dir, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	type record struct {
		Record string            `json:"record"`
		Expr   string            `json:"expr"`
		Labels map[string]string `json:"labels"`
	}
	var records []record
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			records = append(records, record{"shown", target.Expr, map[string]string{"expr": target.Expr}})
		}
	}
	if len(records) < 12 {
		t.Errorf("%d expressions", len(records))
	}
	rules, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": records}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, rules, 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "", promtool, "check", "rules", "--lint-fatal", file)
}
