// Package pack makes images: [Run] compiles a program, packs it on a base, writes the image to its
// destinations, and records the build that is in it. It also reads an image's contents: its
// kube-scheduler and its plugins.
package pack

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sign"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Bases is the directory of the bases that bundles have, below the build cache directory.
const Bases = "bundle/bases"

// BranchAuto is the branch of the cluster's own release.
const BranchAuto = "auto"

// Request is an image to build, and its destinations.
type Request struct {
	// Branch is a release, or BranchAuto: the cluster's release.
	Branch string
	// Nearest allows another patch in the minor if a module in Branch does not download.
	Nearest bool
	// Source is the source to compile instead of the release's modules.
	Source string
	// Go is the Go version to compile with, as in build.Options.
	Go        string
	Platforms []build.Platform
	Base      image.Base
	// Tag is the image's name, in which [image.ReleaseInTag] is replaced.
	Tag string
	image.Destinations
	// Binary is a file to write the bare program to; with several platforms the name of each file
	// ends in its platform.
	Binary string
	// Keep leaves the generated module.
	Keep bool
	// Plugins and Imports are compiled in.
	Plugins []plugins.Plugin
	Imports []string
	// Recipe is recorded with the image.
	Recipe v1alpha1.Recipe
	// Extender builds the extender instead of a scheduler, as pmk-sched Version.
	Extender bool
	Version  string
	// Lock is a file to write the inputs that decide the image's bytes to. Locked is such a file, from
	// which the build must not differ. An empty Lock is not written, an empty Locked not compared.
	Lock, Locked string
	// SignKey signs the image, its SBOM and its provenance: the file of a private key, or a command
	// after [sign.CommandPrefix]. If it is empty, the image is not signed.
	SignKey string
	// SignName is the repository for which the image is signed. If it is empty, the signature is valid
	// under every name.
	SignName string
	// SBOM and Provenance are files to which the program's bill of materials and the image's
	// provenance are written. If they are empty, no file is written.
	SBOM, Provenance string
	// Vulnerabilities is the directory of a vulnerability database to check the scheduler with, and
	// VEX a file for the vulnerabilities that it does not call. Both may be empty.
	Vulnerabilities, VEX string
	// Self is the pmk-sched executable, which is packed instead of a scheduler. If it is empty, a
	// scheduler is packed.
	Self string
	// Files are added to the image of Self.
	Files []image.File
	// Unconfirmed is set while the user has not confirmed what a cluster decides about the image.
	Unconfirmed *Unconfirmed
}

// Result is a build's result, with the image's location.
type Result struct {
	Reference string `json:"reference"`
	Digest    string `json:"digest,omitempty"`
	// Base is the base image by digest, if it is in a registry.
	Base      string   `json:"base,omitempty"`
	Platforms []string `json:"platforms"`
	Release   string   `json:"release"`
	// Asked is the requested release, if Release was built instead.
	Asked string `json:"asked,omitempty"`
	// Rules is the minor release whose rules were used, if the tables do not have Release.
	Rules string `json:"rules,omitempty"`
	Go    string `json:"go"`
	// GoNamed is the version that the release names, if Go is a different version.
	GoNamed string `json:"goNamed,omitempty"`
	Source  string `json:"source"`
	// Plugins are those compiled in in addition to the in-tree ones.
	Plugins  []plugins.Info `json:"plugins"`
	Inputs   string         `json:"inputs"`
	Cached   bool           `json:"cached"`
	Written  []string       `json:"written"`
	Binaries []Binary       `json:"binaries"`
	Module   string         `json:"module,omitempty"`
	// Vulnerabilities are the vulnerabilities in the scheduler's modules, if they were checked.
	Vulnerabilities []build.Vulnerability `json:"vulnerabilities,omitempty"`
}

// Binary is the compiled program for one platform.
type Binary struct {
	Platform string `json:"platform"`
	SHA256   string `json:"sha256"`
	Size     int64  `json:"size"`
}

// checkBusybox refuses a busybox that cannot be the base of the image.
func (r *Request) checkBusybox() error {
	if r.Base.Busybox == "" {
		return nil
	}
	var names []string
	for _, platform := range r.Platforms {
		names = append(names, platform.String())
	}
	if len(names) == 0 {
		names = []string{build.Host().String()}
	}
	return image.CheckBusybox(r.Base.Busybox, names)
}

// Run makes a request's program, packs it, and writes it and the image to their destinations.
func Run(ctx context.Context, r Request, s *session.Session) (*Result, error) {
	if err := r.Unconfirmed.Check(); err != nil {
		return nil, err
	}
	p := r.product()
	signer, err := readSigner(ctx, r.SignKey)
	if err != nil {
		return nil, err
	}
	if r.SignName, err = checkSignName(r); err != nil {
		return nil, err
	}
	lock, err := newLocking(&r)
	if err != nil {
		return nil, err
	}
	if err := r.checkBusybox(); err != nil { // before minutes of compilation
		return nil, err
	}
	built, err := p.compile(ctx, r, s)
	if err != nil {
		return nil, err
	}
	for _, warning := range built.Info.Warnings {
		s.Warn(warning)
	}
	if err := lock.check(r.Version, built); err != nil {
		return nil, err
	}
	result := newResult(r.Tag, built)
	if err := writeVEX(ctx, r, result); err != nil {
		return nil, err
	}
	if r.Binary != "" {
		written, err := writeBinaries(ctx, r.Binary, built)
		if err != nil {
			return nil, err
		}
		result.Written = append(result.Written, written...)
		if r.None() { // only the program was requested
			documents, err := newDocuments(r, built, lock.built, "")
			if err != nil {
				return result, err
			}
			return result, errors.Join(documents.write(ctx, r, result), lock.write(ctx, result))
		}
	}
	return result, packImage(ctx, r, s, built, lock, signer, result)
}

// packImage packs the program, signs the image, and writes it to its destinations.
func packImage(
	ctx context.Context, r Request, s *session.Session, built *build.Result, lock *locking, signer sign.Signer,
	result *Result,
) error {
	p := r.product()
	made, err := buildImage(ctx, s, result.Reference, p.imageOptions(r, built))
	if err != nil {
		return err
	}
	result.Digest, result.Base = made.Digest, made.Base
	if err := lock.checkBase(made); err != nil {
		return err
	}
	documents, err := newDocuments(r, built, lock.built, cmp.Or(made.Base, made.BaseDigest))
	if err != nil {
		return err
	}
	if err := documents.attach(ctx, signer, made); err != nil {
		return err
	}
	if err := deliver(ctx, s, r, made, result); err != nil {
		return err
	}
	if err := documents.write(ctx, r, result); err != nil || !p.recorded {
		return err
	}
	built.Recipe = r.Recipe
	if r.Source != "" { // without a password
		built.Recipe.From = built.Info.Source
	}
	return errors.Join(record(s.CacheDir, built, result.Reference, result.Digest), lock.write(ctx, result))
}

func newResult(tag string, built *build.Result) *Result {
	result := &Result{
		Reference: strings.ReplaceAll(tag, image.ReleaseInTag, built.Info.Release),
		Release:   built.Info.Release, Asked: built.Info.Asked, Rules: otherRules(built.Info), Go: built.Info.Go,
		Source: built.Info.Source, Plugins: append([]plugins.Info{}, built.Info.Plugins...),
		Inputs: built.Info.Inputs, Cached: built.Cached,
		Written: []string{}, Binaries: []Binary{}, Module: built.Dir,
		Vulnerabilities: built.Vulnerabilities,
	}
	if built.Info.GoNamed != built.Info.Go {
		result.GoNamed = built.Info.GoNamed
	}
	for _, b := range built.Binaries {
		result.Platforms = append(result.Platforms, b.Platform.String())
		if b.Inputs != "" { // it was compiled
			result.Binaries = append(result.Binaries,
				Binary{Platform: b.Platform.String(), SHA256: b.SHA256, Size: b.Size})
		}
	}
	return result
}

// otherRules returns the minor release whose rules the build of a release used that the tables do
// not have, or "".
func otherRules(built build.Info) string {
	release, err := versions.Parse(built.Release)
	module, _, _ := strings.Cut(built.Module, "@")
	if err != nil || release.Known() || module != "k8s.io/kubernetes" {
		return ""
	}
	return release.Nearest()
}

func buildImage(ctx context.Context, s *session.Session, tag string, o image.Options) (made *image.Built, err error) {
	o.Bases = filepath.Join(s.CacheDir, filepath.FromSlash(Bases))
	err = s.Step("pack image "+tag, func() error {
		made, err = image.Build(ctx, o)
		return err
	})
	return made, err
}

func deliver(ctx context.Context, s *session.Session, r Request, made *image.Built, result *Result) error {
	written, err := image.Deliver(ctx, made, result.Reference, r.Destinations, s.OnStep)
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

// record notes which build is in the image, under both names that it can be deployed by, so that
// deploy can check the configuration with that binary.
func record(cache string, built *build.Result, tag, digest string) error {
	for _, reference := range []string{tag, Repository(tag) + "@" + digest} {
		name, err := image.CanonicalName(reference)
		if err != nil {
			return err
		}
		if err := build.Tag(cache, built, name); err != nil {
			return err
		}
	}
	return nil
}

// Repository returns the repository of an image with a tag.
func Repository(tag string) string {
	if colon := strings.LastIndex(tag, ":"); colon > strings.LastIndex(tag, "/") {
		return tag[:colon]
	}
	return tag
}
