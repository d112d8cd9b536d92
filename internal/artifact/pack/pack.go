// Package pack makes the image of a scheduler or of the extender: it compiles and packs the
// program, delivers the image, and records the build that is in it. It also reads the contents of
// an image: its kube-scheduler and its plugins.
package pack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/versions"
)

// projectURL is where the sources of pmk-sched are.
const projectURL = "https://github.com/pmk-sched/pmk-sched"

// BranchAuto is the branch of the cluster's own release.
const BranchAuto = "auto"

// Request is an image to build, and its destinations.
type Request struct {
	// Branch is a release, or BranchAuto: the cluster's release.
	Branch string
	// Nearest allows another patch of the minor if a module of Branch does not download.
	Nearest bool
	// Source is the source to compile instead of the release's modules.
	Source    string
	Platforms []build.Platform
	Base      image.Base
	// Tag is the name of the image, in which [image.ReleaseInTag] is replaced.
	Tag string
	image.Destinations
	// Binary is a file to write the bare program to; with several platforms the name of each file ends in its platform.
	Binary string
	// Keep leaves the generated module.
	Keep bool
	// Plugins and Imports are compiled in.
	Plugins []plugins.Plugin
	Imports []string
	// Recipe is recorded with the image.
	Recipe v1alpha1.Recipe
	// Extender builds the extender instead of a scheduler, as that version of pmk-sched.
	Extender bool
	Version  string
	// Lock is a file to write the inputs that decide the bytes of the image to. Locked is such a
	// file, from which the build must not differ. An empty Lock is not written, an empty Locked not
	// compared.
	Lock, Locked string
	// Self is the executable of pmk-sched, which is packed instead of a scheduler. If it is empty,
	// a scheduler is packed.
	Self string
	// Files are added to the image of Self.
	Files []image.File
}

// Result is the result of a build, and the location of the image.
type Result struct {
	Reference string `json:"reference"`
	Digest    string `json:"digest,omitempty"`
	// Base is the base image by digest, if it is in a registry.
	Base      string   `json:"base,omitempty"`
	Platforms []string `json:"platforms"`
	Release   string   `json:"release"`
	// Asked is the requested release, if Release was built instead.
	Asked  string `json:"asked,omitempty"`
	Go     string `json:"go"`
	Source string `json:"source"`
	// Plugins are those compiled in in addition to the in-tree ones.
	Plugins  []plugins.Info `json:"plugins"`
	Inputs   string         `json:"inputs"`
	Cached   bool           `json:"cached"`
	Written  []string       `json:"written"`
	Binaries []Binary       `json:"binaries"`
	Module   string         `json:"module,omitempty"`
}

// Binary is the compiled program for one platform.
type Binary struct {
	Platform string `json:"platform"`
	SHA256   string `json:"sha256"`
	Size     int64  `json:"size"`
}

// Run compiles, packs and delivers.
func Run(ctx context.Context, r Request, s *session.Session) (*Result, error) {
	if r.Self != "" {
		return r.packSelf(ctx, s)
	}
	locking, err := newLocking(&r)
	if err != nil {
		return nil, err
	}
	built, err := r.compile(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, warning := range built.Info.Warnings {
		s.Warn(warning)
	}
	r.Tag = strings.ReplaceAll(r.Tag, image.ReleaseInTag, built.Info.Release)
	result := r.describe(built)
	if err := locking.check(r.Version, built); err != nil {
		return nil, err
	}
	if r.Binary != "" {
		if result.Written, err = r.writeBinaries(built); err != nil {
			return nil, err
		}
		if r.None() {
			return result, locking.write(result) // only the program was requested
		}
	}
	if err := r.packImage(ctx, s, built, result, locking); err != nil || r.Extender {
		return result, err
	}
	built.Recipe = r.Recipe
	if r.Source != "" { // without a password
		built.Recipe.From = built.Info.Source
	}
	return result, errors.Join(record(s.CacheDir, built, r.Tag, result.Digest), locking.write(result))
}

// compile compiles the program, or finds it in the build cache.
func (r Request) compile(ctx context.Context, s *session.Session) (*build.Result, error) {
	if r.Extender {
		return build.Extender(ctx, build.ExtenderOptions{
			Version: r.Version, Plugins: r.Plugins, Platforms: r.Platforms,
			Sources: pmksched.Sources, GoMod: pmksched.GoMod, GoSum: pmksched.GoSum,
			CacheDir: s.CacheDir, Keep: r.Keep, Env: s.Environ, Log: s.Log, OnStep: s.OnStep,
		})
	}
	release, err := r.release(ctx, s)
	if err != nil {
		return nil, err
	}
	return build.Run(ctx, build.Options{
		Release: release, Nearest: r.Nearest, Source: r.Source, Platforms: r.Platforms,
		Plugins: r.Plugins, Imports: r.Imports, Sources: pmksched.Sources,
		CacheDir: s.CacheDir, Keep: r.Keep, Env: s.Environ, Log: s.Log, OnStep: s.OnStep,
	})
}

// release is the release of the branch, or the cluster's.
func (r Request) release(ctx context.Context, s *session.Session) (versions.Release, error) {
	if r.Branch != BranchAuto {
		return ResolveBranch(ctx, s, r.Branch)
	}
	cfg, err := s.Connect()
	var release versions.Release
	if err == nil {
		release, err = inspect.ServerRelease(cfg)
	}
	if err != nil {
		return release, fmt.Errorf("ask the cluster for its release (--branch names one without asking): %w", err)
	}
	return release, nil
}

// ResolveBranch returns the release of a branch such as v1.24.3, v1.24 or release-1.24, and reports the choice.
func ResolveBranch(ctx context.Context, s *session.Session, branch string) (versions.Release, error) {
	release, note, err := build.ResolveBranch(ctx, branch, build.SourceOptions{
		CacheDir: s.CacheDir, Env: s.Environ, Log: s.Log, OnStep: s.OnStep,
	})
	if note != "" {
		s.Note(note)
	}
	return release, err
}

// ChooseBranch returns the tag of the release of a branch, unless the release is to be found on the cluster.
func ChooseBranch(ctx context.Context, s *session.Session, branch string) (string, error) {
	if branch == "" || branch == BranchAuto {
		return branch, nil
	}
	release, err := ResolveBranch(ctx, s, branch)
	if err != nil {
		return branch, err
	}
	return release.String(), nil
}

func (r Request) describe(built *build.Result) *Result {
	result := &Result{
		Reference: r.Tag, Release: built.Info.Release, Asked: built.Info.Asked, Go: built.Info.Go, Source: built.Info.Source,
		Plugins: append([]plugins.Info{}, built.Info.Plugins...), Inputs: built.Info.Inputs, Cached: built.Cached,
		Written: []string{}, Module: built.Dir,
	}
	for _, p := range r.Platforms {
		result.Platforms = append(result.Platforms, p.String())
		if b, ok := built.Binary(r.program(), p); ok {
			result.Binaries = append(result.Binaries, Binary{Platform: p.String(), SHA256: b.SHA256, Size: b.Size})
		}
	}
	return result
}

// packImage makes the image and delivers it.
func (r Request) packImage(ctx context.Context, s *session.Session, built *build.Result, result *Result, locking *locking) error {
	path := image.SchedulerPath
	if r.Extender {
		path = image.ExtenderPath
	}
	files := map[string][]image.File{}
	for _, p := range r.Platforms {
		binary, ok := built.Binary(r.program(), p)
		if !ok {
			return fmt.Errorf("pack image %s: there is no %s for %s", r.Tag, r.program(), p)
		}
		files[p.String()] = []image.File{{Path: path, Source: binary.Path}}
	}
	labels := image.Description{
		Title: r.program(), Version: result.Release, URL: projectURL, Release: result.Release,
		Plugins: strings.Join(PluginNames(result.Plugins), ","), Origin: cmp.Or(built.Info.Module, result.Source),
	}.Labels()
	return r.deliver(ctx, s, locking, result, image.Options{
		Base: r.Base, Platforms: result.Platforms, Files: files, Entrypoint: []string{path},
		Labels: labels, Annotations: labels, Keychain: authn.DefaultKeychain,
	})
}

// deliver makes an image, compares it with the lock file, if there is one, and writes it to its destinations.
func (r Request) deliver(ctx context.Context, s *session.Session, locking *locking, result *Result, o image.Options) error {
	done := s.OnStep("pack image " + r.Tag)
	made, err := image.Build(ctx, o)
	done(err)
	if err != nil {
		return err
	}
	result.Digest, result.Base = made.Digest, made.Base
	if err := locking.checkBase(made); err != nil {
		return err
	}
	written, err := image.Deliver(ctx, made, r.Tag, r.Destinations, s.OnStep)
	result.Written = append(result.Written, written...)
	if err == nil && len(result.Written) == 0 {
		warning := "the image was not written anywhere: add --push, --load containerd, or --archive FILE.tar"
		if r.Self == "" {
			warning += "; the compiled binary is kept in the cache"
		}
		s.Warn(warning)
	}
	return err
}

// program is the name of the compiled program.
func (r Request) program() string {
	if r.Extender {
		return build.PmkExtender
	}
	return build.KubeScheduler
}

// record notes which build is in the image, under both names that it can be deployed by, so that deploy can check the
// configuration with that binary.
func record(cache string, built *build.Result, tag, digest string) error {
	repository := tag
	if colon := strings.LastIndex(tag, ":"); colon > strings.LastIndex(tag, "/") {
		repository = tag[:colon]
	}
	for _, reference := range []string{tag, repository + "@" + digest} {
		known, err := image.CanonicalName(reference)
		if err != nil {
			return err
		}
		if err := build.Tag(cache, built, known); err != nil {
			return err
		}
	}
	return nil
}
