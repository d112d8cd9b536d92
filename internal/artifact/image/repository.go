package image

import (
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// ParsePrefix reads the beginning of repository names: a registry, and the path components that may
// follow. It returns the form that [InRepositories] compares.
func ParsePrefix(text string) (string, error) {
	const hint = "use REGISTRY or REGISTRY/PATH, such as registry.example.com/team or docker.io/library"
	registry, path, hasPath := strings.Cut(text, "/")
	var err error
	switch {
	case !strings.ContainsAny(registry, ".:") && registry != "localhost":
		return "", problem.Invalidf(hint, "invalid repository %q: it does not begin with a registry", text)
	case hasPath:
		if _, err = name.NewRepository(text); err == nil {
			err = checkComponents(path)
		}
	default:
		_, err = name.NewRegistry(text)
	}
	if err != nil {
		return "", problem.Invalidf(hint, "invalid repository %q: %w", text, err)
	}
	return shortRegistry(text), nil
}

// InRepositories reports whether an image's repository is one of the prefixes from [ParsePrefix],
// or below one of them: a/b is below a, and ab is not.
func InRepositories(ref string, prefixes []string) (bool, error) {
	parsed, err := parseReference(ref)
	if err != nil {
		return false, err
	}
	repository := shortRegistry(parsed.Context().Name())
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return repository == prefix || strings.HasPrefix(repository, prefix+"/")
	}), nil
}

// shortRegistry returns a name with the kubelet's name for the default registry.
func shortRegistry(text string) string {
	if text == name.DefaultRegistry || strings.HasPrefix(text, name.DefaultRegistry+"/") {
		return strings.TrimPrefix(text, "index.")
	}
	return text
}
