package spec

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// Scheduler returns the request for the scheduler's plan, with the contents of its files, and the
// facts that the spec knows.
func (s *Spec) Scheduler() (*v1alpha1.CustomScheduler, deploy.Facts, error) {
	facts := deploy.Facts{
		Branch: s.Branch, Credentials: s.request.Spec.Credentials, Recorded: !s.file.local && !s.file.confirmed,
		Version: s.flags.Version, Now: time.Now(),
	}
	if s.request.Spec.Configuration.Inline == s.file.Spec.Configuration.Inline {
		facts.Copied = s.file.copied
	}
	var err error
	if facts.Image, err = s.Image(); err != nil {
		return nil, facts, err
	}
	if err := deploy.Validate(s.request, facts); err != nil {
		return nil, facts, err
	}
	r, err := s.complete()
	return r, facts, err
}

// DefaultScheduler returns the request to replace the default scheduler, with the contents of its
// files, and the image, which is empty if the request names none.
func (s *Spec) DefaultScheduler() (r *v1alpha1.CustomScheduler, image string, err error) {
	if image, err = s.Image(); err != nil {
		return nil, "", err
	}
	r, err = s.complete()
	return r, image, err
}

// complete returns the request with the contents of its files and plugins.
func (s *Spec) complete() (*v1alpha1.CustomScheduler, error) {
	r, err := s.Request()
	if err != nil {
		return nil, err
	}
	if _, _, err := deploy.CalledExtenders(r); err != nil {
		return nil, err
	}
	return r, archive(r.Spec.Source.Plugins)
}

// Image returns the requested image's name, or the image that build makes from the document:
// plugins are part of its tag.
func (s *Spec) Image() (string, error) {
	i := s.request.Spec.Image
	if i.Reference != "" || i.Repository == "" || i.Tag != "" {
		return cmp.Or(i.Reference, imageReference(i, "")), nil
	}
	source := s.request.Spec.Source
	list, err := s.packPlugins(source.Plugins)
	if err != nil {
		return "", err
	}
	suffix, err := pack.TagSuffix(pack.Sources(list), source.Imports)
	return imageReference(i, suffix), err
}

// imageReference is a document's image: with its tag, or with the release as tag, followed by
// suffix.
func imageReference(i v1alpha1.Image, suffix string) string {
	switch {
	case i.Repository == "":
		return ""
	case i.Tag == "":
		return i.Repository + ":" + image.ReleaseInTag + suffix
	default:
		return i.Repository + ":" + i.Tag
	}
}

// excluded returns an error if one of the flags in given (their names) is set although other
// excludes it. hint is a format for the flag's name.
func excluded(given []string, other, hint string, names ...string) error {
	for _, name := range names {
		if slices.Contains(given, name) {
			return problem.Invalidf(fmt.Sprintf(hint, name), "--%s and --%s exclude each other", other, name)
		}
	}
	return nil
}
