package signs

import (
	"slices"
	"strings"
)

// keyOptions take a file that is used to prove who one is, and is not sent.
var keyOptions = []string{"-i", "-F", "-E", "--cert", "--key", "--cacert", "--capath", "--certificate", "--private-key", "--ca-certificate", "--pinnedpubkey"}

// operands gives the words that are no options; values are the short options that take a value.
func operands(args []word, values string) []word {
	var out []word
	for i := 0; i < len(args); i++ {
		t := args[i].text
		switch {
		case t == "--":
			return append(out, args[i+1:]...)
		case len(t) < 2 || t[0] != '-':
			out = append(out, args[i])
		case t[1] != '-' && strings.IndexByte(values, t[len(t)-1]) >= 0 && strings.IndexByte(values, t[1]) < 0,
			t[1] != '-' && len(t) == 2 && strings.IndexByte(values, t[1]) >= 0:
			i++
		}
	}
	return out
}

// option gives the value of an option in any of its forms, and whether it is there.
func option(args []word, names ...string) (word, bool) {
	for i, w := range args {
		for _, name := range names {
			if w.text == name {
				if i+1 < len(args) {
					return args[i+1], true
				}
				return word{}, true
			}
			if rest, ok := strings.CutPrefix(w.text, name); ok && (len(name) == 2 || strings.HasPrefix(rest, "=")) {
				return word{strings.TrimPrefix(rest, "="), w.command}, true
			}
		}
	}
	return word{}, false
}

// computed notes that the output of a command is among the words; always tells that it is sent for sure.
func (r *reader) computed(args []word, always bool) {
	if !always && r.out.Has&Contact == 0 {
		return
	}
	for _, w := range args {
		if w.command {
			r.out.Add(Computed, w.text)
		}
	}
}

var (
	curlValues = "AbcCdDeEFHhKmoPQrtTuUwxXyYz"
	wgetValues = "aABDeiIloOPQRtTUwX"
	uploads    = []string{"-d", "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode", "-F", "--form", "--form-string", "-T",
		"--upload-file", "--json", "--url-query", "--post-data", "--post-file", "--body-data", "--body-file", "--mail-from", "-Q", "--quote"}
	proxies = []string{"-x", "--proxy", "--preproxy", "--socks4", "--socks4a", "--socks5", "--socks5-hostname", "--doh-url", "--url"}
)

func (r *reader) fetch(tool string, args []word) {
	values := wgetValues
	if tool == "curl" {
		values = curlValues
	}
	before := r.out.Has & Contact
	r.out.Has &^= Contact
	urls := urls(args, values)
	for _, w := range urls {
		r.host(w)
		if scheme, _, ok := strings.Cut(w.text, "://"); ok && r.out.Has&Contact != 0 && !slices.Contains([]string{"http", "https", "ftp", "ftps", "file"}, strings.ToLower(scheme)) {
			r.out.Add(Send, tool+" "+w.text)
		}
	}
	for _, name := range proxies {
		if w, ok := option(args, name); ok && (tool == "curl" || len(name) > 2) {
			r.host(w)
		}
	}
	for _, name := range []string{"--resolve", "--connect-to"} {
		if w, ok := option(args, name); ok {
			parts := strings.Split(w.text, ":")
			r.host(word{parts[min(2, len(parts)-1)], w.command})
		}
	}
	for _, name := range []string{"-K", "--config", "-i", "--input-file", "-e", "--execute"} {
		if _, ok := option(args, name); ok && (tool == "curl") == (name == "-K" || name == "--config") {
			r.out.Add(Contact, tool+" "+name)
		}
	}
	if len(urls) == 0 && !slices.ContainsFunc(args, func(w word) bool { return w.text == "--version" || w.text == "-V" || w.text == "--help" }) {
		if _, ok := option(args, "--url"); !ok {
			r.out.Add(Contact, tool+" without a literal address")
		}
	}
	if r.out.Has&Contact != 0 {
		r.uploads(tool, args)
		r.computed(args, true)
	}
	r.out.Has |= before
}

// urls are the operands of curl and the like; -X POST and long options with a value do not count.
func urls(args []word, values string) []word {
	var kept []word
	for i := 0; i < len(args); i++ {
		t := args[i].text
		if strings.HasPrefix(t, "--") && !strings.Contains(t, "=") && !flagOption(t) {
			i++
			continue
		}
		kept = append(kept, args[i])
	}
	return operands(kept, values)
}

// flagOption tells whether a long option of curl or wget takes no value. One that is not
// known is taken for one that takes none: then its value counts as an address.
func flagOption(t string) bool {
	return !strings.Contains(" --request --header --user-agent --referer --user --output --data --data-ascii --data-binary --data-raw --data-urlencode "+
		"--form --form-string --upload-file --json --url-query --max-time --connect-timeout --retry --retry-delay --retry-max-time --cookie --cookie-jar "+
		"--dump-header --write-out --range --limit-rate --cert --key --cacert --capath --proxy --proxy-user --resolve --connect-to --doh-url --config "+
		"--url --interface --output-dir --stderr --trace --trace-ascii --output-document --output-file --timeout --tries --wait --post-data --post-file "+
		"--body-data --body-file --method --http-user --http-password --password --directory-prefix --execute --input-file --base --level --quote "+
		"--mail-from --mail-rcpt --preproxy --socks4 --socks4a --socks5 --socks5-hostname --unix-socket --ca-certificate --certificate --private-key ", " "+t+" ")
}

func (r *reader) uploads(tool string, args []word) {
	for _, name := range uploads {
		if len(name) == 2 && tool != "curl" {
			continue
		}
		if w, ok := option(args, name); ok {
			r.out.Add(Send, tool+" "+name+" "+w.text)
		}
	}
	method, _ := option(args, "--request", "--method")
	if tool == "curl" && method.text == "" {
		method, _ = option(args, "-X")
	}
	if m := strings.ToUpper(method.text); m != "" && m != "GET" && m != "HEAD" {
		r.out.Add(Send, tool+" with method "+method.text)
	}
	if tool != "curl" && tool != "wget" && slices.ContainsFunc(args, func(w word) bool {
		return strings.ContainsAny(w.text, "=") && !strings.Contains(w.text, "://") && !strings.HasPrefix(w.text, "-") || w.text == "POST" || w.text == "PUT" || strings.HasPrefix(w.text, "-post")
	}) {
		r.out.Add(Send, tool+" with data")
	}
	if tool == "curl" {
		for _, w := range args { // -sd@file, -XPOST
			if t := w.text; len(t) > 2 && t[0] == '-' && t[1] != '-' && strings.ContainsAny(t[1:2], "sSkLfvin") && strings.ContainsAny(t[2:3], "dFT") {
				r.out.Add(Send, tool+" "+t)
			}
		}
	}
}

func (r *reader) send(tool string, args []word) {
	values := "psiwxXqecgGIOTVmbDEFJLloQRSWB"
	listens := slices.ContainsFunc(args, func(w word) bool {
		return w.text == "--listen" || len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-' && strings.Contains(w.text, "l")
	})
	netcat := strings.HasPrefix(tool, "nc") || tool == "netcat"
	if netcat && listens {
		r.out.Add(Listen, tool+" listens")
	}
	hosts := operands(args, values)
	if tool == "finger" && !slices.ContainsFunc(hosts, func(w word) bool { return !w.known() || strings.Contains(w.text, "@") }) {
		return // of this machine's users
	}
	local := len(hosts) > 0
	for i, w := range hosts {
		if host, ok := Host(w.text); i > 0 && netcat || !ok || !Local(host) {
			local = local && i > 0
		}
		break
	}
	for _, name := range []string{"-e", "-c", "--exec", "--sh-exec", "--lua-exec"} {
		if w, ok := option(args, name); ok && netcat && !(name == "-c" && strings.HasPrefix(w.text, "-")) {
			r.out.Add(Handover, tool+" "+name+" "+w.text)
		}
	}
	if local || netcat && listens && len(hosts) < 2 {
		return
	}
	r.out.Add(Contact|Send, tool+" sends what it reads")
	if len(hosts) > 0 {
		r.host(hosts[0])
	}
	r.computed(args, true)
}

func (r *reader) copies(tool string, args []word) {
	ops := operands(args, "PciFlJoSeTfB")
	for i, w := range ops {
		host, _, remote := strings.Cut(w.text, ":")
		if !remote || strings.Contains(host, "/") && !strings.HasPrefix(w.text, "rsync://") && !strings.HasPrefix(w.text, "scp://") {
			if strings.Contains(w.text, hole) && i == len(ops)-1 && len(ops) > 1 && !strings.HasPrefix(w.text, "/") && !strings.HasPrefix(w.text, ".") {
				r.out.Add(Contact, tool+" to an unknown place")
			}
			continue
		}
		if strings.Contains(w.text, "://") {
			host = w.text
		}
		if h, ok := Host(host); ok && Local(h) {
			continue
		}
		r.host(word{host, w.command})
		if i == len(ops)-1 {
			r.out.Add(Send, tool+" to "+w.text)
		}
	}
	r.computed(args, false)
}

func (r *reader) ask(tool string, args []word) {
	for _, w := range operands(args, "bcfkpqtxyWRmN") {
		if strings.HasPrefix(w.text, "@") || w.known() && strings.Contains(" a aaaa any txt mx ns soa cname ptr in status query flush-caches statistics dns ", " "+strings.ToLower(w.text)+" ") {
			continue
		}
		if host, ok := Host(w.text); ok && Local(host) {
			continue
		}
		r.out.Add(DNS|Contact, tool+" "+w.text)
		r.host(w)
		r.computed([]word{w}, true)
	}
}

func (r *reader) socat(args []word) {
	runs, out, listens := false, false, false
	for _, w := range args {
		kind, rest, ok := strings.Cut(w.text, ":")
		kind = strings.ToUpper(kind)
		switch {
		case strings.HasPrefix(w.text, "-") || !ok:
		case kind == "EXEC" || kind == "SYSTEM" || kind == "SHELL":
			runs = true
		case strings.Contains(kind, "LISTEN") || strings.HasSuffix(kind, "-L") || strings.HasSuffix(kind, "-RECVFROM"):
			listens = true
			r.out.Add(Listen, w.text)
		case slices.ContainsFunc([]string{"TCP", "UDP", "SCTP", "OPENSSL", "SSL", "SOCKS", "PROXY", "IP", "DCCP", "VSOCK"}, func(p string) bool { return strings.HasPrefix(kind, p) }):
			host, _, _ := strings.Cut(rest, ":")
			if !Local(host) {
				out = true
				r.out.Add(Contact|Send, "socat "+w.text)
				r.host(word{host, w.command})
			}
		}
	}
	if runs && (out || listens) {
		r.out.Add(Handover, "socat with a program")
	}
}

func (r *reader) openssl(args []word) {
	if len(args) == 0 {
		return
	}
	switch sub := args[0].text; sub {
	case "s_client", "s_time", "ocsp":
		w, ok := option(args, "-connect", "-host", "-url", "-proxy")
		if host, known := Host(w.text); ok && known && Local(host) {
			return
		}
		r.out.Add(Contact|Send, "openssl "+sub)
		r.host(w)
	case "s_server":
		r.out.Add(Listen, "openssl s_server")
	case "enc", "base64", "smime", "cms", "pkeyutl", "rsautl", "des3", "aes-256-cbc":
		if !slices.ContainsFunc(args, func(w word) bool { return w.text == "-d" || w.text == "-decrypt" }) {
			r.out.Add(Encode, "openssl "+sub)
		}
	}
}

// decodes are the options with which a program makes data readable again.
var decodes = map[string]string{
	"base64": "-d -D --decode -di -id", "base32": "-d --decode", "basenc": "-d --decode", "xxd": "-r -r -p -rp -ps", "gzip": "-d -dc -cd -t -l",
	"bzip2": "-d -dc", "xz": "-d -dc -l", "zstd": "-d -dc", "7z": "x l e t", "7za": "x l e t", "gpg": "-d --decrypt --verify --import", "gpg2": "-d --decrypt --verify",
	"rar": "x l e", "age": "-d", "ar": "x t", "brotli": "-d", "cpio": "-i -t -idmv",
}

func (r *reader) encode(tool string, args []word) {
	for _, w := range args {
		if w.text != "" && strings.Contains(" "+decodes[tool]+" ", " "+w.text+" ") {
			return
		}
	}
	if tool == "tar" {
		if len(args) == 0 {
			return
		}
		first := strings.TrimPrefix(args[0].text, "-")
		if !strings.HasPrefix(args[0].text, "--create") && !(strings.ContainsAny(first, "cru") && !strings.HasPrefix(args[0].text, "--")) {
			return
		}
	}
	if len(args) == 0 || args[0].text != "--version" {
		r.out.Add(Encode, tool)
	}
}
