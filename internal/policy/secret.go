package policy

import (
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxNames is how many different names SecretFiles may have: what the kernel compares with one file's name.
const MaxNames = 32

// MaxNamePart is the longest part of a name before or after its *, in bytes; a name without one may be twice as long.
const MaxNamePart = 32

const maxSecretFiles = 64

// Home begins the Dir of a SecretFile that stands for everybody's home directory.
const Home = "~"

// SecretFile is one line of taint.secret_files. A container that opens such a file has read something secret.
type SecretFile struct {
	Text string // as the file has it
	Dir  string // clean, absolute or below Home, each part may be a pattern of path.Match; empty: any directory
	Name string // of files directly in Dir, with at most one *; empty: all that is below Dir
}

func (p *parser) secretFiles(n *yaml.Node, into *[]SecretFile) {
	var texts []string
	names := map[string]bool{}
	p.Texts(n, "taint.secret_files", "paths such as /etc/shadow, ~/.ssh/ and **/.env", maxSecretFiles, &texts, func(s string) (string, string) {
		f, wrong := secretFile(s)
		if wrong != "" {
			return s, wrong
		}
		if f.Name != "" {
			names[f.Name] = true
		}
		if len(names) > MaxNames {
			return s, fmt.Sprintf("more than %d different file names: list a directory, /path/, instead", MaxNames)
		}
		*into = append(*into, f)
		return s, ""
	})
}

// secretFile says what is wrong with one line, or nothing.
func secretFile(s string) (SecretFile, string) {
	f := SecretFile{Text: s}
	if strings.ContainsRune(s, 0) || len(s) > 4095 {
		return f, "a path has at most 4095 bytes, none of them zero"
	}
	if name, ok := strings.CutPrefix(s, "**/"); ok {
		f.Name = name
		if name == "" || strings.Contains(name, "/") {
			return f, "after **/ there is one file name, such as **/.env"
		}
		return f, fileName(name)
	}
	rest := strings.TrimPrefix(s, Home+"/")
	switch {
	case !strings.HasPrefix(s, "/") && rest == s:
		return f, "a path begins with /, ~/ or **/"
	case strings.Contains(s, "**"):
		return f, "** stands at the beginning only, as in **/.env; a directory with all that is below it is written /path/"
	}
	f.Dir, f.Name = path.Split(s)
	clean := path.Clean(f.Dir)
	switch {
	case clean+"/" != f.Dir && f.Dir != "/":
		return f, fmt.Sprintf("write it as %s", yamlQuote(path.Join(clean, f.Name)))
	case f.Name == "" && (clean == "/" || clean == Home):
		return f, "that is nearly every file: name a directory below it"
	}
	f.Dir = clean
	if _, err := path.Match(f.Dir, ""); err != nil {
		return f, "its pattern is not complete: a [ has no ]"
	}
	if f.Name == "" {
		return f, ""
	}
	return f, fileName(f.Name)
}

// fileName checks the last part of a path: the kernel compares it, and knows one * and no other pattern.
func fileName(s string) string {
	head, tail, star := strings.Cut(s, "*")
	switch {
	case s == "." || s == "..":
		return "not a file's name"
	case strings.ContainsAny(s, "?[\\") || strings.Contains(tail, "*"):
		return "a file's name may have one * and no other pattern: id_*, *.pem"
	case star && (len(head) > MaxNamePart || len(tail) > MaxNamePart), len(s) > 2*MaxNamePart:
		return fmt.Sprintf("a file's name has at most %d bytes, and %d before and after a *", 2*MaxNamePart, MaxNamePart)
	}
	return ""
}
