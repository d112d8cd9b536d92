package replace

import (
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Defaults for [Options].
const (
	DefaultTimeout   = 3 * time.Minute
	DefaultStableFor = 25 * time.Second
)

// Options are the user's settings for Run.
type Options struct {
	// Request is the default scheduler's request, with the contents of the files that it names.
	// Settings that it leaves open are kept from the current replacement.
	Request v1alpha1.CustomScheduler
	// Image of the request. [image.ReleaseInTag] in it is replaced by the release. If it is empty, the
	// current image is kept.
	Image string
	// Plugins are compiled into the image. Packages are the import paths of bundled plugins, whose
	// permissions are in code.
	Plugins  []profiles.Plugin
	Packages map[string]string
	// Extenders that pmk-sched deployed are added to the request, and those named in DropExtenders are
	// removed.
	Extenders     []v1alpha1.Extender
	DropExtenders []string
	// FitGates leaves out the feature gates in the manifest that the release does not have, or that it
	// locks to their value, as [versions.FitGates].
	FitGates bool
	// Node is this node's name. If it is empty, the node is found by Names, this machine's host names
	// and addresses.
	Node  string
	Names []string
	// Timeout bounds the wait for the new scheduler, by default DefaultTimeout. StableFor is the time
	// that it has to run without a restart, by default DefaultStableFor.
	Timeout, StableFor time.Duration
}

// Validate checks all that can be checked without a cluster.
func (o Options) Validate() error {
	c, called := o.Request.Spec.Configuration, slices.ContainsFunc(o.Request.Spec.Extenders,
		func(e v1alpha1.Extender) bool { return !e.IsDeployed() || e.Deployed != nil })
	if o.Image == "" && !isConfigured(c) && !c.PolicyConfigMap && !called &&
		len(o.Plugins)+len(o.Extenders)+len(o.DropExtenders) == 0 {
		return problem.Invalidf("", "one of --image, --config and --preset is required")
	}
	return deploy.ValidateImage(o.Image, "")
}

// isConfigured reports whether a request names a configuration.
func isConfigured(c v1alpha1.Configuration) bool {
	return c.Preset != "" || c.File != "" || c.Inline != ""
}
