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
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/modfile"

	"github.com/pmk-sched/pmk-sched/versions"
)

// kubernetes is the module with the Kubernetes programs.
const kubernetes = "k8s.io/kubernetes"

// pin is a replace directive with a module, not a directory.
type pin struct {
	Path       string `json:"path"`
	Version    string `json:"version,omitempty"`
	NewPath    string `json:"newPath"`
	NewVersion string `json:"newVersion"`
}

// source describes a module with everything that its build depends on. For a module at a version it
// never changes, so it is read once and cached.
type source struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	// Go is the Go version that the source names; it may be empty.
	Go          string   `json:"go,omitempty"`
	GoDirective string   `json:"goDirective"`
	Godebug     []string `json:"godebug,omitempty"`
	Pins        []pin    `json:"pins,omitempty"`
	// Required are the modules that the source's go.mod requires, without the modules of the
	// source's repository.
	Required []ModuleVersion `json:"required,omitempty"`
	// Staging are the modules of the source's repository, which are required at v0.0.0. Unused are
	// the modules of it that are replaced but not required.
	Staging []string `json:"staging,omitempty"`
	Unused  []string `json:"unused,omitempty"`
	// GoSum is the source's go.sum, with the lines of the module itself.
	GoSum string `json:"goSum,omitempty"`
	// Updated are the modules of Pins that have other versions than the source, because they do not
	// work with the Go version that was chosen.
	Updated []ModuleVersion `json:"-"`
	// Date is when the version was published (RFC 3339, UTC).
	Date string `json:"date,omitempty"`
	// Format is sourceFormat; a source with another format is read again.
	Format int `json:"format,omitempty"`
}

// sourceFormat is raised when this type gets more fields.
const sourceFormat = 1

// releases reads the modules of Kubernetes releases, and downloads them unless they were read
// before.
type releases struct {
	*goTool
	// noHints leaves out the search for the patch that an error suggests.
	noHints bool
}

func (r *releases) read(ctx context.Context, release versions.Release) (source, error) {
	return r.source(ctx, kubernetes, release.String(), func(failed *Error) error {
		return r.explainUnknown(ctx, release, failed)
	})
}

// source describes a module at a version. explain returns the error for a failure to download it.
func (t *goTool) source(ctx context.Context, path, version string, explain func(*Error) error) (source, error) {
	s, found := t.recallSource(path, version)
	if found {
		return s, nil
	}
	file := t.sourcePath(path, version)
	step := "read " + path + " " + version
	err := t.step(step, func() error {
		answers, err := t.download(ctx, step, path+"@"+version)
		if err != nil {
			return err
		}
		if failed := answers[0].Error; failed != "" {
			return explain(diagnose(step, redact(failed), errors.New("go mod download failed")))
		}
		if s, err = readSource(answers[0]); err != nil {
			return storage(ctx, step, err)
		}
		if err := writeJSON(file, s); err != nil {
			return storage(ctx, step, err)
		}
		return nil
	})
	return s, err
}

func (t *goTool) sourcePath(path, version string) string {
	return t.cache.fact("modules", path+"@"+version)
}

// recallSource returns the description of a module that was read before.
func (t *goTool) recallSource(path, version string) (source, bool) {
	var s source
	found, err := readJSON(t.sourcePath(path, version), &s)
	if err != nil || !found || s.Path != path || s.Version != version || s.Format != sourceFormat {
		return source{}, false
	}
	return s, true
}

func readSource(d download) (source, error) {
	s := source{Path: d.Path, Version: d.Version, Format: sourceFormat}
	if err := s.readDir(d.Dir); err != nil {
		return source{}, err
	}
	var published struct{ Time time.Time }
	if _, err := readJSON(d.Info, &published); err != nil {
		return source{}, err
	}
	if !published.Time.IsZero() {
		s.Date = published.Time.UTC().Format(time.RFC3339)
	}
	s.GoSum += sumLines(d)
	return s, nil
}

// readDir reads go.mod, go.sum and the Go version from a module's directory.
func (s *source) readDir(dir string) error {
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
	goVersion = regexp.MustCompile(`^1\.[0-9]+(\.[0-9]+)?((rc|beta)[0-9]+)?$`)
	goInTag   = regexp.MustCompile(`go(1\.[0-9]+(?:\.[0-9]+)?)`)
	// Until 1.21 the build image's tag is the Go version: "v1.16.6-1".
	goAsTag = regexp.MustCompile(`^v(1\.[0-9]+\.[0-9]+)-`)
)

// namedGo returns the Go version that builds a Kubernetes tree: from .go-version (since 1.25, and
// in late patches before), build/dependencies.yaml, or the build image's tag. It is empty if none
// of them has it.
func namedGo(dir string) (string, error) {
	read := func(name string) ([]byte, error) {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		// Other modules have other files: build is a script in etcd 3.4.
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
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
	// A file of another form is skipped.
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
	for _, form := range []*regexp.Regexp{goInTag, goAsTag} {
		if match := form.FindSubmatch(bytes.TrimSpace(data)); match != nil {
			return string(match[1]), nil
		}
	}
	return "", nil
}
