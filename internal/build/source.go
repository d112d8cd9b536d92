package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/modfile"

	"github.com/pmk-sched/pmk-sched/versions"
)

// kubernetes is the module of all of Kubernetes' programs.
const kubernetes = "k8s.io/kubernetes"

// pin is a replace directive whose target is a module, not a folder.
type pin struct {
	Path       string `json:"path"`
	Version    string `json:"version,omitempty"`
	NewPath    string `json:"newPath"`
	NewVersion string `json:"newVersion"`
}

// source is what a module says of itself and its build depends on. For a module
// at a version it never changes, so it is read once and kept.
type source struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	// Go is the version of Go that the source names, or empty.
	Go          string   `json:"go,omitempty"`
	GoDirective string   `json:"goDirective"`
	Godebug     []string `json:"godebug,omitempty"`
	Pins        []pin    `json:"pins,omitempty"`
	// Required are the modules that the source's go.mod requires, but for
	// those of its own repository.
	Required []ModuleVersion `json:"required,omitempty"`
	// Staging are the modules that live in the source's own repository and
	// are required at v0.0.0; Unused those replaced but never required.
	Staging []string `json:"staging,omitempty"`
	Unused  []string `json:"unused,omitempty"`
	// GoSum is the source's own go.sum, with the module's own lines.
	GoSum string `json:"goSum,omitempty"`
	// Date is when the version was made (RFC 3339, UTC).
	Date string `json:"date,omitempty"`
	// Format is sourceFormat: what was read by an earlier form is read again.
	Format int `json:"format,omitempty"`
}

// sourceFormat is raised when more is read of a module.
const sourceFormat = 1

// release returns what a release's module says of itself. The module is
// downloaded unless it has been read before.
func (j *job) release(ctx context.Context, release versions.Release) (source, error) {
	return j.source(ctx, kubernetes, release.String(), func(failed *Error) error {
		return j.unknownBranch(ctx, release, failed)
	})
}

// source reads a module at a version. explain turns the failure to get it into
// the error to return.
func (j *job) source(ctx context.Context, path, version string, explain func(*Error) error) (source, error) {
	var s source
	place := j.cache.fact("modules", path+"@"+version)
	if found, err := readJSON(place, &s); err == nil && found && s.Path == path && s.Version == version && s.Format == sourceFormat {
		return s, nil
	}
	s = source{}
	step := "read " + path + " " + version
	err := j.step(step, func() error {
		answers, err := j.download(ctx, step, path+"@"+version)
		if err != nil {
			return err
		}
		if failed := answers[0].Error; failed != "" {
			return explain(diagnose(step, redact(failed), errors.New("go mod download failed")))
		}
		if s, err = readSource(answers[0]); err != nil {
			return storage(ctx, step, err)
		}
		if err := writeJSON(place, s); err != nil {
			return storage(ctx, step, err)
		}
		return nil
	})
	return s, err
}

func readSource(d download) (source, error) {
	s := source{Path: d.Path, Version: d.Version, Format: sourceFormat}
	if err := s.readFolder(d.Dir); err != nil {
		return source{}, err
	}
	var made struct{ Time time.Time }
	if _, err := readJSON(d.Info, &made); err != nil {
		return source{}, err
	}
	if !made.Time.IsZero() {
		s.Date = made.Time.UTC().Format(time.RFC3339)
	}
	s.GoSum += sumLines(d)
	return s, nil
}

// readFolder reads go.mod, go.sum and the version of Go from a module's folder.
func (s *source) readFolder(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	file, err := modfile.Parse("go.mod of "+s.Path+" "+s.Version, data, nil)
	if err != nil {
		return err
	}
	s.readModfile(file)
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.GoSum = string(sums)
	s.Go, err = namedGo(dir)
	if err == nil && s.Go == "" && file.Toolchain != nil {
		s.Go = strings.TrimPrefix(file.Toolchain.Name, "go")
	}
	return err
}

func (s *source) readModfile(file *modfile.File) {
	if file.Go != nil {
		s.GoDirective = file.Go.Version
	}
	for _, setting := range file.Godebug {
		s.Godebug = append(s.Godebug, setting.Key+"="+setting.Value)
	}
	required := map[string]bool{}
	for _, r := range file.Require {
		required[r.Mod.Path] = true
	}
	replaced := map[string]bool{}
	for _, r := range file.Replace {
		replaced[r.Old.Path] = replaced[r.Old.Path] || r.New.Version == ""
	}
	for _, r := range file.Require {
		if !replaced[r.Mod.Path] {
			s.Required = append(s.Required, ModuleVersion{r.Mod.Path, r.Mod.Version})
		}
	}
	for _, r := range file.Replace {
		switch {
		case r.New.Version != "":
			s.Pins = append(s.Pins, pin{r.Old.Path, r.Old.Version, r.New.Path, r.New.Version})
		case required[r.Old.Path]:
			s.Staging = append(s.Staging, r.Old.Path)
		default:
			s.Unused = append(s.Unused, r.Old.Path)
		}
	}
}

// sumLines returns the lines of go.sum about a downloaded module.
func sumLines(d download) string {
	if d.Sum == "" || d.GoModSum == "" {
		return ""
	}
	return fmt.Sprintf("%s %s %s\n%s %s/go.mod %s\n", d.Path, d.Version, d.Sum, d.Path, d.Version, d.GoModSum)
}

var (
	goVersion  = regexp.MustCompile(`^1\.[0-9]+(\.[0-9]+)?((rc|beta)[0-9]+)?$`)
	goOfBuilds = regexp.MustCompile(`go(1\.[0-9]+(?:\.[0-9]+)?)`)
	// Until 1.21 the tag is that of Go itself: "v1.16.6-1".
	goAsBuilds = regexp.MustCompile(`^v(1\.[0-9]+\.[0-9]+)-`)
)

// namedGo reads which Go a tree of Kubernetes is built with: .go-version (from
// 1.25, and late patches before), build/dependencies.yaml, or the tag of the
// build image. Empty means that none of them says.
func namedGo(dir string) (string, error) {
	read := func(name string) ([]byte, error) {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return data, err
	}
	data, err := read(".go-version")
	if version := strings.TrimSpace(string(data)); err != nil || goVersion.MatchString(version) {
		return version, err
	}
	if data, err = read("build/dependencies.yaml"); err != nil {
		return "", err
	}
	var file struct {
		Dependencies []struct{ Name, Version string }
	}
	// A file of another shape says nothing; the next one may.
	if err := yaml.Unmarshal(data, &file); err == nil {
		for _, d := range file.Dependencies {
			if d.Name == "golang: upstream version" && goVersion.MatchString(d.Version) {
				return d.Version, nil
			}
		}
	}
	if data, err = read("build/build-image/cross/VERSION"); err != nil {
		return "", err
	}
	for _, form := range []*regexp.Regexp{goOfBuilds, goAsBuilds} {
		if match := form.FindSubmatch(bytes.TrimSpace(data)); match != nil {
			return string(match[1]), nil
		}
	}
	return "", nil
}
