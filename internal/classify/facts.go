package classify

import (
	"net/url"
	"slices"
	"strings"

	"weir/internal/classify/table"
)

// maxFacts bounds each list of facts.
const maxFacts = 64

func put(list *[]string, s string) {
	if s == "" || len(*list) >= maxFacts || slices.Contains(*list, s) {
		return
	}
	*list = append(*list, s)
}

func (f *Facts) program(name string) { put(&f.Programs, name) }

func (f *Facts) read(w table.Word) {
	if w.Fixed && w.Text != "-" {
		put(&f.Reads, w.Text)
	}
}

func (f *Facts) write(path string) {
	if !devices[path] {
		put(&f.Writes, path)
	}
}

func (f *Facts) flags(name string, flags table.Flags) {
	f.Install = f.Install || flags&table.Install != 0
	f.Runtime = f.Runtime || flags&table.Runtime != 0
	f.Upload = f.Upload || flags&table.Upload != 0
	f.Download = f.Download || flags&table.Download != 0
	if flags&table.Encoder != 0 {
		put(&f.Encoders, name)
	}
	if flags&table.Listen != 0 {
		put(&f.Listens, "*")
	}
}

// scan looks for URLs among words.
func (f *Facts) scan(words []table.Word) {
	for _, w := range words {
		if i := strings.Index(w.Text, "://"); i > 0 {
			f.url(w.Text)
		}
	}
}

// url notes a URL, wherever in s it begins.
func (f *Facts) url(s string) {
	i := strings.Index(s, "://")
	from := i
	for from > 0 && (letter(s[from-1]) || strings.IndexByte("+-.0123456789", s[from-1]) >= 0) {
		from--
	}
	if from == i || len(f.URLs) >= maxFacts {
		return
	}
	s = s[from:]
	if end := strings.IndexAny(s, " \t\n\"'<>`"); end >= 0 {
		s = s[:end]
	}
	put(&f.URLs, s)
	if u, err := url.Parse(s); err == nil && u.Hostname() != "" {
		put(&f.Hosts, u.Hostname())
	}
}

// host notes a word that names a host: a URL, user@host:path, host:port, a name.
func (f *Facts) host(w table.Word) {
	s := w.Text
	if !w.Fixed || s == "" || s[0] == '-' {
		return
	}
	if strings.Contains(s, "://") {
		f.url(s)
		return
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	if strings.HasPrefix(s, "[") {
		s, _, _ = strings.Cut(s[1:], "]")
	} else if strings.Count(s, ":") == 1 {
		s, _, _ = strings.Cut(s, ":")
	}
	s, _, _ = strings.Cut(s, "/")
	if hostName(s) {
		put(&f.Hosts, s)
	}
}

// hostName tells whether s looks like a name or an address, not like an option's value.
func hostName(s string) bool {
	if s == "localhost" {
		return true
	}
	for i := range len(s) {
		c := s[i]
		if !(letter(c) || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' || c == ':') {
			return false
		}
	}
	return strings.ContainsAny(s, ".:") && !strings.HasPrefix(s, ".")
}

// connection notes the destination of /dev/tcp/HOST/PORT.
func (f *Facts) connection(path string) {
	parts := strings.Split(path, "/")
	if len(parts) >= 4 {
		put(&f.Hosts, parts[3])
	}
}
