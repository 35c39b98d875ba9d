package cop

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// netWords are in every text that netCode matches, in lower case: most texts have none, and are looked at no further.
var netWords = []string{
	"sock", "http", "url", "request", "net", "ftp", "smtp", "ssh", "tls", "ssl", "tcp", "udp", "dns", "dgram", "fetch", "connect", "download", "unix", "gethost",
	"xmlrpc", "curl", "scapy", "nntp", "poplib", "imap", "boto", "paramiko", "axios", "undici", "ws", "got", "deno", "bun.", "open-uri", "lwp", "mechanize",
}

func mayUseNet(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(netWords, func(w string) bool { return strings.Contains(text, w) })
}

// netCode finds what uses the network in code of the common interpreters. It is a list of
// names that their libraries have, not a proof of anything.
var netCode = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)` +
		// Python
		`\b(?:import|from)\s+(?:[\w., ]+,\s*)?(?:socket|requests|httpx|aiohttp|urllib2?\.request|urllib[23]\b|http\.client|http\.server|ftplib|smtplib|telnetlib|paramiko|asyncssh|websockets?|xmlrpc|dns\.resolver|pycurl|socketserver|scapy|nntplib|poplib|imaplib|boto3)\b` +
		`|\bfrom\s+(?:urllib|http)\s+import\s+[\w, ]*(?:request|client)\b|\bimport\s+(?:[\w., ]+,\s*)?urllib\s*(?:;|$|\n|,)` +
		`|(?:__import__|import_module|\ba|getattr\([^)]*\))\s*\(\s*['"](?:socket|requests|urllib|http|ftplib|smtplib|httpx)` +
		`|\burlopen\b|\burlretrieve\b|\bcreate_connection\b|\bopen_connection\b|\bsocket\.(?:socket|create|gethostby|getaddrinfo)|\brequests\.(?:get|post|put|patch|delete|head|session)\b` +
		// JavaScript
		`|\brequire\s*\(\s*['"` + "`" + `](?:node:)?(?:net|tls|http|https|http2|dgram|dns|axios|node-fetch|undici|ws|got)(?:/promises)?['"` + "`" + `]\s*\)` +
		`|\bfrom\s+['"](?:node:)?(?:net|tls|https?|dgram|dns|axios|undici|ws)['"]|\bimport\s*\(\s*['"](?:node:)?(?:net|tls|https?|dgram|dns)['"]` +
		`|(?:^|await|return|[=;,({\n])\s*fetch\s*\(\s*['"` + "`" + `\w]|\bXMLHttpRequest\b|\bnew\s+WebSocket\b|\bDeno\.(?:connect|listen)\b|\bBun\.(?:connect|udpSocket)\b` +
		// Ruby, Perl, PHP, Lua, Tcl, R
		`|-rsocket\b|-ropen-uri\b|-rnet/|\brequire\s*\(?\s*['"](?:socket|net/(?:http|ftp|smtp|ssh)|open-uri|socket\.http|ssl)['"]|\b(?:TCPSocket|UDPSocket|TCPServer|UNIXServer)\b|\bNet::(?:HTTP|FTP|SMTP|SSH|DNS)\b` +
		`|\b(?:use|require)\s+(?:IO::)?Socket\b|-M(?:IO::)?Socket\b|\bIO::Socket\b|\bLWP(?:::|\b)|\bHTTP::Tiny\b|\bWWW::Mechanize\b|\bsocket\s*\(\s*\w+\s*,\s*(?:PF|AF)_INET` +
		`|\bp?fsockopen\s*\(|\bstream_socket_(?:client|server)\s*\(|\bsocket_(?:create|connect|bind)\s*\(|\bcurl_(?:init|exec)\s*\(|\bfile_get_contents\s*\(\s*['"](?:https?|ftp)|\bfopen\s*\(\s*['"](?:https?|ftp)|\bdns_get_record\s*\(` +
		`|\bgethostbyname\b|\bsocket\.(?:tcp|udp|connect|http)\b|\bsocket\s+(?:-async\s+)?[\w.$]+\s+\d+|\bsocketConnection\s*\(|\busing\s+(?:Sockets|HTTP|Downloads)\b|\bdownload\.file\s*\(` +
		// JVM, .NET, Go
		`|\bjava\.net\.|\bnew\s+(?:Server)?Socket\s*\(|\bHttpClient\b|\bTCPClient\b|\bNet\.WebClient\b|\bNet\.Sockets\b|\bInvoke-(?:WebRequest|RestMethod)\b|\bDownloadString\b` +
		`|"net"|"net/http"|"net/smtp"|\bnet\.Dial|\bhttp\.(?:Get|Post|NewRequest)\b|\bgen_tcp\b|\bStdlib\.Unix\b` +
		`|/dev/(?:tcp|udp)/|/inet[46]?/(?:tcp|udp)/`)
})

// code looks at a program text of an interpreter.
func (r *reader) code(text string) {
	if len(text) < 6 {
		return
	}
	if len(text) > maxText {
		r.out.Add(Unreadable, "a program text that is too long")
		return
	}
	if !mayUseNet(text) {
		return
	}
	if at := netCode().FindStringIndex(text); at != nil {
		r.out.Add(NetCode, text[at[0]:at[1]])
	}
}
