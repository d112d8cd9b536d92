package spec

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Again returns the spec that deploys a scheduler for another release. The receiver's file replaces
// the recorded request, and the receiver's flags win over both. Credentials that pmk-sched chose
// are kept. A release that reads no legacy Policy gets a configuration instead.
func (s *Spec) Again(before deploy.Installed, release string, readsPolicy bool) (again *Spec, err error) {
	f, d := s.flags, s.file
	f.Name, f.Namespace, f.Branch = s.Name, s.Namespace, release
	if off := false; !readsPolicy {
		f.PolicyConfigMap = &off
	}
	if f.File == "" && before.Request != nil {
		if d, err = recordedDocument(before); err != nil {
			return nil, err
		}
	}
	if !deploy.IsChosen(cmp.Or(f.Credentials, d.Spec.Credentials)) {
		f.Credentials = before.Credentials
	}
	if again, err = resolve(f, d); err != nil {
		return nil, err
	}
	if before.Request != nil {
		again.again = cmp.Or(before.Origin, "the recorded request")
	}
	again.chosen = !deploy.IsChosen(d.Spec.Credentials) && s.flags.Credentials == ""
	again.asked = asksForCredentials(s.flags, d)
	return again, nil
}

// WithTarget returns the spec with the name of the image to build for release to: the image that
// the user's file names or, if it names none, the deployed image, whose release is from.
func (s *Spec) WithTarget(deployed, from, to string) (*Spec, error) {
	var named string
	if s.file.local || s.imageOfFile() {
		var err error
		if named, err = s.Image(); err != nil {
			return nil, err
		}
	}
	name := strings.ReplaceAll(named, image.ReleaseInTag, to)
	if name == named {
		name = inspect.Retag(cmp.Or(named, deployed), from, to)
	}
	other := s.WithImage(name)
	other.targeted = s.file.local && named != ""
	return other, nil
}

// FitGates returns the spec without the feature gates in spec.args that a release does not have, or
// that it locks to the value in spec.args, with a note for each. A gate that the release locks to
// the other value is an error: the scheduler would not do as asked.
func (s *Spec) FitGates(release versions.Release) (fitting *Spec, notes []string, err error) {
	args, notes, err := versions.FitArgs(s.request.Spec.Args, release)
	if err != nil {
		return nil, nil, err
	}
	if len(notes) == 0 {
		return s, nil, nil
	}
	other := *s
	other.request = s.request.DeepCopy()
	other.request.Spec.Args = args
	return &other, notes, nil
}

// RequiresSignature reports whether the image must be signed: by the spec's key, or by the deployed
// scheduler's key, which is recorded.
func (s *Spec) RequiresSignature(recorded string) bool {
	key, _ := deploy.KeepKey(s.request.Spec.Image.RequireSignature, recorded)
	return key != ""
}

// UsesOwnImage reports whether the scheduler gets the release's own image.
func (s *Spec) UsesOwnImage() bool { return s.request.Spec.UsesOwnImage() }

// imageOfFile reports whether the file names the image by its release, so that each release and
// each plugin set has its own tag.
func (s *Spec) imageOfFile() bool {
	i := s.request.Spec.Image
	return i.Reference == "" && i.Repository != "" && i.Tag == ""
}

// Pinned returns a warning for each field in the file that keeps it at another release than the
// given one.
func (s *Spec) Pinned(release string) []string {
	name := s.request.Annotations[v1alpha1.AnnotationFile]
	if name == "" {
		return nil
	}
	var warnings []string
	if branch := s.file.Spec.Source.Branch; branch != "" && branch != pack.BranchAuto && branch != release {
		warnings = append(warnings,
			fmt.Sprintf("spec.source.branch of %s is %s: set it to %s or auto before the file is deployed again", name, branch,
				release))
	}
	if tag := s.file.Spec.Image.Tag; tag != "" && !strings.HasSuffix(s.flags.Image, ":"+tag) {
		warnings = append(warnings,
			fmt.Sprintf(
				"spec.image.tag of %s is %s: remove it before the file is deployed again, so that the release becomes the tag",
				name, tag))
	}
	return warnings
}
