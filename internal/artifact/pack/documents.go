package pack

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/documents"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sign"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// readSigner reads --sign-key: a file, or a command after [sign.CommandPrefix]. It returns nil for
// an empty key.
func readSigner(ctx context.Context, key string) (sign.Signer, error) {
	if key == "" {
		return nil, nil
	}
	if command, ok := strings.CutPrefix(key, sign.CommandPrefix); ok {
		signer, err := sign.NewCommand(ctx, command)
		if err != nil {
			return nil, fmt.Errorf("--sign-key: %w", err)
		}
		return signer, nil
	}
	text, err := problem.ReadFile("--sign-key", key)
	if err != nil {
		return nil, err
	}
	signer, err := sign.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("--sign-key %s: %w", key, err)
	}
	return signer, nil
}

// checkSignName returns the canonical form of --sign-name.
func checkSignName(r Request) (string, error) {
	switch {
	case r.SignName == "":
		return "", nil
	case r.SignKey == "":
		return "", problem.Invalidf("", "--sign-name requires --sign-key")
	}
	name, err := image.CanonicalName(r.SignName)
	if err != nil {
		return "", fmt.Errorf("--sign-name: %w", err)
	}
	return Repository(name), nil
}

// imageDocuments describe a build's image.
type imageDocuments struct {
	// sboms has the program's bill of materials for each platform.
	sboms map[string][]byte
	// provenance is nil unless the build has a lock.
	provenance []byte
	// claims are in the signature.
	claims sign.Claims
}

// needsLock reports whether the image's provenance is made, which only a scheduler has.
func (r Request) needsLock() bool {
	return r.Lock != "" || r.Locked != "" || (r.SignKey != "" || r.Provenance != "") && r.product().recorded
}

// newDocuments describes a build, if the request needs it. base is NAME@sha256:…, or a digest, or
// empty if only a program was built. l may be nil.
func newDocuments(r Request, built *build.Result, l *lock, base string) (*imageDocuments, error) {
	d := &imageDocuments{sboms: map[string][]byte{}, claims: sign.Claims{Name: r.SignName}}
	if r.product().recorded {
		d.claims.Release = built.Info.Release
	}
	if r.SignKey == "" && r.SBOM == "" && r.Provenance == "" {
		return d, nil
	}
	for _, b := range built.Binaries {
		program, _, err := readProgram(b.Path)
		if err != nil {
			return nil, err
		}
		platform := b.Platform.String()
		d.sboms[platform], err = documents.NewSBOM(program, documents.SBOMOptions{
			Name: path.Base(r.product().path), Version: built.Info.Release, Platform: platform, Base: base, Tool: r.Version,
		})
		if err != nil {
			return nil, err
		}
	}
	if l == nil {
		return d, nil
	}
	inputs, err := l.inputs()
	if err == nil {
		d.provenance, err = documents.NewProvenance(inputs)
	}
	return d, err
}

// readProgram reads what the linker recorded in a program, and its digest.
func readProgram(file string) (p documents.Program, modules []build.ModuleSum, err error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return p, nil, fmt.Errorf("read the modules of the program: %w", err)
	}
	p.Go, modules = info.GoVersion, build.LinkedModules(info)
	for _, m := range modules {
		p.Modules = append(p.Modules, documents.Module{Path: m.Path, Version: m.Version, Sum: m.Sum})
	}
	_, p.SHA256, err = build.HashFile(file)
	return p, modules, err
}

// inputs returns the lock as a provenance's inputs.
func (l *lock) inputs() (documents.ProvenanceBuild, error) {
	text, err := l.marshal()
	b := documents.ProvenanceBuild{
		Release: l.Release, Source: l.Source, Commit: l.Commit, Go: l.Go, GoChosen: l.GoChosen, Base: l.Base,
		Imports: l.Imports, Version: l.PMKSched, Lock: text,
	}
	for _, p := range l.Plugins {
		b.Plugins = append(b.Plugins, documents.Plugin{Name: p.Name, Origin: p.Origin, SHA256: p.SHA256})
	}
	for _, binary := range l.Binaries {
		b.Platforms = append(b.Platforms, binary.Platform)
	}
	for _, line := range l.Modules {
		fields := append(strings.Fields(line), "", "", "")
		b.Modules = append(b.Modules,
			documents.Module{Path: fields[0], Version: fields[1], Sum: fields[2]})
	}
	return b, err
}

// attach signs the image and its documents, and attaches them to it. A signature, and the
// provenance, is attached to the index and to each platform's manifest, since a runtime may name
// either; the bill of materials to the manifest.
func (d *imageDocuments) attach(ctx context.Context, signer sign.Signer, made *image.Built) error {
	if signer == nil {
		return nil
	}
	manifests, err := made.Manifests()
	if err != nil {
		return err
	}
	digests := []string{made.Digest}
	for _, m := range manifests {
		if m.Digest != made.Digest {
			digests = append(digests, m.Digest)
		}
		if err := attest(ctx, signer, made, m.Digest, sign.SBOM, d.sboms[m.Platform]); err != nil {
			return err
		}
	}
	claims, err := json.Marshal(d.claims)
	if err != nil {
		return err
	}
	for _, digest := range digests {
		if err := attest(ctx, signer, made, digest, sign.Signature, claims); err != nil {
			return err
		}
		if d.provenance == nil {
			continue
		}
		if err := attest(ctx, signer, made, digest, sign.Provenance, d.provenance); err != nil {
			return err
		}
	}
	return nil
}

// attest attaches a signed statement to the manifest with the digest. The annotations are those of
// cosign (sigstore/cosign, pkg/cosign/bundle).
func attest(
	ctx context.Context, signer sign.Signer, made *image.Built, digest, predicateType string, predicate json.RawMessage,
) error {
	statement := sign.NewStatement(predicateType, strings.TrimPrefix(digest, "sha256:"), predicate)
	bundle, err := sign.Sign(ctx, signer, statement)
	if err != nil {
		return fmt.Errorf("sign image %s: %w", digest, err)
	}
	return made.Attach(digest, sign.BundleType, bundle, map[string]string{
		"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": predicateType,
	})
}

// write writes the files that the request names. With several platforms the name of each SBOM ends
// in its platform.
func (d *imageDocuments) write(ctx context.Context, r Request, result *Result) error {
	for _, platform := range slices.Sorted(maps.Keys(d.sboms)) {
		if r.SBOM == "" {
			break
		}
		file := r.SBOM
		if len(d.sboms) > 1 {
			file += "-" + strings.ReplaceAll(platform, "/", "-")
		}
		if err := writeFile(ctx, file, 0o644, bytes.NewReader(d.sboms[platform])); err != nil {
			return fmt.Errorf("write --sbom: %w", err)
		}
		result.Written = append(result.Written, file)
	}
	if r.Provenance == "" {
		return nil
	}
	if err := writeFile(ctx, r.Provenance, 0o644, bytes.NewReader(d.provenance)); err != nil {
		return fmt.Errorf("write --provenance: %w", err)
	}
	result.Written = append(result.Written, r.Provenance)
	return nil
}
