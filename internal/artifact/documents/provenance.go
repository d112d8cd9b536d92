package documents

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

const (
	// BuildType is the URI for the parameters' meaning, which docs/signing.md describes.
	BuildType = "https://github.com/pmk-sched/pmk-sched/blob/main/docs/signing.md#build-type-v1"
	// Builder is the builder's URI: any machine that runs `pmk-sched build`, for which SLSA requires
	// nothing beyond level 1.
	Builder = "https://github.com/pmk-sched/pmk-sched/blob/main/docs/signing.md#builder"
	// LockName is the name of the lock in the byproducts.
	LockName = "pmk-sched.lock"
)

// ProvenanceBuild has a build's inputs: its lock's content.
type ProvenanceBuild struct {
	// Release is the Kubernetes release; Source is the origin of its source, with the Commit for git.
	Release, Source, Commit string
	// Go is the compiler's version, Base the base image, NAME@sha256:… or only the digest.
	Go, Base string
	// GoChosen reports whether the user chose Go instead of the release.
	GoChosen bool
	Plugins  []Plugin
	Imports  []string
	// Platforms of the image.
	Platforms []string
	// Modules are linked into the binaries.
	Modules []Module
	// Version of pmk-sched.
	Version string
	// Lock is the lock's text.
	Lock []byte
}

// Plugin is a compiled-in plugin with its sources' hash.
type Plugin struct {
	Name   string `json:"name"`
	Origin string `json:"origin"`
	SHA256 string `json:"sha256"`
}

type predicate struct {
	BuildDefinition definition `json:"buildDefinition"`
	RunDetails      details    `json:"runDetails"`
}

type definition struct {
	BuildType            string     `json:"buildType"`
	ExternalParameters   external   `json:"externalParameters"`
	InternalParameters   internal   `json:"internalParameters"`
	ResolvedDependencies []resource `json:"resolvedDependencies"`
}

// external are the user's parameters.
type external struct {
	Release   string   `json:"release"`
	Source    string   `json:"source"`
	Plugins   []Plugin `json:"plugins"`
	Imports   []string `json:"imports"`
	Base      string   `json:"base"`
	Platforms []string `json:"platforms"`
	// Go is empty if the release chose the version.
	Go string `json:"go,omitempty"`
}

type internal struct {
	Go string `json:"go"`
}

// resource is a ResourceDescriptor of in-toto.
type resource struct {
	Name      string            `json:"name,omitempty"`
	URI       string            `json:"uri,omitempty"`
	Digest    map[string]string `json:"digest,omitempty"`
	MediaType string            `json:"mediaType,omitempty"`
	Content   []byte            `json:"content,omitempty"`
}

type details struct {
	Builder    builder    `json:"builder"`
	Byproducts []resource `json:"byproducts"`
}

type builder struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version,omitempty"`
}

// NewProvenance returns a provenance's predicate as JSON.
func NewProvenance(b ProvenanceBuild) ([]byte, error) {
	text, err := json.Marshal(newPredicate(b))
	if err != nil {
		return nil, fmt.Errorf("encode provenance: %w", err)
	}
	return text, nil
}

func newPredicate(b ProvenanceBuild) predicate {
	sum := sha256.Sum256(b.Lock)
	p := predicate{
		BuildDefinition: definition{
			BuildType: BuildType,
			ExternalParameters: external{
				Release: b.Release, Source: b.Source, Plugins: append([]Plugin{}, b.Plugins...),
				Imports: append([]string{}, b.Imports...), Base: b.Base, Platforms: append([]string{}, b.Platforms...),
			},
			InternalParameters: internal{Go: b.Go},
		},
		RunDetails: details{
			Builder: builder{ID: Builder},
			Byproducts: []resource{{
				Name: LockName, MediaType: "application/yaml", Content: b.Lock,
				Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])},
			}},
		},
	}
	if b.GoChosen {
		p.BuildDefinition.ExternalParameters.Go = b.Go
	}
	if b.Version != "" {
		p.RunDetails.Builder.Version = map[string]string{"pmk-sched": b.Version}
	}
	p.BuildDefinition.ResolvedDependencies = dependencies(b)
	return p
}

// dependencies lists the modules, the compiler, the base and the commit.
func dependencies(b ProvenanceBuild) []resource {
	list := []resource{{URI: packageURL("toolchain", b.Go)}}
	if digest, ok := strings.CutPrefix(b.Base[strings.LastIndex(b.Base, "@")+1:], "sha256:"); ok {
		list = append(list, resource{Name: "base", URI: b.Base, Digest: map[string]string{"sha256": digest}})
	}
	if b.Commit != "" {
		list = append(list, resource{Name: "source", URI: b.Source, Digest: map[string]string{"gitCommit": b.Commit}})
	}
	for _, p := range b.Plugins {
		list = append(list, resource{Name: p.Name, URI: p.Origin, Digest: map[string]string{"sha256": p.SHA256}})
	}
	for _, m := range b.Modules {
		r := resource{URI: packageURL(m.Path, m.Version)}
		if digest := sumDigest(m.Sum); digest != "" { // in-toto, digest_set.md, "dirHash"
			r.Digest = map[string]string{"dirHash1": digest}
		}
		list = append(list, r)
	}
	return list
}

// ReadLock returns the lock in a provenance's predicate. Both are untrusted input.
func ReadLock(text []byte) ([]byte, error) {
	p, err := decode(text)
	if err != nil {
		return nil, err
	}
	for _, r := range p.RunDetails.Byproducts {
		if r.Name == LockName {
			return r.Content, nil
		}
	}
	return nil, fmt.Errorf("read provenance: it has no %s", LockName)
}

func decode(text []byte) (*predicate, error) {
	p := &predicate{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("read provenance: %w", err)
	}
	if got := p.BuildDefinition.BuildType; got != BuildType {
		return nil, fmt.Errorf("read provenance: expected the build type %s, got %.200q", BuildType, got)
	}
	return p, nil
}

// CompareProvenance returns which parts of a provenance differ from a build, one line each. The
// document is untrusted input; the error is about its form.
func CompareProvenance(text []byte, b ProvenanceBuild) ([]string, error) {
	p, err := decode(text)
	if err != nil {
		return nil, err
	}
	want := newPredicate(b)
	var differences []string
	part := func(name string, got, want any) {
		if !equal(got, want) {
			differences = append(differences, name+" of the provenance differ from the lock")
		}
	}
	part("externalParameters", p.BuildDefinition.ExternalParameters, want.BuildDefinition.ExternalParameters)
	part("internalParameters", p.BuildDefinition.InternalParameters, want.BuildDefinition.InternalParameters)
	part("resolvedDependencies", p.BuildDefinition.ResolvedDependencies, want.BuildDefinition.ResolvedDependencies)
	part("byproducts", p.RunDetails.Byproducts, want.RunDetails.Byproducts)
	if got := p.RunDetails.Builder.ID; got != Builder {
		differences = append(differences, fmt.Sprintf("builder: expected %s, got %.200q", Builder, got))
	}
	return differences, nil
}

// equal compares the JSON of two values, in which no map and an empty map are the same.
func equal(a, b any) bool {
	first, e1 := json.Marshal(a)
	second, e2 := json.Marshal(b)
	return e1 == nil && e2 == nil && bytes.Equal(first, second)
}
