package pack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// rebuild builds the image again from the lock and compares the bytes. It uses no binary of the
// build cache.
func (v *verifier) rebuild(ctx context.Context) (err error) {
	if v.lock == nil {
		v.check("rebuild", errors.New("the image has no provenance of the key that fits its programs"))
		return nil
	}
	r, err := v.lock.request(v.request)
	if err != nil {
		return err
	}
	cache, remove, err := safeio.MakeTemp("rebuild")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	s := *v.session
	s.CacheDir = cache
	p := r.product()
	built, err := p.compile(ctx, r, &s)
	if err != nil {
		return fmt.Errorf("build the image again: %w", err)
	}
	made, err := buildImage(ctx, &s, v.stored.Name, p.imageOptions(r, built))
	if err != nil {
		return err
	}
	got, err := newLock(r.Version, built)
	if err != nil {
		return err
	}
	got.Base = cmp.Or(made.Base, made.BaseDigest)
	differences := v.lock.differences(got)
	same, err := hasManifest(made, v.stored.Digest)
	if err != nil {
		return err
	}
	if !same {
		differences = append(differences, fmt.Sprintf("image: expected %s, got %s", v.stored.Digest, made.Digest))
	}
	if len(differences) > 0 {
		v.check("rebuild", errors.New(strings.Join(differences, "\n")))
	} else {
		v.check("rebuild", nil)
	}
	return nil
}

// hasManifest reports whether the image, or its image for one platform, has the digest.
func hasManifest(made *image.Built, digest string) (bool, error) {
	manifests, err := made.Manifests()
	return made.Digest == digest ||
		slices.ContainsFunc(manifests, func(m image.Manifest) bool { return m.Digest == digest }), err
}

// sourceModules is the source value for a build from the release's modules.
const sourceModules = "modules"

// request returns the request that builds a lock's image.
func (l *lock) request(from ImageRequest) (Request, error) {
	r := Request{Branch: l.Release, Base: from.Base, Imports: l.Imports, Version: from.Version, Plugins: from.Plugins}
	if l.Source != sourceModules {
		r.Source = l.Source
	}
	if l.GoChosen {
		r.Go = l.Go
	}
	for _, b := range l.Binaries {
		system, arch, _ := strings.Cut(b.Platform, "/")
		r.Platforms = append(r.Platforms, build.Platform{OS: system, Arch: arch})
	}
	switch {
	case r.Base != image.Base{}:
	case strings.Contains(l.Base, "@"):
		r.Base = image.Base{Reference: l.Base}
	default:
		return r, problem.Invalidf("name it with --base or --busybox",
			"--rebuild: the base of the image, %s, was not in a registry", cmp.Or(l.Base, "which is unknown"))
	}
	if len(from.Plugins) > 0 {
		return r, nil
	}
	for _, p := range l.Plugins {
		source, err := plugins.Parse(p.Origin)
		if err != nil || source.Dir != "" {
			return r, problem.Invalidf("name all plugins with --with",
				"--rebuild: plugin %s was built from a directory (%s), which the image does not have", p.Name, p.Origin)
		}
		r.Plugins = append(r.Plugins, source)
	}
	return r, nil
}
