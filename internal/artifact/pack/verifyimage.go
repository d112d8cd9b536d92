package pack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/documents"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sign"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// ImageRequest is an image to verify.
type ImageRequest struct {
	// Image is a name in a registry, or the directory of an OCI layout.
	Image string
	// Key is the file of the public key.
	Key string
	// Rebuild builds the image again from the lock in its provenance. Plugins replace the plugins of
	// the lock that were in a directory; Base replaces its base, which the lock names by digest only
	// if it was not in a registry.
	Rebuild bool
	Plugins []plugins.Plugin
	Base    image.Base
	// Version of pmk-sched.
	Version string
}

// Outcomes of a check.
const (
	CheckPassed = "passed"
	CheckFailed = "failed"
	// CheckAbsent is the outcome if the image has no such document.
	CheckAbsent = "absent"
)

// ImageCheck is one check of an image.
type ImageCheck struct {
	Name     string `json:"name"`
	Platform string `json:"platform,omitempty"`
	Outcome  string `json:"outcome"`
	// Details explain the outcome, one line each.
	Details []string `json:"details,omitempty"`
}

// ImageReport is the result of verifying an image.
type ImageReport struct {
	Image  string `json:"image"`
	Digest string `json:"digest"`
	// Key identifies the public key: the base64-encoded SHA-256 digest of its DER encoding.
	Key    string       `json:"key"`
	Checks []ImageCheck `json:"checks"`
}

// Failed returns the number of failed checks.
func (r *ImageReport) Failed() int {
	failed := 0
	for _, c := range r.Checks {
		if c.Outcome == CheckFailed {
			failed++
		}
	}
	return failed
}

// verifier verifies one image.
type verifier struct {
	request ImageRequest
	session *session.Session
	key     *sign.PublicKey
	place   image.Base
	stored  *image.Stored
	report  *ImageReport
	// programs in the image by platform, and their modules as lock lines.
	programs map[string]documents.Program
	modules  []string
	// lock of the signed provenance, or nil.
	lock *lock
	// isIndex is set for a release index, which has no programs.
	isIndex bool
}

// VerifyImage verifies an image's content, its signature, and the documents that the key signed:
// the bill of materials and the provenance against the program, and with Rebuild the image's bytes
// against a new build. For a release index, it verifies the content and the signature. The error is
// about the request or the registry; a check that fails is in the report.
func VerifyImage(ctx context.Context, s *session.Session, r ImageRequest) (report *ImageReport, err error) {
	text, err := problem.ReadFile("--key", r.Key)
	if err != nil {
		return nil, err
	}
	v := &verifier{request: r, session: s, programs: map[string]documents.Program{}}
	if v.key, err = sign.ParsePublicKey(text); err != nil {
		return nil, fmt.Errorf("--key %s: %w", r.Key, err)
	}
	if v.place, err = image.ParseBase(r.Image); err != nil {
		return nil, err
	}
	v.stored, err = image.Open(ctx, image.Source{
		Reference: v.place.Reference, Archive: v.place.Archive, Layout: v.place.Layout, Keychain: authn.DefaultKeychain})
	if err != nil {
		return nil, err
	}
	v.report = &ImageReport{Image: v.stored.Name, Digest: v.stored.Digest, Key: v.key.Hint(), Checks: []ImageCheck{}}
	dir, remove, err := safeio.MakeTemp("verify")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return v.report, v.run(ctx, dir)
}

// readTime bounds the time in which an image and its documents are read: a registry may answer for
// ever. A rebuild takes its own time.
const readTime = 30 * time.Minute

func (v *verifier) run(ctx context.Context, dir string) error {
	if err := v.read(ctx, dir); err != nil || v.isIndex || !v.request.Rebuild {
		return err
	}
	return v.rebuild(ctx)
}

// read reads the image and its documents, and compares them.
func (v *verifier) read(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	err := v.session.Step("read image "+v.stored.Name, func() error { return v.readImage(ctx, dir) })
	if err != nil {
		return err
	}
	top, err := readAttestations(ctx, v.stored, v.stored.Digest, v.key, v.place.Reference)
	if err != nil {
		return err
	}
	v.check("signature", top.requireSignature())
	if v.isIndex {
		return nil
	}
	for _, m := range v.stored.Manifests {
		of, err := readAttestations(ctx, v.stored, m.Digest, v.key, v.place.Reference)
		if err != nil {
			return err
		}
		v.any("sbom", m.Platform, of.predicates(sign.SBOM), func(document json.RawMessage) ([]string, error) {
			return documents.CompareSBOM(document, v.programs[m.Platform])
		})
	}
	v.any("provenance", "", top.predicates(sign.Provenance), v.compareProvenance)
	return nil
}

// readImage checks the digests of the image and reads its programs.
func (v *verifier) readImage(ctx context.Context, dir string) error {
	err := v.stored.Verify(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !v.check("digest", err) {
		return nil
	}
	text, err := v.stored.Document(ReleasesType, maxReleases)
	if err != nil {
		return err
	}
	if text != nil {
		v.isIndex = true
		if v.request.Rebuild {
			return problem.Invalidf("leave out --rebuild, or name an image of the index",
				"%s is a release index, which has no program", v.stored.Name)
		}
		return nil
	}
	for _, m := range v.stored.Manifests {
		file := filepath.Join(dir, "program")
		if _, err := image.ExtractProgram(ctx, v.stored.Source(m), nil, m.Platform, file); err != nil {
			return err
		}
		program, modules, err := readProgram(file)
		if err != nil {
			return fmt.Errorf("image %s for %s: %w", v.stored.Name, m.Platform, err)
		}
		v.programs[m.Platform] = program
		v.modules = append(v.modules, moduleLines(modules)...)
	}
	return nil
}

// check adds a whole-image check with the outcome of err, and reports whether it passed.
func (v *verifier) check(name string, err error) bool {
	c := ImageCheck{Name: name, Outcome: CheckPassed}
	if err != nil {
		c.Outcome, c.Details = CheckFailed, strings.Split(err.Error(), "\n")
	}
	v.report.Checks = append(v.report.Checks, c)
	return err == nil
}

// any adds a check that passes if one of the documents has no differences: a key may have signed
// other tools' documents too.
func (v *verifier) any(
	name, platform string, documents []json.RawMessage, compare func(json.RawMessage) ([]string, error),
) {
	c := ImageCheck{Name: name, Platform: platform, Outcome: CheckAbsent}
	for _, document := range documents {
		differences, err := compare(document)
		if err != nil {
			differences = []string{err.Error()}
		}
		if len(differences) == 0 {
			c.Outcome, c.Details = CheckPassed, nil
			break
		}
		c.Outcome, c.Details = CheckFailed, append(c.Details, differences...)
	}
	v.report.Checks = append(v.report.Checks, c)
}

// compareProvenance compares a provenance with its lock, and the lock with the image's programs.
func (v *verifier) compareProvenance(document json.RawMessage) ([]string, error) {
	text, err := documents.ReadLock(document)
	if err != nil {
		return nil, err
	}
	l, err := parseLock(documents.LockName+" of the provenance", text)
	if err != nil {
		return nil, err
	}
	inputs, err := l.inputs()
	if err != nil {
		return nil, err
	}
	differences, err := documents.CompareProvenance(document, inputs)
	if err != nil {
		return nil, err
	}
	differences = append(differences, l.compareImage(v.programs, v.modules)...)
	if len(differences) == 0 {
		v.lock = l
	}
	return differences, nil
}

// compareImage compares the binaries and modules in a lock with an image's programs. The image may
// be for one of several platforms.
func (l *lock) compareImage(programs map[string]documents.Program, modules []string) []string {
	var binaries []lockedBinary
	for platform, p := range programs {
		// An image's platform may have a variant, a build's platform has none: linux/arm64/v8.
		parts := strings.SplitN(platform, "/", 3)
		binaries = append(binaries, lockedBinary{Platform: strings.Join(parts[:min(2, len(parts))], "/"), SHA256: p.SHA256})
	}
	if len(binaries) < len(l.Binaries) {
		return compareBinaries(slices.DeleteFunc(slices.Clone(l.Binaries), func(locked lockedBinary) bool {
			return !slices.ContainsFunc(binaries, func(b lockedBinary) bool { return b.Platform == locked.Platform })
		}), binaries)
	}
	slices.Sort(modules)
	return append(compareBinaries(l.Binaries, binaries), compareModules(l.Modules, slices.Compact(modules))...)
}
