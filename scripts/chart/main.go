// Command chart writes deploy/kubernetes/weir.yaml anew: what the chart of deploy/chart/weir is with its own values.
package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

const (
	repo     = "../.."
	chartDir = repo + "/deploy/chart/weir"
	manifest = repo + "/deploy/kubernetes/weir.yaml"
)

func main() {
	text, err := plain()
	if err == nil {
		err = os.WriteFile(manifest, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// render gives the templates' texts by their names, as helm install would make them in the namespace weir.
func render(values map[string]any) (map[string]string, error) {
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "weir", Namespace: "weir", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	short := map[string]string{}
	for name, text := range texts {
		short[filepath.Base(name)] = text
	}
	return short, nil
}

// head comes before what is rendered; a chart makes no namespace for itself.
const head = `# Weir on each node of a cluster: kubectl apply -f weir.yaml. See docs/deploy.md.
# Made of deploy/chart/weir by make chart: change that. Of its bytes: sha256 %x
apiVersion: v1
kind: Namespace
metadata:
  name: weir
  labels:
    # hostPID, host paths and capabilities: no stricter level admits them.
    pod-security.kubernetes.io/enforce: privileged
`

var blank = regexp.MustCompile(`\n\s*\n`)

// plain is the manifest for who uses no Helm: without what it does on removal.
func plain() ([]byte, error) {
	sum, err := chartSum()
	if err != nil {
		return nil, err
	}
	texts, err := render(nil)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, head, sum)
	for _, name := range []string{"policy.yaml", "account.yaml", "daemonset.yaml"} {
		fmt.Fprintf(&b, "---\n%s\n", strings.TrimSpace(blank.ReplaceAllString(texts[name], "\n")))
	}
	return b.Bytes(), nil
}

// chartSum is of the chart's files, with their names: deploy's tests, which have no Helm, compare it.
func chartSum() ([]byte, error) {
	h := sha256.New()
	err := filepath.WalkDir(chartDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(chartDir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
		return err
	})
	return h.Sum(nil), err
}
