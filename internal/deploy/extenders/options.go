package extenders

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Options for one extender.
type Options struct {
	// Extender is the extender that the user requests, with an image.
	v1alpha1.Extender
	// Namespace of the objects. Empty: kube-system.
	Namespace string
	// Rules returns a policy's permissions by its name in lower case; PluginRules are granted in any
	// case.
	Rules       map[string]func(manifest.Policy) ([]rbacv1.PolicyRule, error)
	PluginRules []rbacv1.PolicyRule
	// Tolerations and PriorityClass are for an extender with a Service. See [manifest.Extender].
	Tolerations   []corev1.Toleration
	PriorityClass string
	// Architectures and MissingImage are as in [deploy.Facts].
	Architectures []string
	MissingImage  error
	// Nodes whose default scheduler calls the extender.
	Nodes []string
	// Version of pmk-sched, recorded in a label.
	Version string
	// Now is the time at which certificates must be valid.
	Now time.Time
}

// Validate checks all that can be checked without a cluster.
func (o Options) Validate() error {
	name := o.Name
	switch {
	case name == "":
		return problem.Invalidf("", "--name is required")
	case o.Image == "":
		return problem.Invalidf("build an image with `pmk-sched build extender`", "extender %s: --image is required", name)
	case len(o.Policies) == 0:
		return problem.Invalidf("`pmk-sched plugin list` lists the bundled ones", "extender %s: --policy is required", name)
	case o.Replicas < 0:
		return problem.Invalidf("", "invalid number of replicas %d: must be at least 1", o.Replicas)
	case o.Sidecar && (o.Replicas > 0 || len(o.NodeSelector) > 0):
		return problem.Invalidf("omit replicas and node selector",
			"extender %s is a sidecar: it runs in the pods of its schedulers", name)
	case !o.Sidecar && o.Port != 0:
		return problem.Invalidf("omit the port", "extender %s has its own pods: a port is for a sidecar", name)
	case o.Port < 0 || o.Port > 65535 || o.Port > 0 && o.Port < 1024:
		return problem.Invalidf("", "extender %s: invalid port %d: must be between 1024 and 65535", name, o.Port)
	case o.Sidecar && len(o.Nodes) > 0:
		return problem.Invalidf("omit --sidecar", "the default scheduler is a static pod, which cannot have a sidecar")
	case o.BindVerb != "" && len(o.Nodes) > 0:
		return problem.Invalidf("use it with a second scheduler: --for",
			"the default scheduler has no client certificate for extender %s, which is required to bind pods", name)
	}
	if err := deploy.ValidateImage(o.Image, o.PullPolicy); err != nil {
		return err
	}
	if o.Sidecar {
		if err := manifest.ValidateSidecar(deploy.CallOf(o.Extender)); err != nil {
			return err
		}
	}
	if _, err := o.rules(); err != nil {
		return err
	}
	return manifest.ValidateName(name)
}

// checkSchedulingDeadlock refuses an extender that the default scheduler needs to schedule the
// extender's own pods: if none runs, none can be scheduled.
func (o Options) checkSchedulingDeadlock() error {
	ignorable := o.Ignorable != nil && *o.Ignorable
	if len(o.Nodes) == 0 || ignorable || len(o.ManagedResources) > 0 {
		return nil
	}
	return problem.Invalidf(
		"set --ignorable=true, or limit the extender with managedResources in pmk-sched.yaml to pods that request a resource",
		"the default scheduler would call extender %s for the extender's own pods, and could not schedule them if none runs",
		o.Name)
}

// check checks all that can be checked before the address is known, for the API server's release.
func (o Options) check(release versions.Release) ([]profiles.Note, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := o.checkSchedulingDeadlock(); err != nil {
		return nil, err
	}
	call := deploy.CallOf(o.Extender)
	call.URLPrefix = manifest.SidecarURL(manifest.ExtenderPort) // any valid one
	return profiles.CheckExtenders(release, []profiles.Extender{call})
}

// rules returns the policies' permissions.
func (o Options) rules() ([]rbacv1.PolicyRule, error) {
	policies, err := deploy.PoliciesOf(o.Extender)
	if err != nil {
		return nil, err
	}
	rules := slices.Clone(o.PluginRules)
	for _, policy := range policies {
		needs := o.Rules[strings.ToLower(policy.Name)]
		if needs == nil {
			continue
		}
		needed, err := needs(policy)
		if err != nil {
			return nil, problem.Invalidf("`pmk-sched plugin list` lists the arguments of bundled policies",
				"extender %s, policy %s: %s", o.Name, policy.Name, err)
		}
		for _, rule := range needed {
			if !manifest.HasRule(rules, rule) {
				rules = append(rules, rule)
			}
		}
	}
	return rules, nil
}

// sidecar returns the extender as a scheduler runs it in its own pod; the port is chosen with the
// scheduler's if the user named none.
func (o Options) sidecar() (v1alpha1.Extender, error) {
	rules, err := o.rules()
	entry := o.Extender
	entry.Deployed = &v1alpha1.DeployedExtender{Image: o.Image, Port: o.Port, Rules: rules}
	return entry, err
}
