// Command notice writes NOTICE: the modules that the programs are built of, their licences, and the texts of these, from Go's module cache.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

const intro = `Weir
Copyright 2026 The Weir authors

Licensed under the Apache License, Version 2.0 (LICENSE). The programs for the kernel, below bpf/, are licensed under GPL-2.0-only or
BSD-2-Clause, as you choose (LICENSES).

The programs weir, weir-hook and weir-fleet contain parts of the Go distribution and of the modules below. Their licences follow the table.
Made by "go generate ./scripts/notice"; a test compares it.

`

// A part is a module, or Go itself.
type part struct {
	path, licence string
	files         []string // licences and notices, relative to dir
	dir           string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "notice:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("read arguments: want one file to write, got %d", len(args))
	}
	text, err := notice()
	if err != nil {
		return err
	}
	if err := os.WriteFile(args[0], text, 0o644); err != nil {
		return fmt.Errorf("write the notice: %w", err)
	}
	return nil
}

func notice() ([]byte, error) {
	parts, err := modules("weir/cmd/...")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(intro)
	texts := map[string][]string{} // the words of a text → whose it is
	var order []string
	for _, p := range parts {
		fmt.Fprintf(&b, "%-55s %s\n", p.path, p.licence)
		for _, file := range p.files {
			data, err := os.ReadFile(filepath.Join(p.dir, file))
			if err != nil {
				return nil, fmt.Errorf("read the licence of %s: %w", p.path, err)
			}
			text := strings.Trim(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
			key := strings.Join(strings.Fields(text), " ")
			if texts[key] == nil {
				order = append(order, text)
			}
			texts[key] = append(texts[key], p.path)
		}
	}
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 100), strings.Join(texts[strings.Join(strings.Fields(text), " ")], "\n"), text)
	}
	return b.Bytes(), nil
}

// modules are those that packages for Linux are built of, by path, and Go.
func modules(packages ...string) ([]part, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-tags=grpcnotrace,no_gogo", "-json=Module"}, packages...)...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go: %w", err)
	}
	dirs := map[string]string{"Go": strings.TrimSpace(string(root))}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Module struct {
				Path, Dir string
				Main      bool
			}
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the list of modules: %w", err)
		}
		if m := p.Module; m.Path != "" && !m.Main {
			dirs[m.Path] = m.Dir
		}
	}
	var parts []part
	for path, dir := range dirs {
		p, err := of(path, dir)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(strings.ToLower(a.path), strings.ToLower(b.path)) })
	return parts, nil
}

var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([-.].*)?$`)

// declared is what a text says by itself, such as a choice of two.
var declared = regexp.MustCompile(`SPDX-License-Identifier: (.*?) *(?:\*/)?\n`)

// of finds the licences of a module. One whose licence is not known fails: somebody must read it.
func of(path, dir string) (part, error) {
	p := part{path: path, dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return p, fmt.Errorf("look for the licence of %s: %w", path, err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() || !legal.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".docs") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return p, fmt.Errorf("read the licence of %s: %w", path, err)
		}
		p.files = append(p.files, e.Name())
		if m := declared.FindSubmatch(data); m != nil {
			ids = append(ids, "("+string(m[1])+")")
			continue
		}
		for _, m := range licensecheck.Scan(data).Match {
			if id := strings.TrimSuffix(m.ID, "-Header"); !m.IsURL && id != "GooglePatentsFile" && id != "GooglePatentClause" {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	p.licence = strings.Join(slices.Compact(ids), " AND ")
	if p.licence == "" {
		return p, fmt.Errorf("the licence of %s is not known: look in %s", path, dir)
	}
	return p, nil
}
