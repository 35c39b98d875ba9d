// Command pack makes the deb, the rpm and the bill of materials of what scripts/release has built: pack DIST. The time is SOURCE_DATE_EPOCH.
// It is a module of its own, so that what it needs is no dependency of the programs.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers itself
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// release is what packages are made of.
type release struct {
	repo, dist, stage string // stage: what exists only in packages
	version           string
	abi               int
	time              time.Time
	contents          []*files.Content
}

func run() error {
	var r release
	flag.StringVar(&r.repo, "repo", "../..", "`directory` of the repository")
	flag.StringVar(&r.version, "version", "", "another `version` than the program's, for tests")
	flag.IntVar(&r.abi, "abi", 0, "another `number` than the program's, for tests")
	flag.Parse()
	if flag.NArg() != 1 {
		return fmt.Errorf("read arguments: want the directory of a release, got %q", flag.Args())
	}
	r.dist = flag.Arg(0)
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("read SOURCE_DATE_EPOCH: %w", err)
	}
	r.time = time.Unix(seconds, 0).UTC()
	if r.stage, err = os.MkdirTemp("", "weir-pack"); err != nil {
		return fmt.Errorf("make room for files: %w", err)
	}
	defer os.RemoveAll(r.stage)
	if err := r.identify(); err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		if err := r.pack(format); err != nil {
			return fmt.Errorf("make the %s: %w", format, err)
		}
	}
	if err := r.materials(); err != nil {
		return fmt.Errorf("write the bill of materials: %w", err)
	}
	return nil
}

// identify asks the program what it is.
func (r *release) identify() error {
	out, err := exec.Command(filepath.Join(r.dist, "weir"), "version", "--json").Output()
	if err != nil {
		return fmt.Errorf("ask the program for its version: %w", err)
	}
	var told struct {
		Version string `json:"version"`
		ABI     int    `json:"abi"`
	}
	if err := json.Unmarshal(out, &told); err != nil {
		return fmt.Errorf("read the program's version: %w", err)
	}
	if r.version == "" {
		r.version = told.Version
	}
	if r.abi == 0 {
		r.abi = told.ABI
	}
	if r.version == "devel" {
		r.version = "v0.0.0-devel" // built without its history
	}
	return nil
}

// staged writes a file that exists only in packages, and returns its path.
func (r *release) staged(name string, data []byte) (string, error) {
	path := filepath.Join(r.stage, name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return "", fmt.Errorf("write a file for the package: %w", err)
	}
	return path, nil
}

func zipped(data []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level exists
	w.Write(data)
	w.Close()
	return b.Bytes()
}

func (r *release) file(source, destination string, mode os.FileMode) {
	r.contents = append(r.contents, &files.Content{Source: source, Destination: destination, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.time, Owner: "root", Group: "root"}})
}

// made adds a file whose text is made here.
func (r *release) made(destination string, data []byte) error {
	source, err := r.staged(strings.ReplaceAll(destination, "/", "_"), data)
	if err == nil {
		r.file(source, destination, 0o644)
	}
	return err
}

// list has what both formats have, and what only this one has.
func (r *release) list(format string) error {
	r.contents = nil
	for _, program := range []string{"weir", "weir-hook", "weir-fleet", "weir-otel"} {
		r.file(filepath.Join(r.dist, program), "/usr/bin/"+program, 0o755)
	}
	r.file(filepath.Join(r.dist, "policies/policy.yaml"), "/etc/weir/policy.yaml", 0o600)
	r.contents[len(r.contents)-1].Type = files.TypeConfigNoReplace
	units, err := filepath.Glob(filepath.Join(r.dist, "systemd/*.service"))
	if err != nil || len(units) == 0 {
		return fmt.Errorf("find the units: %v, %w", units, err)
	}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			return fmt.Errorf("read a unit: %w", err)
		}
		if err := r.made("/usr/lib/systemd/system/"+filepath.Base(unit), bytes.ReplaceAll(text, []byte("/usr/local/bin/"), []byte("/usr/bin/"))); err != nil {
			return err
		}
	}
	pages, err := filepath.Glob(filepath.Join(r.dist, "man/*.1"))
	if err != nil || len(pages) == 0 {
		return fmt.Errorf("find the manual: %v, %w", pages, err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return fmt.Errorf("read a page: %w", err)
		}
		if err := r.made("/usr/share/man/man1/"+filepath.Base(page)+".gz", zipped(text)); err != nil {
			return err
		}
	}
	examples, err := filepath.Glob(filepath.Join(r.dist, "policies/*.yaml"))
	if err != nil {
		return fmt.Errorf("find the policies: %w", err)
	}
	for _, example := range examples {
		r.file(example, "/usr/share/doc/weir/examples/"+filepath.Base(example), 0o644)
	}
	zsh := map[string]string{"deb": "vendor-completions", "rpm": "site-functions"}[format]
	r.file(filepath.Join(r.dist, "completion/weir.bash"), "/usr/share/bash-completion/completions/weir", 0o644)
	r.file(filepath.Join(r.dist, "completion/_weir"), "/usr/share/zsh/"+zsh+"/_weir", 0o644)
	r.file(filepath.Join(r.dist, "completion/weir.fish"), "/usr/share/fish/vendor_completions.d/weir.fish", 0o644)
	notice, err := os.ReadFile(filepath.Join(r.repo, "NOTICE"))
	if err != nil {
		return fmt.Errorf("read the notice: %w", err)
	}
	if format == "rpm" {
		r.file(filepath.Join(r.repo, "LICENSE"), "/usr/share/licenses/weir/LICENSE", 0o644)
		for _, name := range []string{"GPL-2.0-only.txt", "BSD-2-Clause.txt"} {
			r.file(filepath.Join(r.repo, "LICENSES", name), "/usr/share/licenses/weir/"+name, 0o644)
		}
		return r.made("/usr/share/licenses/weir/NOTICE", notice)
	}
	copyright, err := r.copyright()
	if err != nil {
		return err
	}
	changes := fmt.Sprintf("weir (%s) unstable; urgency=medium\n\n  * NEWS has what changed.\n\n -- %s  %s\n", debian(r.version), maintainer, r.time.Format(time.RFC1123Z))
	news, err := os.ReadFile(filepath.Join(r.repo, "CHANGELOG.md"))
	if err != nil {
		return fmt.Errorf("read the changelog: %w", err)
	}
	for destination, data := range map[string][]byte{
		"/usr/share/doc/weir/copyright": copyright, "/usr/share/doc/weir/changelog.gz": zipped([]byte(changes)),
		"/usr/share/doc/weir/NEWS.gz": zipped(news), "/usr/share/doc/weir/NOTICE.gz": zipped(notice),
	} {
		if err := r.made(destination, data); err != nil {
			return err
		}
	}
	r.file(filepath.Join(r.repo, "deploy/package/lintian-overrides"), "/usr/share/lintian/overrides/weir", 0o644)
	return nil
}

// copyright is Debian's, with the text that Debian has not.
func (r *release) copyright() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(r.repo, "deploy/package/copyright"))
	if err != nil {
		return nil, fmt.Errorf("read the copyright: %w", err)
	}
	bsd, err := os.ReadFile(filepath.Join(r.repo, "LICENSES/BSD-2-Clause.txt"))
	if err != nil {
		return nil, fmt.Errorf("read a licence: %w", err)
	}
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(string(bsd))) {
		if strings.TrimSpace(line) == "" {
			line = ".\n"
		}
		b.WriteString(" " + line)
	}
	return bytes.ReplaceAll(text, []byte("@BSD@"), []byte(b.String())), nil
}

const (
	maintainer = "The Weir authors <maintainers@weir.invalid>"
	summary    = "deny the egress of agents that have read what must not leave"
	about      = "Weir lets an AI agent run commands freely and still keeps what it has read\nfrom leaving: when its container is tainted, the kernel denies its egress until\na person approves it, command by command. It needs Linux 6.1 or newer."
)

// debian is a version as packages have it: v0.1.0-rc.1 becomes 0.1.0~rc.1, which sorts before 0.1.0.
func debian(version string) string {
	number, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	if rest == "" {
		return number
	}
	return number + "~" + strings.ReplaceAll(rest, "-", ".")
}

func (r *release) pack(format string) error {
	if err := r.list(format); err != nil {
		return err
	}
	scripts, err := r.scripts(format)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "weir", Arch: "amd64", Platform: "linux", Version: debian(r.version), VersionSchema: "none", Section: "admin", Priority: "optional",
		Maintainer: maintainer, License: "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)", MTime: r.time, DisableGlobbing: true,
		Description: summary + "\n" + about,
		Overridables: nfpm.Overridables{
			Contents: r.contents, Scripts: scripts, Recommends: []string{"ca-certificates"},
			Deb: nfpm.Deb{Compression: "xz"},
			RPM: nfpm.RPM{Compression: "xz", BuildHost: "localhost", Summary: summary},
		},
	})
	if format == "rpm" {
		info.Release, info.Description = "1", about // it has the summary apart
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := packager.Package(info, &b); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dist, packager.ConventionalFileName(info)), b.Bytes(), 0o644)
}

// scripts are those of deploy/package, with the number of the ABI.
func (r *release) scripts(format string) (s nfpm.Scripts, err error) {
	names := map[string][4]string{"deb": {"preinst", "postinst", "prerm", "postrm"}, "rpm": {"pre", "post", "preun", "postun"}}[format]
	for i, to := range []*string{&s.PreInstall, &s.PostInstall, &s.PreRemove, &s.PostRemove} {
		text, err := os.ReadFile(filepath.Join(r.repo, "deploy/package", format, names[i]))
		if err != nil {
			return s, fmt.Errorf("read a script: %w", err)
		}
		if *to, err = r.staged(format+"-"+names[i], bytes.ReplaceAll(text, []byte("@ABI@"), []byte(strconv.Itoa(r.abi)))); err != nil {
			return s, err
		}
	}
	return s, nil
}

var row = regexp.MustCompile(`(?m)^(\S+) +(\S.*)$`)

// licences are those of the table in NOTICE, by module.
func (r *release) licences() (map[string]string, error) {
	notice, err := os.ReadFile(filepath.Join(r.repo, "NOTICE"))
	if err != nil {
		return nil, fmt.Errorf("read the notice: %w", err)
	}
	table, _, _ := strings.Cut(string(notice), "\n"+strings.Repeat("-", 100))
	all := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		all[m[1]] = m[2]
	}
	return all, nil
}

// materials writes what the programs are built of, as they say themselves, in CycloneDX's form.
func (r *release) materials() error {
	licences, err := r.licences()
	if err != nil {
		return err
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.time.Format(time.RFC3339),
		Component: &cyclonedx.Component{BOMRef: "weir", Type: cyclonedx.ComponentTypeApplication, Name: "weir", Version: r.version, Licenses: &cyclonedx.Licenses{{Expression: "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)"}}},
	}
	modules := map[string]cyclonedx.Component{}
	var programs []cyclonedx.Component
	var uses []cyclonedx.Dependency
	all := sha256.New()
	for _, name := range []string{"weir", "weir-hook", "weir-fleet", "weir-otel"} {
		path := filepath.Join(r.dist, name)
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all.Write(data)
		sum := sha256.Sum256(data)
		programs = append(programs, cyclonedx.Component{BOMRef: name + ":program", Type: cyclonedx.ComponentTypeFile, Name: name, Version: r.version, Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}})
		var refs []string
		add := func(path, version, shown, licence string) error {
			if licence == "" {
				return fmt.Errorf("NOTICE has no licence of %s", path)
			}
			ref := "pkg:golang/" + path + "@" + version
			modules[ref] = cyclonedx.Component{BOMRef: ref, Type: cyclonedx.ComponentTypeLibrary, Name: shown, Version: version, PackageURL: ref, Scope: cyclonedx.ScopeRequired, Licenses: &cyclonedx.Licenses{{Expression: licence}}}
			refs = append(refs, ref)
			return nil
		}
		if err := add("std", info.GoVersion, "Go's standard library", licences["Go"]); err != nil {
			return err
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if err := add(m.Path, m.Version, m.Path, licences[m.Path]); err != nil {
				return err
			}
		}
		uses = append(uses, cyclonedx.Dependency{Ref: name + ":program", Dependencies: &refs})
	}
	components := programs
	var refs []string
	for ref := range modules {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	for _, ref := range refs {
		components = append(components, modules[ref])
	}
	bom.Components = &components
	uses = append(uses, cyclonedx.Dependency{Ref: "weir", Dependencies: &[]string{"weir:program", "weir-hook:program", "weir-fleet:program", "weir-otel:program"}})
	bom.Dependencies = &uses
	id := all.Sum(nil)[:16] // a UUID of what it describes: equal bytes, equal number
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	var b bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dist, "weir.cdx.json"), b.Bytes(), 0o644)
}
