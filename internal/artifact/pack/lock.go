package pack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// lock is the content of pmk-sched.lock: all inputs that decide a scheduler image's bytes, so that
// the same image can be built again later.
type lock struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	// PMKSched is the pmk-sched version that wrote it. It is not compared: a difference explains other
	// differences.
	PMKSched string `yaml:"pmkSched,omitempty"`
	// Release is the Kubernetes release, Source where it came from, and Commit the commit of a git
	// source.
	Release string `yaml:"release"`
	// Rules is the minor release whose rules were used, if the tables do not have Release.
	Rules  string `yaml:"rules,omitempty"`
	Source string `yaml:"source"`
	Commit string `yaml:"commit,omitempty"`
	// Go is the compiler's version. GoChosen reports whether `--go` chose it instead of the release,
	// which changes the generated module too.
	Go       string `yaml:"go"`
	GoChosen bool   `yaml:"goChosen,omitempty"`
	// Base is the base image: NAME@sha256:…, or only the digest if it is not in a registry. It is
	// empty if only a program was built.
	Base    string         `yaml:"base,omitempty"`
	Plugins []lockedPlugin `yaml:"plugins,omitempty"`
	Imports []string       `yaml:"imports,omitempty"`
	// Binaries are the programs in the image.
	Binaries []lockedBinary `yaml:"binaries"`
	// Modules are those linked into the binaries, as `PATH VERSION SUM`, sorted.
	Modules []string `yaml:"modules"`
}

// lockedPlugin is a compiled-in plugin with its sources' hash.
type lockedPlugin struct {
	Name   string `yaml:"name"`
	Origin string `yaml:"origin"`
	SHA256 string `yaml:"sha256"`
}

type lockedBinary struct {
	Platform string `yaml:"platform"`
	SHA256   string `yaml:"sha256"`
}

const (
	lockAPIVersion = "pmk-sched.io/v1alpha1"
	lockKind       = "Lock"
	lockComment    = "# What `pmk-sched build` made an image of. `build --locked` fails if a build differs; " +
		"`build --lock` writes this file again.\n"
)

func newLock(version string, built *build.Result) (*lock, error) {
	l := &lock{
		APIVersion: lockAPIVersion, Kind: lockKind, PMKSched: version, Release: built.Info.Release,
		Rules: otherRules(built.Info), Source: built.Info.Source, Commit: built.Info.Commit,
		Go: built.Info.Go, GoChosen: built.Info.GoChosen, Imports: built.Info.Imports,
	}
	for _, p := range built.Info.Plugins {
		l.Plugins = append(l.Plugins, lockedPlugin{Name: p.Name, Origin: p.Origin, SHA256: p.SHA256})
	}
	for _, b := range built.Binaries {
		l.Binaries = append(l.Binaries, lockedBinary{Platform: b.Platform.String(), SHA256: b.SHA256})
		modules, err := build.ModuleSums(b.Path)
		if err != nil {
			return nil, fmt.Errorf("read the modules of %s: %w", b.Program, err)
		}
		l.Modules = append(l.Modules, moduleLines(modules)...)
	}
	slices.SortFunc(l.Plugins, func(a, b lockedPlugin) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(l.Binaries, func(a, b lockedBinary) int { return strings.Compare(a.Platform, b.Platform) })
	slices.Sort(l.Modules)
	l.Modules = slices.Compact(l.Modules)
	return l, nil
}

// moduleLines returns modules as `PATH VERSION SUM`.
func moduleLines(modules []build.ModuleSum) []string {
	var lines []string
	for _, m := range modules {
		lines = append(lines, strings.TrimSpace(m.Path+" "+m.Version+" "+m.Sum))
	}
	return lines
}

func (l *lock) marshal() ([]byte, error) {
	out := bytes.NewBufferString(lockComment)
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(l), encoder.Close()); err != nil {
		return nil, fmt.Errorf("encode the lock: %w", err)
	}
	return out.Bytes(), nil
}

func (l *lock) write(ctx context.Context, file string) error {
	text, err := l.marshal()
	if err == nil {
		err = writeFile(ctx, file, 0o644, bytes.NewReader(text))
	}
	if err != nil {
		return fmt.Errorf("write --lock: %w", err)
	}
	return nil
}

const lockHint = "`pmk-sched build --lock` with the same flags writes it"

func readLock(file string) (*lock, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, problem.Invalidf(lockHint, "read --locked: %w", err)
	}
	return parseLock(file, text)
}

func parseLock(file string, text []byte) (*lock, error) {
	l := &lock{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(l); err != nil && !errors.Is(err, io.EOF) {
		return nil, problem.Invalidf(lockHint, "read %s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if l.APIVersion != lockAPIVersion || l.Kind != lockKind {
		return nil, problem.Invalidf(lockHint, "read %s: expected %s %s, got %q %q",
			file, lockAPIVersion, lockKind, l.APIVersion, l.Kind)
	}
	return l, nil
}

// locking writes or compares one build's lock.
type locking struct {
	// lockFile is written, lockedFile is compared with, unless they are empty.
	lockFile, lockedFile string
	// needed is set if the build's lock is made.
	needed        bool
	locked, built *lock
}

// newLocking reads the lock to compare with. If the request leaves a release's patch, a chosen Go
// minor's version or a tag's digest open, newLocking sets it from the lock.
func newLocking(r *Request) (*locking, error) {
	l := &locking{lockFile: r.Lock, lockedFile: r.Locked, needed: r.needsLock()}
	if r.Locked == "" {
		return l, nil
	}
	var err error
	if l.locked, err = readLock(r.Locked); err != nil {
		return nil, err
	}
	if release, err := versions.Parse(l.locked.Release); err == nil && isMinorOf(r.Branch, release) {
		r.Branch = l.locked.Release
	}
	if l.locked.GoChosen && build.GoIncludes(r.Go, l.locked.Go) {
		r.Go = l.locked.Go
	}
	return l, l.pinBase(&r.Base)
}

// pinBase adds the locked digest to a base in a registry, unless the base has a digest or is a
// different base.
func (l *locking) pinBase(base *image.Base) error {
	if base.Reference == "" || strings.Contains(base.Reference, "@") || !strings.Contains(l.locked.Base, "@") {
		return nil
	}
	same, err := image.SameRepository(base.Reference, l.locked.Base)
	if same {
		base.Reference = l.locked.Base
	}
	return err
}

// minorBranch matches a branch that names no patch.
var minorBranch = regexp.MustCompile(`^(?:v|release-)?([0-9]+\.[0-9]+)$`)

// isMinorOf reports whether a branch is a release's minor: v1.24, 1.24 or release-1.24.
func isMinorOf(branch string, release versions.Release) bool {
	match := minorBranch.FindStringSubmatch(branch)
	return match != nil && match[1] == release.MinorString()
}

// check compares the binaries and their inputs, before anything is written.
func (l *locking) check(version string, built *build.Result) (err error) {
	if !l.needed {
		return nil
	}
	if l.built, err = newLock(version, built); err != nil {
		return err
	}
	return l.compare()
}

func (l *locking) checkBase(made *image.Built) error {
	if l.built == nil {
		return nil
	}
	l.built.Base = cmp.Or(made.Base, made.BaseDigest)
	return l.compare()
}

func (l *locking) compare() error {
	if l.locked == nil {
		return nil
	}
	if differences := l.locked.differences(l.built); len(differences) > 0 {
		return &LockedError{File: l.lockedFile, Differences: differences}
	}
	return nil
}

func (l *locking) write(ctx context.Context, result *Result) error {
	if l.lockFile == "" {
		return nil
	}
	if err := l.built.write(ctx, l.lockFile); err != nil {
		return err
	}
	result.Written = append(result.Written, l.lockFile)
	return nil
}
