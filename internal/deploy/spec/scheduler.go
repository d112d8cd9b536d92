package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// Scheduler returns the options to install the scheduler with.
func (s *Spec) Scheduler() (deploy.Options, error) {
	o := s.options()
	var err error
	if o.Image, err = s.image(); err != nil {
		return o, err
	}
	if err := o.Validate(); err != nil {
		return o, err
	}
	if err := s.complete(&o); err != nil {
		return o, err
	}
	return o, archive(o.Request.Spec.Source.Plugins)
}

// options returns the options without the image and what [Spec.complete] sets.
func (s *Spec) options() deploy.Options {
	spec := s.request.Spec
	return deploy.Options{
		Name: s.Name, Namespace: s.Namespace,
		PullPolicy:  spec.Image.PullPolicy,
		Branch:      s.Branch,
		Credentials: cmp.Or(spec.Credentials, deploy.Auto),
		Replicas:    int(spec.Replicas),
		Port:        int(spec.Ports.Secure),
		Lossy:       spec.Configuration.Lossy,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList(spec.Resources.Requests), Limits: corev1.ResourceList(spec.Resources.Limits),
		},
		Args:         spec.Args,
		NodeSelector: maps.Clone(spec.NodeSelector), AnyNode: spec.AnyNode,
		Tolerations: spec.PodTolerations(), PriorityClass: spec.PriorityClassName,

		Version: s.flags.Version,
		Now:     time.Now(),
	}
}

// Replacement returns the options that a replaced default scheduler has too: image, configuration,
// extenders and permissions.
func (s *Spec) Replacement() (o deploy.Options, err error) {
	if o.Image, err = s.image(); err != nil {
		return o, err
	}
	return o, s.complete(&o)
}

// complete sets the request and its configuration, extenders and permissions.
func (s *Spec) complete(o *deploy.Options) (err error) {
	if o.Request, err = s.Request(); err != nil {
		return err
	}
	o.Extenders, o.ExtenderClients, err = calledExtenders(o.Request)
	o.PolicyConfigMap = s.request.Spec.Configuration.PolicyConfigMap
	o.PluginRules = slices.Clone(s.request.Spec.RBAC.Rules)
	o.Recorded = !s.file.local && !s.file.confirmed
	o.AuthenticationReader = s.request.Spec.RBAC.AuthenticationReader
	o.Preset, o.Configuration, o.ConfigurationName = configuration(o.Request)
	return err
}

// image is the requested image, or the image that build makes of the document: plugins are part of
// its tag.
func (s *Spec) image() (string, error) {
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

// imageReference is the image of a document: with its tag, or with the release as tag, followed by
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

// configuration returns the scheduler configuration of a request with contents, and its name in
// messages.
func configuration(r *v1alpha1.CustomScheduler) (preset string, text []byte, name string) {
	c := r.Spec.Configuration
	if c.File == "" && c.Inline == "" {
		return c.Preset, nil, ""
	}
	return "", []byte(c.Inline), cmp.Or(c.File, "spec.configuration.inline")
}

// excluded returns an error if one of the flags in given (their names) is set although other
// excludes it. hint is a format for the name of the flag.
func excluded(given []string, other, hint string, names ...string) error {
	for _, name := range names {
		if slices.Contains(given, name) {
			return problem.Invalidf(fmt.Sprintf(hint, name), "--%s and --%s exclude each other", other, name)
		}
	}
	return nil
}
