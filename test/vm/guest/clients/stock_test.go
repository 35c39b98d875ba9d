//go:build vmguest

package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cgi"
	"testing"

	"weir/test/vm/guest/rig"
)

// gitRepository serves a repository with one commit as git's own server does.
func gitRepository(t *testing.T) http.Handler {
	t.Helper()
	rig.Must(t, `mkdir -p /run/stock/git && cd /run/stock/git && export HOME=/root
		git init -q --bare probe.git && git init -q work && cd work && echo stock > file && git add file
		git -c user.name=test -c user.email=test@weir.test commit -qm first && git push -q ../probe.git HEAD:refs/heads/main
		git -C ../probe.git symbolic-ref HEAD refs/heads/main && git config --system --add safe.directory '*'`)
	return &cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Root: "/git", Env: []string{"GIT_PROJECT_ROOT=/run/stock/git", "GIT_HTTP_EXPORT_ALL=1"}}
}

// aptRepository serves one package without a signature.
func aptRepository(t *testing.T) http.Handler {
	t.Helper()
	rig.Must(t, `mkdir -p /run/stock/apt/probe/DEBIAN && cd /run/stock/apt
		printf 'Package: weir-probe\nVersion: 1\nArchitecture: all\nMaintainer: test <test@weir.test>\nDescription: probe\n' > probe/DEBIAN/control
		dpkg-deb -Znone --build probe weir-probe_1_all.deb >/dev/null
		apt-ftparchive packages . > Packages && apt-ftparchive release . > Release`)
	return http.StripPrefix("/apt/", http.FileServer(http.Dir("/run/stock/apt")))
}

// npmRegistry serves one package.
func npmRegistry(t *testing.T) http.Handler {
	t.Helper()
	rig.Must(t, `mkdir -p /run/stock/npm/package && cd /run/stock/npm
		echo '{"name":"weir-probe","version":"1.0.0"}' > package/package.json && tar czf weir-probe-1.0.0.tgz package`)
	files := http.StripPrefix("/npm/", http.FileServer(http.Dir("/run/stock/npm")))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/npm/weir-probe" {
			files.ServeHTTP(w, r)
			return
		}
		version := map[string]any{"name": "weir-probe", "version": "1.0.0", "dist": map[string]any{
			"tarball": fmt.Sprintf("https://%s/%s/npm/weir-probe-1.0.0.tgz", r.Host, r.Header.Get("Text")),
		}}
		_ = json.NewEncoder(w).Encode(map[string]any{ // who asked may be gone
			"name": "weir-probe", "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": version},
		})
	})
}
