package versions

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	goversion "github.com/hashicorp/go-version"
)

// Release is a tag of kubernetes/kubernetes, such as v1.24.3 or v1.37.0-rc.1.
// Two releases are the same when they compare equal with ==.
type Release struct {
	Major, Minor, Patch int
	// PreRelease is "alpha.N", "beta.N" or "rc.N", and empty for a final release. Suffixes of
	// distributions ("eks-036c24b", "gke.100") are not pre-releases.
	PreRelease string
}

// upstreamPreRelease matches Kubernetes pre-releases (hack/lib/version.sh). A build between two
// pre-releases appends a number of commits ("rc.1.45"), which is not part of the tag.
var upstreamPreRelease = regexp.MustCompile(`^((?:alpha|beta|rc)\.[0-9]+)(?:[.-]|$)`)

// Parse parses a release, with or without the leading "v". Only a tag's exact name is valid;
// anything else is an *Error with an example, and with the release that was probably intended.
func Parse(s string) (Release, error) {
	release, err := FromServer(s)
	if err != nil {
		return Release{}, notATag(s, newestOf(s))
	}
	if name := release.String(); strings.TrimPrefix(s, "v") != strings.TrimPrefix(name, "v") {
		return Release{}, notATag(s, name)
	}
	return release, nil
}

// FromServer parses the version that an API server or a kubelet reports (version.Info.GitVersion,
// NodeInfo.KubeletVersion) and returns the upstream release it was built from. Suffixes of
// distributions are dropped: "v1.29.3-eks-036c24b" and "v1.29.3+k3s1" are both v1.29.3. The error
// is an *Error with the reported version.
func FromServer(gitVersion string) (Release, error) {
	v, err := goversion.NewVersion(gitVersion)
	if err != nil {
		return Release{},
			&Error{Message: fmt.Sprintf("invalid version %q: must start with a Kubernetes release such as v1.24.3", gitVersion)}
	}
	// go-version pads "1.24" to 1.24.0 and accepts a fourth number; a Kubernetes release has exactly
	// three.
	core := v.Core().String()
	rest, exact := strings.CutPrefix(strings.TrimPrefix(gitVersion, "v"), core)
	if !exact || len(v.Segments()) != 3 || (rest != "" && rest[0] != '-' && rest[0] != '+') {
		return Release{},
			&Error{Message: fmt.Sprintf("invalid version %q: must start with a Kubernetes release such as v1.24.3", gitVersion)}
	}
	segments := v.Segments()
	release := Release{Major: segments[0], Minor: segments[1], Patch: segments[2]}
	if found := upstreamPreRelease.FindStringSubmatch(v.Prerelease()); found != nil {
		release.PreRelease = found[1]
	}
	return release, nil
}

// String returns the tag's name: "v1.24.3", "v1.37.0-rc.1".
func (r Release) String() string {
	return "v" + r.number(r.Major)
}

// MinorString returns the minor release without "v": "1.24".
func (r Release) MinorString() string {
	return fmt.Sprintf("%d.%d", r.Major, r.Minor)
}

// Staging returns the version of the release's staging modules (k8s.io/api, k8s.io/client-go, …):
// v1.24.3 is v0.24.3.
func (r Release) Staging() string {
	return "v" + r.number(0)
}

func (r Release) number(major int) string {
	core := fmt.Sprintf("%d.%d.%d", major, r.Minor, r.Patch)
	if r.PreRelease != "" {
		return core + "-" + r.PreRelease
	}
	return core
}

// Compare returns -1, 0 or +1 if r is older than, equal to, or newer than other. A pre-release is
// older than its release.
func (r Release) Compare(other Release) int {
	core := cmp.Or(
		cmp.Compare(r.Major, other.Major),
		cmp.Compare(r.Minor, other.Minor),
		cmp.Compare(r.Patch, other.Patch),
	)
	if core != 0 || r.PreRelease == other.PreRelease {
		return core
	}
	a, errA := goversion.NewVersion(r.String())
	b, errB := goversion.NewVersion(other.String())
	if errA != nil || errB != nil {
		return cmp.Compare(r.PreRelease, other.PreRelease)
	}
	return a.Compare(b)
}

// IsZero reports whether r is the zero value.
func (r Release) IsZero() bool {
	return r == Release{}
}
