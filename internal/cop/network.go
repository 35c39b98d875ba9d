package cop

import (
	"slices"
	"strings"

	"weir/internal/commands"
)

// keyOptions take a file that is used to prove who one is, and is not sent.
var keyOptions = []string{"-i", "-F", "-E", "--cert", "--key", "--cacert", "--capath", "--certificate", "--private-key", "--ca-certificate", "--pinnedpubkey"}

// given is one option with its value, if it takes one.
type given struct {
	name  string // "-d" or "--data"
	value word
}

// split tells options from operands by a program's entry in the catalogue; nil: it has none.
func split(entry *commands.Command, args []word) (options []given, operands []word) {
	if entry == nil {
		entry = &commands.Command{Any: true, Short: "b:c:i:j:l:o:p:r:s:u:S:X:"}
	}
	c := &commands.Call{Command: entry, Words: make([]commands.Word, len(args))}
	for i, w := range args {
		c.Words[i] = commands.Word{Text: w.text, Fixed: w.known(), Offset: i}
	}
	commands.ParseSplit(c, commands.Word{})
	for _, o := range c.Options {
		g := given{name: o.Name}
		if o.Has {
			g.value = word{o.Value.Text, args[o.Value.Offset].command}
		}
		options = append(options, g)
	}
	for _, w := range c.Operands {
		operands = append(operands, args[w.Offset])
	}
	return options, operands
}

func operands(tool string, args []word) []word {
	_, ops := split(commands.Lookup(tool), args)
	return ops
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

const namesHost = " --proxy --preproxy --socks4 --socks4a --socks5 --socks5-hostname --doh-url --url --resolve --connect-to --dns-servers "

// curlShort and wgetShort are the long names of the short options that matter.
var (
	curlShort = map[string]string{"-b": "--cookie", "-H": "--header", "-X": "--request", "-x": "--proxy", "-V": "--version"}
	wgetShort = map[string]string{"-V": "--version"}
)

// fetch reads curl, wget and what is like them.
func (r *reader) fetch(tool string, args []word) {
	short, quiet := wgetShort, commands.Table("quiet")["wget"]
	options, urls := split(commands.Lookup(tool), args)
	switch {
	case tool == "curl":
		short, quiet = curlShort, commands.Table("quiet")[tool]
	case !strings.HasPrefix(tool, "wget"):
		quiet, options = commands.Table("quiet")["others"], whole(args)
	}
	before := r.out.Has & Contact
	r.out.Has &^= Contact
	sends, asks := "", len(urls) > 0
	for _, u := range urls {
		r.host(u)
		scheme, _, ok := strings.Cut(u.text, "://")
		if ok && !slices.Contains([]string{"http", "https", "ftp", "ftps", "file"}, strings.ToLower(scheme)) {
			sends = u.text // gopher, dict, telnet: any bytes
		}
	}
	for _, o := range options {
		name := o.name
		if long, ok := short[name]; ok {
			name = long
		}
		is := func(set string) bool { return strings.Contains(set, " "+name+" ") }
		switch method := strings.ToUpper(o.value.text); {
		case is(namesHost):
			if parts := strings.Split(o.value.text, ":"); name == "--resolve" || name == "--connect-to" {
				o.value.text = parts[min(2, len(parts)-1)]
			}
			asks = asks || name == "--url"
			r.host(o.value)
		case !commands.Listed(quiet, name), is(" --request --method ") && method != "GET" && method != "HEAD",
			is(" --header ") && strings.HasPrefix(o.value.text, "@"), is(" --cookie ") && !strings.Contains(o.value.text, "="):
			sends = name + " " + o.value.text
		case is(" --version --help -h --manual "):
			asks = true
		}
	}
	if !asks {
		r.out.Add(Contact, tool+" without a literal address")
	}
	if r.out.Has&Contact != 0 {
		if sends != "" {
			r.out.Add(Send, tool+" "+sends)
		}
		r.computed(args, true)
	}
	r.out.Has |= before
}

// whole are the words that may be options, each a name of its own: -dump is no cluster to these programs.
func whole(args []word) []given {
	var options []given
	for _, w := range args {
		if name, _, _ := strings.Cut(strings.ToLower(w.text), "="); strings.HasPrefix(name, "-") {
			options = append(options, given{name: strings.TrimRight(name, "0123456789"), value: w})
		}
	}
	return options
}

func (r *reader) send(tool string, args []word) {
	netcat := strings.HasPrefix(tool, "nc") || tool == "netcat"
	listens := slices.ContainsFunc(args, func(w word) bool {
		return w.text == "--listen" || len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-' && strings.Contains(w.text, "l")
	})
	hosts := operands(tool, args)
	if tool == "finger" && !slices.ContainsFunc(hosts, func(w word) bool { return !w.known() || strings.Contains(w.text, "@") }) {
		return // of this machine's users
	}
	local := false
	if len(hosts) > 0 {
		host, ok := Host(hosts[0].text)
		local = ok && Local(host)
	}
	for _, name := range []string{"-e", "-c", "--exec", "--sh-exec", "--lua-exec"} {
		if w, ok := option(args, name); ok && netcat && !(name == "-c" && strings.HasPrefix(w.text, "-")) {
			r.out.Add(ReverseShell, tool+" "+name+" "+w.text)
		}
	}
	if netcat && listens && !local {
		r.out.Add(Listen|Send, tool+" listens and hands out what it reads")
		return
	}
	if local {
		return
	}
	r.out.Add(Contact|Send, tool+" sends what it reads")
	if len(hosts) > 0 {
		r.host(hosts[0])
	}
	r.computed(args, true)
}

func (r *reader) copies(tool string, args []word) {
	ops := operands(tool, args)
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
	for _, w := range operands(tool, args) {
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
			r.out.Add(Listen|Send, w.text)
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
		r.out.Add(ReverseShell, "socat with a program")
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
		r.out.Add(Listen|Send, "openssl s_server")
	case "enc", "base64", "smime", "cms", "pkeyutl", "rsautl", "des3", "aes-256-cbc":
		if !slices.ContainsFunc(args, func(w word) bool { return w.text == "-d" || w.text == "-decrypt" }) {
			r.out.Add(Encode, "openssl "+sub)
		}
	}
}

func (r *reader) encode(tool string, args []word) {
	if has(args, commands.Table("decodes")[tool]) {
		return
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
