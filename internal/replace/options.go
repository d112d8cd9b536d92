package replace

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Defaults for [Options].
const (
	DefaultTimeout   = 3 * time.Minute
	DefaultStableFor = 25 * time.Second
)

// Options are the user's settings for Run. At least one of Image, Preset, Configuration, Plugins,
// Extenders and PolicyConfigMap is set.
type Options struct {
	// Image of the new scheduler. [image.ReleaseInTag] in it is replaced by the release. If it is
	// empty, the current image is kept.
	Image string
	// RequireSignature is the public key, in PEM, that must have signed the image, or
	// [v1alpha1.NoSignature]. If it is empty, the former replacement's key is kept.
	RequireSignature string
	// Preset names a built-in configuration. Configuration is the user's own configuration,
	// ConfigurationName the name of its file for messages. If neither is set, the current
	// configuration is kept.
	Preset            string
	Configuration     []byte
	ConfigurationName string
	// Plugins are compiled into the image. Rules maps each plugin to the permissions that it needs;
	// PluginRules are granted in any case.
	Plugins     []profiles.Plugin
	Rules       map[string]manifest.RulesFunc `json:"-"`
	PluginRules []rbacv1.PolicyRule
	// Extenders are added to the configuration after the extenders at the addresses DropExtenders
	// are removed. For names the purpose of a replacement that has only this purpose: undoing it
	// restores the original manifest.
	Extenders     []profiles.Extender
	DropExtenders []string
	For           string
	// FitGates leaves out the feature gates in the manifest that the release does not have, or that it
	// locks to their value, as [versions.FitGates].
	FitGates bool
	// PolicyConfigMap makes the scheduler read a legacy Policy from a ConfigMap (1.20–1.22 only).
	PolicyConfigMap bool
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
	if o.Image == "" && o.Preset == "" && len(o.Configuration) == 0 && !o.PolicyConfigMap &&
		len(o.Plugins)+len(o.Extenders)+len(o.DropExtenders) == 0 {
		return problem.Invalidf("", "one of --image, --config and --preset is required")
	}
	return deploy.ValidateImage(o.Image, "")
}
