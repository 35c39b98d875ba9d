package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/redact"
	"weir/internal/strict"
)

// withoutSecrets takes out of the text of an error each argument that may be a secret (F35): of weir vault all that is long enough to be one and is
// neither a word of weir's own nor a path that leads somewhere, of other commands what looks like one.
func withoutSecrets(cmd *cobra.Command, args []string, text string) string {
	vault := cmd.Name() == "help" && slices.Contains(args, "vault")
	own := []string{}
	for c := cmd; c != nil; c = c.Parent() {
		vault = vault || c.Name() == "vault"
		own = append(own, c.Name())
	}
	for _, name := range []string{"vault", "key-file", "ca"} {
		if f := cmd.Flags().Lookup(name); f != nil && leads(f.Value.String()) {
			own = append(own, f.Value.String())
		}
	}
	var secrets [][]byte
	for _, arg := range args {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		parts := []string{arg}
		if strings.HasPrefix(arg, "-") && cmd.Flags().Lookup(name) != nil {
			parts[0] = value
		} else if strings.HasPrefix(arg, "-") {
			parts = append(parts, name, value)
		}
		for _, part := range append(strings.Split(parts[0], ","), parts...) {
			if !vault && redact.Likely(part) == part || slices.Contains(own, part) {
				continue
			}
			for _, s := range []string{part, part[:min(len(part), strict.MostQuoted)]} {
				if redact.Check([]byte(s)) == nil {
					secrets = append(secrets, []byte(s))
				}
			}
		}
	}
	scrub, err := redact.New(secrets...)
	if err != nil {
		return "it failed, and the error cannot be told without its arguments"
	}
	return scrub.Name(text)
}

// leads says whether a path is one of a file, or of what could be one in a directory that is there.
func leads(path string) bool {
	if _, err := os.Lstat(path); err == nil {
		return true
	}
	_, err := os.Stat(filepath.Dir(path))
	return err == nil && strings.Contains(path, "/")
}
