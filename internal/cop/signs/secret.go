package signs

import (
	"path"
	"strings"
)

// secretNames are names of files that hold secrets, as path.Match patterns, in lower case.
var secretNames = []string{
	"id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
	".env", ".env.*", "*.env", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", ".dockercfg",
	".vault-token", "shadow", "gshadow", "shadow-", "credentials", "credentials.*", "*credentials*.json", "secrets", "secrets.*", "*secret*.y*ml",
	"*secret*.json", "*secret*.txt", "*password*.txt", "*passwords*", "*token*.txt", "*.token", "kubeconfig", "*.tfstate", "*.tfvars",
	"*_history", ".history", "login data", "cookies.sqlite", "key4.db", "logins.json", "wallet.dat", "*service*account*.json", "terraform.rc",
	"authorized_keys",
}

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
	for _, pattern := range secretNames {
		if ok, err := path.Match(pattern, base); ok && err == nil {
			return true
		}
	}
	whole := "/" + p + "/"
	for _, dir := range secretDirs {
		if strings.Contains(whole, dir) {
			return true
		}
	}
	return false
}

// secretVariable tells whether a variable's name says that it holds a secret.
func secretVariable(name string) bool {
	name = strings.ToUpper(name)
	for _, part := range []string{"TOKEN", "SECRET", "PASSW", "APIKEY", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// secrets looks for secret-looking paths in a word or a program text.
func (r *reader) secrets(text string) {
	if len(text) < 4 {
		return
	}
	for token := range strings.FieldsFuncSeq(text, separates) {
		if len(token) >= 4 && SecretPath(token) {
			r.out.Add(Secret, token)
			return
		}
	}
	for _, all := range []string{"os.environ", "process.env", "ENV.to_", "%ENV", "getenv()"} {
		if strings.Contains(text, all) {
			r.out.Add(Secret, all)
		}
	}
}

func separates(c rune) bool { return c <= ' ' || strings.ContainsRune("=@,:;'\"()<>[]{}|&`\\", c) }
