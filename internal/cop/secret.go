package cop

import (
	"path"
	"slices"
	"strings"

	"weir/internal/commands"
)

// What names of files that hold secrets are, begin with, end with, or have in them before an ending; in lower case.
var (
	secretNames = commands.Names(".env .netrc _netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .htpasswd .dockercfg .vault-token shadow gshadow shadow- " +
		"credentials secrets kubeconfig .history cookies.sqlite key4.db logins.json wallet.dat terraform.rc authorized_keys")
	secretStarts = []string{"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".env.", "credentials.", "secrets."}
	secretEnds   = []string{".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".env", ".token", ".tfstate", ".tfvars", "_history", "login data"}
	secretParts  = []struct{ part, end string }{
		{"credentials", ".json"}, {"secret", ".yml"}, {"secret", ".yaml"}, {"secret", ".json"}, {"secret", ".txt"}, {"password", ".txt"}, {"passwords", ""},
		{"token", ".txt"}, {"service-account", ".json"}, {"service_account", ".json"}, {"serviceaccount", ".json"},
	}
)

// secretDirs are parts of paths below which secrets are kept.
var secretDirs = []string{
	"/.ssh/", "/.aws/", "/.gnupg/", "/.kube/", "/.azure/", "/.config/gcloud/", "/.config/gh/", "/.docker/config.json/", "/.password-store/",
	"/run/secrets/", "/serviceaccount/", "/.mozilla/", "/google-chrome/", "/.codex/auth.json/", "/.claude/.credentials.json/", "/etc/ssl/private/",
	"/.cargo/credentials", "/etc/sudoers", "/keyrings/", "/security-credentials/",
}

// SecretPath tells whether a path looks like that of a secret.
func SecretPath(p string) bool {
	if p == "" || len(p) > 4096 {
		return false
	}
	p = strings.ToLower(p)
	base := path.Base(p)
	if strings.HasPrefix(p, "/proc/") && (base == "environ" || base == "mem") {
		return true
	}
	if strings.HasSuffix(base, ".pub") || strings.HasSuffix(base, ".example") || strings.HasSuffix(base, ".sample") {
		return false
	}
	if secretNames[base] || slices.ContainsFunc(secretStarts, func(t string) bool { return strings.HasPrefix(base, t) }) ||
		slices.ContainsFunc(secretEnds, func(t string) bool { return strings.HasSuffix(base, t) }) {
		return true
	}
	for _, s := range secretParts {
		if strings.Contains(base, s.part) && strings.HasSuffix(base, s.end) {
			return true
		}
	}
	if !strings.Contains(p, "/") {
		return false
	}
	return slices.ContainsFunc(secretDirs, func(dir string) bool { return strings.Contains("/"+p+"/", dir) })
}

// secretVariable tells whether a variable's name says that it holds a secret.
func secretVariable(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"TOKEN", "SECRET", "PASSW", "APIKEY", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}

// secrets looks for secret-looking paths in a word or a program text.
func (r *reader) secrets(text string) {
	if len(text) < 4 {
		return
	}
	for i := 0; i < len(text); i++ {
		start := i
		for i < len(text) && !separates[text[i]] {
			i++
		}
		if i-start >= 4 && SecretPath(text[start:i]) {
			r.out.Add(Secret, text[start:i])
			return
		}
	}
	for _, all := range []string{"os.environ", "process.env", "ENV.to_", "%ENV", "getenv()"} {
		if strings.Contains(text, all) {
			r.out.Add(Secret, all)
		}
	}
}

// separates are the bytes between paths in a text.
var separates = func() (t [256]bool) {
	for c := range ' ' + 1 {
		t[c] = true
	}
	for _, c := range []byte("=@,:;'\"()<>[]{}|&`\\") {
		t[c] = true
	}
	return t
}()
