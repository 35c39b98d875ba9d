package classify

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/internal/commands"
)

// Facts are what later stages want to know of a command. Only literal values are
// listed, each once, in order.
type Facts struct {
	Programs []string `json:"programs,omitempty"` // as they were called: /usr/bin/curl, grep
	URLs     []string `json:"urls,omitempty"`
	Hosts    []string `json:"hosts,omitempty"`
	To       []Place  `json:"to,omitempty"`    // where a program's words say that it connects: no URL in what it sends is among these (B158)
	Reads    []string `json:"reads,omitempty"` // files
	Writes   []string `json:"writes,omitempty"`
	Listens  []string `json:"listens,omitempty"`  // addresses or ports of listening sockets
	Encoders []string `json:"encoders,omitempty"` // programs that change how data looks
	Install  bool     `json:"install,omitempty"`
	Runtime  bool     `json:"runtime,omitempty"`
	Upload   bool     `json:"upload,omitempty"`
	Download bool     `json:"download,omitempty"`
	Cut      bool     `json:"cut,omitempty"` // there was more than a list takes
}

// Place is where a command connects.
type Place struct {
	Host  string `json:"host"`
	Port  uint16 `json:"port,omitempty"`  // 0: any
	Shell bool   `json:"shell,omitempty"` // the shell itself connects: /dev/tcp
}

// maxFacts bounds each list of facts.
const maxFacts = 64

func (f *Facts) put(list *[]string, s string) { put(f, list, s) }

func put[T comparable](f *Facts, list *[]T, one T) {
	var none T
	switch {
	case one == none || slices.Contains(*list, one):
	case len(*list) >= maxFacts:
		f.Cut = true
	default:
		*list = append(*list, one)
	}
}

// Program notes a program as it was called.
func (f *Facts) Program(name string) { f.put(&f.Programs, name) }

// Read notes a file that is read.
func (f *Facts) Read(w commands.Word) {
	if w.Fixed && w.Text != "-" {
		f.put(&f.Reads, w.Text)
	}
}

// Write notes a file that is written.
func (f *Facts) Write(path string) {
	if path != "-" && !commands.Device(path) {
		f.put(&f.Writes, path)
	}
}

// Flags notes what a table says of a command.
func (f *Facts) Flags(name string, flags commands.Flags) {
	f.Install = f.Install || flags&commands.Install != 0
	f.Runtime = f.Runtime || flags&commands.Runtime != 0
	f.Upload = f.Upload || flags&commands.Upload != 0
	f.Download = f.Download || flags&commands.Download != 0
	if flags&commands.Encoder != 0 {
		f.put(&f.Encoders, name)
	}
	if flags&commands.Listen != 0 {
		f.put(&f.Listens, "*")
	}
}

// Listen notes the address or port of a listening socket.
func (f *Facts) Listen(at string) { f.put(&f.Listens, at) }

// Scan looks for URLs among words.
func (f *Facts) Scan(words []commands.Word) {
	for _, w := range words {
		if i := strings.Index(w.Text, "://"); i > 0 {
			f.url(w.Text)
		}
	}
}

// url notes a URL, wherever in s it begins, and gives where it leads.
func (f *Facts) url(s string) (to Place) {
	i := strings.Index(s, "://")
	from := i
	for from > 0 && schemeRune(rune(s[from-1])) {
		from--
	}
	if from == i || f.Cut && len(f.URLs) >= maxFacts {
		return to
	}
	s = s[from:]
	if end := strings.IndexAny(s, " \t\n\"'<>`"); end >= 0 {
		s = s[:end]
	}
	f.put(&f.URLs, s)
	if u, err := url.Parse(s); err == nil && u.Hostname() != "" {
		f.put(&f.Hosts, u.Hostname())
		to = place(u.Hostname(), u.Port())
		if to.Port == 0 {
			to.Port = ports[u.Scheme]
		}
	}
	return to
}

var ports = map[string]uint16{"http": 80, "https": 443, "ssh": 22, "ftp": 21, "git": 9418}

func place(host, port string) Place {
	n, _ := strconv.ParseUint(port, 10, 16) // what is no number may be any
	return Place{Host: host, Port: uint16(n)}
}

func schemeRune(r rune) bool {
	return r < utf8.RuneSelf && (commands.Letter(byte(r)) || strings.ContainsRune("+-.0123456789", r))
}

// Host notes a word that names a host: a URL, of which no more than the host need be known, user@host:path, host:port, a name.
func (f *Facts) Host(w commands.Word) {
	s := w.Text
	if s == "" || s[0] == '-' {
		return
	}
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		if to := f.url(s); (w.Fixed || strings.Contains(rest, "/")) && !strings.ContainsFunc(scheme, func(r rune) bool { return !schemeRune(r) }) {
			put(f, &f.To, to)
		}
		return
	}
	s, _, _ = strings.Cut(commands.HostPart(s), "/")
	if w.Fixed && hostName(s) {
		f.put(&f.Hosts, s)
		put(f, &f.To, Place{Host: s})
	}
}

// hostName tells whether s looks like a name or an address, not like an option's value.
func hostName(s string) bool {
	if s == "localhost" {
		return true
	}
	for i := range len(s) {
		c := s[i]
		if !(commands.Letter(c) || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' || c == ':') {
			return false
		}
	}
	return strings.ContainsAny(s, ".:") && !strings.HasPrefix(s, ".")
}

// Connection notes the destination of /dev/tcp/HOST/PORT.
func (f *Facts) Connection(path commands.Word) {
	parts := strings.Split(path.Text, "/")
	if len(parts) < 4 {
		return
	}
	f.put(&f.Hosts, parts[3])
	if path.Fixed && len(parts) > 4 {
		to := place(parts[3], parts[4])
		to.Shell = true
		put(f, &f.To, to)
	}
}
