package commands

import "strings"

const transfers = "transfers data over the network"

// connects are the options with a value of programs that connect.
const connects = "p:i:w:c:b:e:D:E:F:I:J:L:l:m:o:O:Q:R:S:W:B:"

// transferTools are commands that transfer data over the network, or ask it for names.
var transferTools = []*Command{
	{
		Names: "curl", Class: Network,
		Short: "A:b:c:C:d:D:e:E:F:H:K:m:o:P:Q:r:t:T:u:U:w:x:X:y:Y:z:0123468aBfgGhiIjJkLMnNOpqRsSvVZ#",
		Long: "append-file= ca-certificate= cacert= capath= cert= ciphers= config= connect-timeout= connect-to= cookie= cookie-jar= data= data-ascii= data-binary= " +
			"data-raw= data-urlencode= dns-servers= doh-url= dump-header= form= form-string= header= interface= json= key= limit-rate= max-time= noproxy= " +
			"output= output-dir= pass= preproxy= proto= proxy= proxy-user= range= referer= request= resolve= retry= retry-delay= retry-max-time= " +
			"socks4= socks4a= socks5= socks5-hostname= stderr= trace= trace-ascii= unix-socket= upload-file= url= user= user-agent= write-out= " +
			"url-query= mail-from= mail-rcpt= quote= " +
			"compressed fail get head help include insecure location manual remote-header-name remote-name show-error silent verbose version",
		Values: []Value{
			{Options: "-o --output -D --dump-header -c --cookie-jar --trace --trace-ascii --stderr", Role: Write},
			{Options: "-T --upload-file -K --config -E --cert --key", Role: Read},
			{Options: "--url -x --proxy --preproxy --connect-to --resolve --doh-url --dns-servers --socks4 --socks4a --socks5 --socks5-hostname", Role: Host},
		},
		Rest: Host, Facts: Download, Check: checkCurl, Why: transfers, Example: "curl -fsSL https://example.com/list.txt",
	},
	{
		Names: "wget wget2", Class: Network,
		Short: "a:A:B:D:e:i:I:l:o:O:P:Q:R:t:T:U:w:X:bcdEFhHkKLmnNpqrSvVx46",
		Long: "append-output= base= body-data= body-file= config= directory-prefix= execute= header= http-password= http-user= input-file= level= method= " +
			"output-document= output-file= password= post-data= post-file= referer= timeout= tries= user= user-agent= use-askpass= wait= ca-certificate= certificate= private-key= connect-timeout= limit-rate= proxy-user= help version",
		Values: []Value{
			{Options: "-O --output-document -o --output-file -a --append-output", Role: Write},
			{Options: "-i --input-file --post-file --body-file --config", Role: Read},
			{Options: "-B --base", Role: Host},
		},
		Rest: Host, Facts: Download, Check: checkWget, Why: transfers, Example: "wget -qO- https://example.com",
	},
	{
		Names: "nc netcat ncat nc.openbsd nc.traditional", Class: Network,
		Short: "bcdDe:g:G:hi:I:kKlLm:M:nN46O:o:p:P:q:rs:StT:uUvV:w:W:x:X:z", Long: "listen exec= sh-exec= lua-exec= proxy= ssl udp source= wait= keep-open",
		Values: []Value{{Options: "-x --proxy", Role: Host}},
		Lead:   []Role{Host}, Rest: Data, Facts: Upload | Download, Check: checkListen, Why: "connects to any port, or listens on one", Example: "nc -z localhost 8080",
	},
	{Names: "telnet", Class: Network, Short: "b:e:l:n:E8aLrd46", Lead: []Role{Host}, Rest: Data, Facts: Upload | Download, Why: "connects to any port", Example: "telnet localhost 25"},
	{
		Names: "socat", Class: Network, Rest: Host, Facts: Upload | Download, Check: checkSocat, Why: "connects anything to anything, and runs programs (EXEC, SYSTEM)", Example: "socat - TCP:localhost:80",
	},
	{
		Names: "ssh autossh mosh slogin dbclient", Class: Network, Stop: true,
		Short:  "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:p:Q:R:S:W:w:P:",
		Values: []Value{{Options: "-J -W", Role: Host}, {Options: "-F -i", Role: Read}},
		Lead:   []Role{Host}, Rest: Data, Facts: Upload | Download, Why: "runs commands on another machine", Example: "ssh host uptime",
	},
	{
		Names: "scp sftp rcp", Class: Network, Check: checkRemote, Facts: Upload | Download,
		Short: "346ABCpqRrTvOsac:D:F:i:J:l:o:P:S:X:b:", Why: "copies files to or from another machine", Example: "scp notes.txt host:",
	},
	{
		Names: "rsync", Class: Network, Check: checkRemote, Facts: Upload | Download, Short: "vqcarRbudlLkKHpEAXogDtUNOJSnWxCIz0hP86e:f:B:T:M:4i",
		Long: "rsh= exclude= include= exclude-from= include-from= files-from= rsync-path= password-file= bwlimit= port= filter= backup-dir= suffix= chmod= log-file= timeout=",
		Why:  "copies files to or from another machine", Example: "rsync -a src/ host:dst",
	},
	{Names: "ftp lftp tftp ncftp ncftpget ncftpput smbclient davfs cadaver", Class: Network, Short: connects, Rest: Host, Facts: Upload | Download, Why: transfers},
	{
		Names: "aria2c axel lwp-request lwp-download GET POST HEAD http https xh httpie curlie hey ab wrk siege youtube-dl yt-dlp gdown urlget lynx links links2 elinks w3m surfraw",
		Class: Network, Short: "a:A:B:D:e:i:I:l:o:O:P:Q:R:t:T:U:w:X:hV", Long: "input-file= config= output= header= user= proxy= data= method= form json url= help version manual", Rest: Host, Facts: Download, Why: transfers,
	},
	{Names: "ssh-keyscan ssh-copy-id sshpass sshfs sshuttle sftp-server ssh-agent ssh-add", Class: Network, Short: connects, Rest: Host, Why: "connects to another machine, or runs a program that does"},
	{
		Names: "openssl", Class: Network, Rest: Data, Facts: Encoder, Check: checkOpenssl,
		Why: "connects (s_client), listens (s_server), loads code (engines) and encrypts",
	},
	{Names: "socket rcat pwncat gnutls-cli gnutls-serv stunnel stunnel4 websocat wscat grpcurl ghz mosquitto_pub mosquitto_sub kcat kafkacat nats amqp-publish", Class: Network, Short: connects, Rest: Host, Why: transfers},
	{Names: "nslookup dig host drill kdig delv resolvectl systemd-resolve dog getent whois finger", Class: Network, Short: "b:c:f:k:p:q:t:x:y:W:R:m:N:", Values: []Value{{Options: "-x", Role: Host}}, Rest: Host, Why: "asks for names or people over the network, which carries data out", Example: "dig example.com"},
	{Names: "ping ping6 ping4 arping fping hping3 nping", Class: Network, Short: "c:i:s:t:w:W:I:p:M:m:Q:S:T:l:", Rest: Host, Why: "sends packets to another machine", Example: "ping -c1 example.com"},
	{Names: "traceroute traceroute6 tracepath mtr tcptraceroute", Class: Network, Short: "c:i:s:t:w:I:p:m:q:Q:S:T:l:", Rest: Host, Why: "sends packets to another machine", Example: "traceroute example.com"},
	{Names: "nmap masscan zmap rustscan nikto sqlmap hydra tcpdump tshark dumpcap ngrep ettercap", Class: Network, Short: "c:i:s:t:w:W:I:p:M:m:Q:S:T:l:", Rest: Host, Why: "scans or listens to the network"},
	{Names: "rclone s3cmd s4cmd aws aws2 az gcloud gsutil bq doctl linode-cli oci ibmcloud hcloud flyctl fly heroku vercel netlify wrangler firebase supabase mc azcopy b2", Class: Network, Rest: Data, Facts: Upload | Download, Why: "speaks with a service on the network"},
	{Names: "mail mailx mutt neomutt sendmail msmtp swaks ssmtp exim exim4 postfix mpack", Class: Network, Rest: Host, Facts: Upload, Why: "sends mail"},
	{Names: "psql pg_dump pg_restore pg_dumpall createdb dropdb mysql mysqldump mysqladmin mariadb redis-cli mongo mongosh mongodump mongoexport sqlcmd cqlsh influx clickhouse clickhouse-client etcdctl consul vault ldapsearch snmpwalk snmpget", Class: Network, Rest: Host, Why: "speaks with a server, and some run programs"},
	{Names: "sqlite3 duckdb", Class: Network, Rest: Read, Facts: Runtime, Why: "a script of it can run programs (.shell) and load code"},
	{Names: "tor torsocks torify proxychains proxychains4 tsocks ngrok cloudflared tailscale wg wg-quick openvpn croc wormhole chisel frpc frps bore lt localtunnel", Class: Network, Rest: Host, Why: "makes a way to the network"},
	{Names: "rlogin rsh rexec dhclient dhcpcd ntpdate chronyd chronyc ntpq nmcli mount.nfs showmount rpcinfo xfreerdp vncviewer dbus-send busctl gdbus", Class: Network, Short: connects, Rest: Host, Why: "speaks with another machine or service"},
	{Names: "gh glab hub tea svn hg bzr cvs fossil darcs repo git-lfs", Class: Network, Rest: Data, Why: "speaks with a server of source code, and runs programs that are configured"},
	{Names: "gpg gpg2 gpg-agent age-plugin", Class: Grey, AnyArgs: true, Rest: Data, Why: "may fetch keys, and starts an agent"},
}

func checkCurl(c *Call) {
	for _, name := range []string{"-T", "--upload-file", "-d", "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode", "-F", "--form", "--json"} {
		o, ok := c.Option(name)
		if !ok {
			continue
		}
		c.Flags |= Upload
		v := o.Value
		if i := strings.IndexByte(v.Text, '@'); v.Fixed && i >= 0 && name != "--data-raw" && name != "-T" && name != "--upload-file" {
			v.Text, _, _ = strings.Cut(v.Text[i+1:], ";")
			c.Read(v)
		}
	}
}

func checkWget(c *Call) {
	if _, ok := c.Option("--post-data", "--post-file", "--body-data", "--body-file"); ok {
		c.Flags |= Upload
	}
}

func checkListen(c *Call) {
	if _, ok := c.Option("-l", "-L", "--listen"); ok {
		port, given := c.Option("-p")
		if !given && len(c.Operands) > 0 {
			port.Value = c.Operands[len(c.Operands)-1]
		}
		c.Listen(port.Value)
	}
	if o, ok := c.Option("-e", "-c", "--exec", "--sh-exec", "--lua-exec"); ok {
		c.Network(o.Word, "network", "connects a program to the network")
	}
}

func checkSocat(c *Call) {
	for _, w := range c.Words {
		kind, at, _ := strings.Cut(w.Text, ":")
		kind = strings.ToUpper(kind)
		if strings.HasSuffix(kind, "-LISTEN") || strings.HasSuffix(kind, "-L") || strings.HasSuffix(kind, "-RECVFROM") {
			w.Text, _, _ = strings.Cut(at, ",")
			c.Listen(w)
		}
	}
}

// checkRemote tells host:path from path.
func checkRemote(c *Call) {
	for i, w := range c.Operands {
		host, path, ok := strings.Cut(w.Text, ":")
		switch {
		case ok && !strings.Contains(host, "/"), strings.Contains(w.Text, "://"):
			if _, at, user := strings.Cut(host, "@"); user && !strings.Contains(path, "//") {
				w.Text = at
			} else if !strings.Contains(w.Text, "://") {
				w.Text = host
			}
			c.Host(w)
		case i > 0 && i == len(c.Operands)-1:
			c.Write(w)
		default:
			c.Read(w)
		}
	}
}

// checkOpenssl notes servers and hosts.
func checkOpenssl(c *Call) {
	if len(c.Words) > 0 && (c.Words[0].Is("s_server") || c.Words[0].Is("ocsp")) {
		c.Flags |= Listen
	}
	for i, w := range c.Words {
		if i+1 < len(c.Words) && Listed("-connect -host -proxy -url", w.Text) {
			c.Host(c.Words[i+1])
		}
	}
}
