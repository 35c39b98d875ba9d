package toolguard

const (
	readFile = "fs_read"
	del      = "fs_delete"
)

var files = []Rule{
	{
		ID: "windows-credentials", Group: OnPaths, Refuses: "opens a registry hive or the directory's database, where Windows keeps credentials",
		Why: "With them every account can be taken over.", Instead: "Ask the user; no task of an agent needs them.",
		Refused: []Example{{Tool: readFile, Text: `C:\Windows\System32\config\SAM`}, {Tool: readFile, Text: `\\?\C:\Windows\NTDS\ntds.dit`}, {Tool: readFile, Text: `C:/Windows/Temp/../System32/./config/security::$DATA`}},
		Near:    []Example{{Tool: readFile, Text: `C:\Windows\System32\drivers\etc\hosts`}, {Tool: readFile, Text: `D:\backup\sam`}},
		Files:   hives,
	},
	{
		ID: "ssh-keys", Group: OnPaths, Refuses: "opens an SSH private key", Why: "It gives access to other machines.", Instead: "Use ssh itself, or ask the user.",
		Refused: []Example{{Tool: readFile, Text: "/home/dave/.ssh/id_ed25519"}, {Tool: readFile, Text: "/home/dave/.ssh/id_ed25519_github"}, {Tool: readFile, Text: `C:\Users\dave\.ssh\id_rsa.`}, {Tool: del, Text: "/etc/ssh/ssh_host_rsa_key"}},
		Near:    []Example{{Tool: readFile, Text: "/home/dave/.ssh/id_ed25519.pub"}, {Tool: readFile, Text: "/home/dave/.ssh/config"}},
		Files: []string{ // a key may have any name
			"**/.ssh/**", "**/.ssh/id_*", "**/.ssh/identity", "**/etc/ssh/ssh_host_*_key*",
			"!**/*.pub", "!**/.ssh/config*", "!**/.ssh/config*/**", "!**/.ssh/*.conf", "!**/.ssh/known_hosts*", "!**/.ssh/authorized_keys*", "!**/.ssh/allowed_signers", "!**/.ssh/environment", "!**/.ssh/rc", "!**/.ssh/*.md",
		},
	},
	{
		ID: "browser-stores", Group: OnPaths, Refuses: "opens a browser's store of passwords or sessions", Why: "It gives access to every account of the person who uses it.", Instead: "Use the browser tool.",
		Refused: []Example{{Tool: readFile, Text: `C:\Users\dave\AppData\Local\Google\Chrome\User Data\Default\Login Data`}, {Tool: readFile, Text: "/home/dave/.mozilla/firefox/ab12.default/logins.json"}},
		Near:    []Example{{Tool: readFile, Text: "/home/dave/.mozilla/firefox/profiles.ini"}, {Tool: readFile, Text: "/work/app/cookies"}},
		Files: []string{
			"**/user data/*/login data", "**/user data/*/cookies", "**/user data/*/network/cookies", "**/user data/*/web data", "**/user data/local state",
			"**/.config/**/login data", "**/.config/google-chrome*/**/cookies", "**/chromium/*/login data", "**/chromium/**/cookies", "**/.config/microsoft-edge/**/cookies", "**/.config/bravesoftware/**/cookies",
			"**/.thunderbird/*/logins.json", "**/.thunderbird/*/key4.db", "**/firefox/profiles/*/logins.json", "**/firefox/profiles/*/key4.db",
			"**/firefox/profiles/*/cookies.sqlite", "**/.mozilla/firefox/*/logins.json", "**/.mozilla/firefox/*/key4.db", "**/.mozilla/firefox/*/cookies.sqlite",
			"**/library/keychains/*", "**/library/application support/google/chrome/*/login data",
		},
	},
	{
		ID: "shadow-file", Group: OnPaths, Refuses: "opens the system's password file", Why: "It holds the passwords of every account of the machine.", Instead: "Read /etc/passwd for names and ids.",
		Refused: []Example{{Tool: readFile, Text: "/etc/shadow"}, {Tool: readFile, Text: "/var/log/../../etc//shadow-"}, {Tool: readFile, Text: "/proc/1/root/etc/shadow"}}, Near: []Example{{Tool: readFile, Text: "/etc/passwd"}, {Tool: readFile, Text: "/work/css/shadow"}},
		Files: []string{"/etc/shadow", "/etc/shadow-*", "/etc/shadow.*", "/etc/shadow~", "/etc/gshadow", "/etc/gshadow-*", "/etc/gshadow.*", "/etc/gshadow~", "/var/backups/shadow.bak", "/var/backups/gshadow.bak", "/etc/security/opasswd"},
	},
	{
		ID: "cloud-credentials", Group: OnPaths, Refuses: "opens credentials of a cloud or a Kubernetes cluster", Why: "They reach far beyond this machine.", Instead: "Use the cloud's own program, or ask the user.",
		Refused: []Example{{Tool: readFile, Text: "~/.aws/credentials"}, {Tool: readFile, Text: "/etc/kubernetes/admin.conf"}, {Tool: readFile, Text: "/var/run/secrets/kubernetes.io/serviceaccount/token"}},
		Near:    []Example{{Tool: readFile, Text: "~/.aws/config"}, {Tool: readFile, Text: "/work/deploy/kube/config.yaml"}},
		Files: []string{
			"**/.aws/credentials", "**/.aws/credentials.*", "**/.aws/sso/cache/*", "**/.aws/cli/cache/*", "**/.azure/accesstokens.json", "**/.azure/msal_token_cache.*", "**/.azure/service_principal_entries.*",
			"**/gcloud/credentials.db", "**/gcloud/access_tokens.db", "**/gcloud/application_default_credentials.json", "**/gcloud/legacy_credentials/**", "**/.kube/config", "**/.kube/config.*",
			"/etc/kubernetes/*.conf", "/etc/kubernetes/pki/**/*.key", "/etc/kubernetes/pki/*.key", "/var/run/secrets/kubernetes.io/**", "/run/secrets/kubernetes.io/**",
			"/etc/rancher/k3s/k3s.yaml", "/var/lib/kubelet/pki/*", "**/.oci/*.pem", "**/.oci/sessions/**", "**/.config/doctl/config.yaml", "**/.config/hcloud/cli.toml", "**/.config/gcloud/**/adc.json",
		},
	},
}
