package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestF46Commands: docs/commands.md has every command, and its synopses name no flag that there is none of (F46).
func TestF46Commands(t *testing.T) {
	data, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	root := new(system).root()
	for _, path := range everyCommand(root) {
		group := regexp.QuoteMeta(path[0])
		named := regexp.MustCompile("`weir " + group + "\\b").MatchString(doc)
		if len(path) > 1 {
			line := regexp.MustCompile("`weir " + group + " [^`\n]*\\b" + regexp.QuoteMeta(path[1]) + "\\b")
			named = line.MatchString(doc)
		}
		if !named {
			t.Errorf("docs/commands.md does not name weir %s", strings.Join(path, " "))
		}
	}
	synopses := 0
	for _, text := range regexp.MustCompile("`weir ([^`\n]+)`").FindAllStringSubmatch(doc, -1) {
		own, _, _ := strings.Cut(text[1], " -- ")
		words := strings.Fields(own)
		cmd, _, err := root.Find(words)
		if err != nil || cmd == root || cmd.DisableFlagParsing {
			continue
		}
		for _, flag := range regexp.MustCompile(`(?:^|[\s\[|])--?([a-z][a-z-]*)`).FindAllStringSubmatch(own, -1) {
			synopses++
			name := flag[1]
			if name == "help" || name == "version" {
				continue
			}
			if len(name) == 1 && cmd.Flags().ShorthandLookup(name) == nil && cmd.PersistentFlags().ShorthandLookup(name) == nil ||
				len(name) > 1 && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil && cmd.PersistentFlags().Lookup(name) == nil {
				t.Errorf("docs/commands.md, weir %s: there is no flag %s", text[1], flag[0])
			}
		}
	}
	if synopses < 30 {
		t.Errorf("only %d flags were found", synopses)
	}
}
