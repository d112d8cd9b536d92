package image

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/pmk-sched/pmk-sched/internal/base/loopback"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

const nameHint = "use NAME:TAG, such as localhost/my-scheduler:v1 or registry.example.com/team/my-scheduler:v1"

// CanonicalName returns the full form of an image name: registry, repository, and tag or digest.
// The kubelet expands the name in a pod to it, so containerd must have the image under it.
func CanonicalName(ref string) (string, error) {
	r, err := parseReference(ref)
	if err != nil {
		return "", err
	}
	return canonical(r), nil
}

// canonical is like r.Name, but with the kubelet's name for the default registry:
// go-containerregistry uses its index host.
func canonical(r name.Reference) string {
	return shortRegistry(r.Name())
}

// parseReference parses an image name. It allows plain HTTP for registries on this machine.
func parseReference(ref string) (name.Reference, error) {
	r, err := name.ParseReference(ref)
	if err == nil && loopback.Is(r.Context().RegistryStr()) {
		r, err = name.ParseReference(ref, name.Insecure)
	}
	if err == nil {
		err = checkComponents(r.Context().RepositoryStr())
	}
	if err != nil {
		return nil, problem.Invalidf(nameHint, "invalid image name %q: %w", ref, err)
	}
	return r, nil
}

// checkComponents refuses a path that a registry could read as another path. No container runtime
// accepts it, but go-containerregistry does.
func checkComponents(path string) error {
	for component := range strings.SplitSeq(path, "/") {
		if component == "" || component == "." || component == ".." {
			return fmt.Errorf("the repository %s has the component %q", path, component)
		}
	}
	return nil
}

// parseTag parses a new image's name. Its String is the canonical name.
func parseTag(ref string) (name.Tag, error) {
	r, err := parseReference(ref)
	if err != nil {
		return name.Tag{}, err
	}
	if _, ok := r.(name.Tag); !ok {
		return name.Tag{}, problem.Invalidf(nameHint,
			"invalid image name %q: a new image must have a tag, not a digest", ref)
	}
	opts := []name.Option{}
	if r.Context().Scheme() == "http" {
		opts = append(opts, name.Insecure)
	}
	tag, err := name.NewTag(canonical(r), opts...)
	if err != nil {
		return name.Tag{}, problem.Invalidf(nameHint, "invalid image name %q: %w", ref, err)
	}
	return tag, nil
}

// ParseBase reads a base from the command line: a directory is an OCI layout, a file is a docker
// archive, and anything else a registry reference. A path that does not exist is an Invalid error.
func ParseBase(s string) (Base, error) {
	const hint = "use an OCI layout directory, a docker archive, or an image name"
	info, err := os.Stat(s)
	switch {
	case err == nil && info.IsDir():
		if _, err := os.Stat(filepath.Join(s, "index.json")); err == nil {
			return Base{Layout: s}, nil
		}
		if !pathlike(s) {
			break
		}
		return Base{}, problem.Invalidf(hint, "base %s: the directory is not an OCI layout: it has no index.json", s)
	case err == nil:
		return Base{Archive: s}, nil
	case pathlike(s):
		return Base{}, problem.Invalidf(hint, "base %s: %w", s, err)
	}
	if _, err := parseReference(s); err != nil {
		return Base{}, err
	}
	return Base{Reference: s}, nil
}

// IsReference reports whether a base is an image's name, and not a path.
func IsReference(base string) bool {
	_, err := parseReference(base)
	return err == nil && !pathlike(base)
}

// pathlike reports whether s can only be a path.
func pathlike(s string) bool {
	if filepath.IsAbs(s) || strings.HasPrefix(s, ".") {
		return true
	}
	return strings.HasSuffix(s, ".tar") || strings.HasSuffix(s, ".tar.gz") || strings.HasSuffix(s, ".tgz")
}

// IsLocal reports whether an image is in no registry: it goes to containerd of this machine.
func IsLocal(reference string) bool { return strings.HasPrefix(reference, "localhost/") }

// ReleaseInTag is replaced with the release, such as v1.24.3, in a request's image reference.
const ReleaseInTag = "{release}"
