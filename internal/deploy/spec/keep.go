package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// GivesFile reports whether a file, or a recorded request, describes the scheduler completely.
func (s *Spec) GivesFile() bool { return !s.file.absent }

// GivesConfiguration reports whether a flag names the configuration.
func (s *Spec) GivesConfiguration() bool { return s.flags.Config != "" || s.flags.Preset != "" }

// KeepImages returns the spec for a deployment that changes no image: an image with a deployed
// image's name is that image, although its tag may have moved.
func (s *Spec) KeepImages() *Spec {
	other := *s
	other.keepImages = true
	return &other
}

// KeepsImages reports whether the spec is from KeepImages.
func (s *Spec) KeepsImages() bool { return s.keepImages }

// Keep returns the spec with a deployed scheduler's settings where no flag says otherwise, and the
// names of the settings that the spec alone would not have. The image and the sources are not kept:
// an image records its own sources.
func (s *Spec) Keep(deployed deploy.Installed) (kept *Spec, settings []string, err error) {
	r := deployed.Request.DeepCopy()
	r.Spec.Source, r.Spec.Image = v1alpha1.Source{}, v1alpha1.Image{PullPolicy: r.Spec.Image.PullPolicy}
	deployed.Request = r
	d, err := recordedDocument(deployed)
	if err != nil {
		return nil, nil, err
	}
	f := s.flags
	f.Name, f.Namespace = s.Name, s.Namespace
	if kept, err = resolve(f, d); err != nil {
		return nil, nil, err
	}
	kept.Branch = s.Branch
	with, alone := reflect.ValueOf(kept.request.Spec), reflect.ValueOf(s.request.Spec)
	for i := range with.NumField() {
		if reflect.DeepEqual(with.Field(i).Interface(), alone.Field(i).Interface()) {
			continue
		}
		name, _, _ := strings.Cut(with.Type().Field(i).Tag.Get("json"), ",")
		if name == "configuration" {
			preset, _, file := deploy.Configuration(kept.request)
			name = fmt.Sprintf("configuration (%s)", cmp.Or(file, "preset "+cmp.Or(preset, "default")))
		}
		settings = append(settings, name)
	}
	return kept, settings, nil
}
