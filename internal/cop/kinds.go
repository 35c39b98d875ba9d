package cop

import (
	"strings"

	"weir/internal/commands"
)

// kind is how a program uses the network, or what else it can mean.
type kind uint8

const (
	nothing  kind = iota
	fetcher       // asks for URLs, can upload
	sender        // two-way connections: whatever it reads goes out
	copier        // copies files between machines
	asker         // asks for names
	prober        // sends packets
	mailer        // sends, wherever
	cloud         // speaks with a service, by subcommands
	versions      // git and the like
	packages      // package managers
	runsText
	interpreter
	awk
	encoder
	decoder
	socat
	openssl
	wrapper // runs the command that follows
)

// programs by kind; a trailing # stands for a version.
var kindNames = map[kind]string{
	fetcher: "curl wget wget2 aria2c axel http https xh httpie curlie lwp-request lwp-download lynx links w3m elinks iwr invoke-webrequest",
	sender: "nc ncat netcat nc.openbsd nc.traditional telnet ssh slogin mosh autossh sftp ftp lftp tftp ncftp ncftpput smbclient whois finger " +
		"websocat wscat grpcurl gnutls-cli mosquitto_pub kcat kafkacat redis-cli nats socket dbclient rlogin rsh rcat pwncat ssh-copy-id sshfs cancel",
	copier: "scp rsync rcp pscp",
	asker:  "dig nslookup host drill kdig delv dog resolvectl systemd-resolve dnscat dnscat2 iodine",
	prober: "ping ping6 fping hping3 nping traceroute traceroute6 tracepath mtr nmap masscan arping tcptraceroute",
	mailer: "mail mailx mutt neomutt sendmail msmtp swaks ssmtp exim exim4 mpack croc wormhole ngrok cloudflared chisel bore lt localtunnel frpc " +
		"twine slackcat telegram-send gist pastebinit restic duplicity borg lp ntpdate sshuttle dnscat2-client tor torsocks tailscale",
	cloud: "aws az gcloud gsutil bq s3cmd s4cmd rclone mc azcopy b2 doctl heroku vercel netlify wrangler firebase flyctl fly kubectl oc helm " +
		"docker podman nerdctl buildah skopeo crane oras gh glab hub vault",
	versions: "git hg svn bzr",
	packages: "pip# pipx uv poetry pdm conda mamba npm yarn pnpm bun cargo gem bundle go apt apt-get aptitude dnf yum zypper pacman apk brew snap " +
		"flatpak npx bunx uvx dpkg apt-cache composer cpan cpanm luarocks nix-env easy_install opam cabal stack mix rebar3 rustup nvm corepack playwright",
	runsText:    "busybox-sh pwsh powershell", // and the shells
	interpreter: "python# pypy# node nodejs deno ruby# irb perl# php# lua# luajit tclsh# wish# expect Rscript r julia groovy jshell java jrunscript jjs osascript gdb erl elixir guile racket cpan6 raku go-run jython ghci scala kotlin",
	awk:         "awk gawk mawk nawk",
	encoder:     "base64 base32 basenc b64encode xxd hexdump od uuencode gzip bzip2 xz zstd lz4 compress zip 7z 7za 7zr rar tar gpg gpg2 age ccrypt brotli ar cpio",
	decoder:     "gunzip bunzip2 unxz unzstd unzip zcat bzcat xzcat zstdcat unrar uudecode unlz4",
	socat:       "socat filan",
	openssl:     "openssl",
}

// kinds is kindNames turned round.
var kinds = func() map[string]kind {
	m := map[string]kind{}
	for k, names := range kindNames {
		for _, name := range strings.Fields(names) {
			m[name] = k
		}
	}
	return m
}()

func lookup(name string) kind {
	if k, ok := kinds[name]; ok {
		return k
	}
	switch {
	case commands.IsShell(name):
		return runsText
	case commands.KnowsWrapper(name):
		return wrapper
	}
	if stem := strings.TrimRight(name, "0123456789.-"); stem != "" {
		return kinds[stem+"#"]
	}
	return nothing
}

// Connects tells whether a program is one whose use of the network is read from its arguments.
func Connects(program string) bool {
	k := lookup(base(program))
	return k >= fetcher && k <= packages || k == socat || k == openssl
}

// Knows tells whether a program is one whose arguments are read.
func Knows(program string) bool { return lookup(base(program)) != nothing }
