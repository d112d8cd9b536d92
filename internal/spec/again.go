package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// Deployed is what is recorded of a deployed scheduler.
type Deployed struct {
	// Flags are those that it was deployed and its image was built with, --name=value each.
	Flags []string
	// Configuration replaces the file of a recorded --config; ConfigurationName is its name in messages.
	Configuration     []byte
	ConfigurationName string
	// Credentials are those that deploy chose if neither a flag nor the file names any.
	Credentials string
}

// Again returns the spec that deploys a scheduler for another release with the recorded flags, and the flags that build its image. The receiver's
// flags win over recorded ones. The file is that of the receiver, or the recorded one; a file that was not recorded replaces
// the recorded flags. A release that reads no legacy Policy gets a configuration instead.
func (s *Spec) Again(before Deployed, release string, readsPolicy bool) (*Spec, BuildFlags, error) {
	f, build := s.flags, BuildFlags{}
	f.Name, f.Namespace, f.Branch, f.Given = s.Name, s.Namespace, release, slices.Clone(f.Given)
	if off := false; !readsPolicy {
		f.PolicyConfigMap = &off
	}
	given, recorded := f.File, recordedFile(before.Flags)
	if given != "" && recorded == "" {
		f.Given = append(f.Given, "--file="+given)
	} else {
		f.File = cmp.Or(given, recorded)
		if err := f.apply(before.Flags, &build); err != nil {
			return nil, build, err
		}
	}
	d := s.file
	if given == "" && recorded != "" {
		var err error
		if d, err = readDocument(recorded, nil); err != nil {
			return nil, build, problem.Invalidf("name its file with -f", "scheduler %s was deployed with -f %s: %w", s.Name, recorded, err)
		}
	}
	if f.File == "" && f.Config != "" {
		f.Config, f.Configuration, f.ConfigurationName = "", before.Configuration, before.ConfigurationName
	}
	if mode := cmp.Or(f.Credentials, d.Spec.Credentials, deploy.Auto); mode == deploy.Auto {
		f.Credentials = before.Credentials
	}
	return resolve(f, d), build, nil
}

// Named returns the spec for a scheduler of that name.
func (s *Spec) Named(name, namespace string) *Spec {
	other := *s
	other.Name, other.Namespace = name, namespace
	return &other
}

// GivenImage is the image of the flags; empty: none.
func (s *Spec) GivenImage() string { return s.flags.Image }

// recordedFile is the value of the recorded --file, or "".
func recordedFile(flags []string) string {
	for _, flag := range flags {
		if file, ok := strings.CutPrefix(flag, "--file="); ok {
			return file
		}
	}
	return ""
}

// apply sets recorded flags that are not given, and records them again.
func (f *Flags) apply(recorded []string, build *BuildFlags) error {
	file := f.File
	for _, flag := range recorded {
		name, value, _ := strings.Cut(flag, "=")
		if err := f.applyOne(name, value, build); err != nil {
			return err
		}
		switch name {
		case "--file":
			flag = "--file=" + file
		case "--busybox", "--base", "--source", "--platform": // of the next build
			continue
		case "--any-node": // as older releases of pmk-sched recorded it
			flag = "--node-selector=" + AnyNode
		case "--policy-configmap":
			if f.PolicyConfigMap != nil && !*f.PolicyConfigMap {
				continue
			}
		}
		if !slices.Contains(f.Given, flag) {
			f.Given = append(f.Given, flag)
		}
	}
	return nil
}

func (f *Flags) applyOne(name, value string, build *BuildFlags) error {
	number := func(to **int) error {
		n, err := strconv.Atoi(value)
		if err != nil {
			return problem.Invalidf("deploy it again with the flags that it needs", "scheduler %s has the invalid recorded flag %s=%s", f.Name, name, value)
		}
		*to = &n
		return nil
	}
	switch name {
	case "--pull-policy":
		f.PullPolicy = value
	case "--config":
		f.Config = value
	case "--lossy":
		f.Lossy = true
	case "--preset":
		f.Preset = value
	case "--policy-configmap":
		if on := value != "false"; f.PolicyConfigMap == nil {
			f.PolicyConfigMap = &on
		}
	case "--credentials":
		f.Credentials = value
	case "--replicas":
		return number(&f.Replicas)
	case "--port":
		return number(&f.Port)
	case "--node-selector":
		f.NodeSelector = append(f.NodeSelector, value)
	case "--any-node":
		f.NodeSelector = []string{AnyNode}
	case "--with":
		if !slices.Contains(f.Plugins, value) {
			f.Plugins, build.With = append(f.Plugins, value), append(build.With, value)
		}
	case "--import":
		if !slices.Contains(build.Imports, value) {
			build.Imports = append(build.Imports, value)
		}
	case "--busybox":
		build.Busybox = value
	case "--base":
		build.Base = value
	case "--source":
		build.Source = value
	case "--platform":
		build.Platforms = append(build.Platforms, value)
	case "--file":
	default:
		return problem.Invalidf("upgrade it with the release of pmk-sched that deployed it, or deploy it again", "scheduler %s was deployed with the unknown flag %s", f.Name, name)
	}
	return nil
}

// ImageOfFile reports whether the file names the image by its release, so that each release and each set of plugins has its own tag.
func (s *Spec) ImageOfFile() bool {
	return s.flags.Image == "" && s.file.Spec.Image.Repository != "" && s.file.Spec.Image.Tag == ""
}

// WithImage returns the spec with another image.
func (s *Spec) WithImage(image string) *Spec {
	other := *s
	other.flags.Image = image
	return &other
}

// GivesBranch reports whether a flag names the branch.
func (s *Spec) GivesBranch() bool { return s.flags.Branch != "" }

// Pinned returns a warning for each field of the file that keeps it at another release than the given one.
func (s *Spec) Pinned(release string) []string {
	var warnings []string
	if branch := s.file.Spec.Source.Branch; branch != "" && branch != pack.BranchAuto && branch != release {
		warnings = append(warnings, fmt.Sprintf("spec.source.branch of %s is %s: set it to %s or auto before the file is deployed again", s.name(), branch, release))
	}
	if tag := s.file.Spec.Image.Tag; tag != "" && !strings.HasSuffix(s.flags.Image, ":"+tag) {
		warnings = append(warnings, fmt.Sprintf("spec.image.tag of %s is %s: remove it before the file is deployed again, so that the release becomes the tag", s.name(), tag))
	}
	return warnings
}

// name is the name of the file.
func (s *Spec) name() string { return cmp.Or(s.flags.File, "the file") }
