package configcheck

import (
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// ReleaseCheck compares the release of the kube-scheduler in an image with the release that the
// image is deployed for. It knows the former from the program, a label or a signature.
type ReleaseCheck struct {
	Image string
	Want  versions.Release
	// Exact refuses another patch, too. Otherwise that is a warning: Want is the API server's release,
	// and the user named none.
	Exact bool
	// Branch is set if the user can name another release with --branch.
	Branch bool
}

// CompareOutput compares [Version] output; unread is the error of reading it. Without a release in
// it, the image's label is compared. established is false if the label does not name a release
// either.
func (c ReleaseCheck) CompareOutput(
	output string, unread error, label string,
) (warning string, established bool, err error) {
	release, ok := ParseVersion(output)
	if unread != nil || !ok {
		if release, err = versions.FromServer(label); err != nil || release.Major == 0 {
			return "", false, nil //nolint:nilerr // the label is of others
		}
	}
	warning, err = c.Compare(release)
	return warning, true, err
}

// Check is [ReleaseCheck.Compare] without the warning.
func (c ReleaseCheck) Check(got versions.Release) error {
	_, err := c.Compare(got)
	return err
}

// Compare returns a warning or an error if got is another release.
func (c ReleaseCheck) Compare(got versions.Release) (warning string, err error) {
	switch {
	case got == c.Want:
		return "", nil
	case !c.Exact && got.Major == c.Want.Major && got.Minor == c.Want.Minor:
		return fmt.Sprintf("image %s has the kube-scheduler of %s, and the API server is %s", c.Image, got, c.Want), nil
	}
	hint := fmt.Sprintf("use an image with the kube-scheduler of %s: `pmk-sched build --branch %[1]s`", c.Want)
	if c.Branch {
		hint = fmt.Sprintf("specify --branch %s (spec.source.branch), or an image with the kube-scheduler of %s", got, c.Want)
	}
	return "", problem.Invalidf(hint, "image %s has the kube-scheduler of %s, and the scheduler is for %s", c.Image, got,
		c.Want)
}
