package extenders

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Options is what a person asks for of one extender.
type Options struct {
	// Call is what a scheduler asks it, and how: verbs, weight, timeout, whether it is ignorable. Its Name is the extender's. The address
	// and the certificates are filled in.
	Call profiles.Extender
	// Namespace of the objects. Empty: kube-system.
	Namespace         string
	Image, PullPolicy string
	// Policies are what it serves. Rules has, for some of them by name in small letters, what they need; PluginRules is granted as it stands.
	Policies    []manifest.Policy
	Rules       map[string]func(manifest.Policy) ([]rbacv1.PolicyRule, error)
	PluginRules []rbacv1.PolicyRule
	// Sidecar runs it in the pod of each scheduler that calls it, at Port of its loopback; 0: one beside the scheduler's own.
	Sidecar bool
	Port    int
	// Replicas; 0: 2. NodeSelector: empty is any node. Both belong to the form with a Service.
	Replicas     int
	NodeSelector map[string]string
	Resources    corev1.ResourceRequirements
	// Nodes are those whose default scheduler calls it.
	Nodes []string
	// Version of pmk-sched, recorded in a label.
	Version string
	// Now is the time against which certificates are judged.
	Now time.Time
}

// Verbs that pmk-extender answers, by the path that it has for each.
const (
	VerbFilter     = "filter"
	VerbPrioritize = "prioritize"
	VerbPreempt    = "preempt"
	VerbBind       = "bind"
)

// Validate checks all that can be checked without a cluster.
func (o Options) Validate() error {
	name := o.Call.Name
	pulls := []string{string(corev1.PullIfNotPresent), string(corev1.PullAlways), string(corev1.PullNever), ""}
	switch {
	case name == "":
		return problem.Invalidf("name it with --name", "the extender has no name")
	case o.Image == "":
		return problem.Invalidf("name it with --image; `pmk-sched build --extender` makes one", "extender %s has no image", name)
	case strings.ContainsAny(o.Image, " \t\n"):
		return problem.Invalidf("", "image %q: a reference holds no spaces", o.Image)
	case !slices.Contains(pulls, o.PullPolicy):
		return problem.Invalidf("use IfNotPresent, Always or Never", "unknown pull policy %q", o.PullPolicy)
	case len(o.Policies) == 0:
		return problem.Invalidf("name one with --policy: `pmk-sched plugin list` has those that come with it", "extender %s has no policy", name)
	case o.Replicas < 0:
		return problem.Invalidf("", "%d replicas are not possible", o.Replicas)
	case o.Sidecar && (o.Replicas > 0 || len(o.NodeSelector) > 0):
		return problem.Invalidf("leave replicas and node selector out", "extender %s as a sidecar has a replica in each pod of its scheduler, and no other", name)
	case !o.Sidecar && o.Port != 0:
		return problem.Invalidf("leave the port out", "extender %s has pods of its own, where no port can be taken: a port is for a sidecar", name)
	case o.Port < 0 || o.Port > 65535 || o.Port > 0 && o.Port < 1024:
		return problem.Invalidf("use a port from 1024 to 65535", "extender %s cannot listen on port %d", name, o.Port)
	case o.Sidecar && len(o.Nodes) > 0:
		return problem.Invalidf("leave --sidecar out", "the default scheduler is a static pod, which takes no sidecar")
	case o.Call.BindVerb != "" && len(o.Nodes) > 0:
		return problem.Invalidf("let a scheduler of its own call it, with --for", "the default scheduler cannot show a certificate to extender %s, and without one nobody may have it bind pods", name)
	}
	if _, err := o.rules(); err != nil {
		return err
	}
	return manifest.ValidateName(name)
}

// neverStuck refuses an extender that would be asked about its own pods: once none of them runs, none could be scheduled again.
func (o Options) neverStuck() error {
	ignorable := o.Call.Ignorable != nil && *o.Call.Ignorable
	if len(o.Nodes) == 0 || ignorable || len(o.Call.ManagedResources) > 0 {
		return nil
	}
	return problem.Invalidf("set --ignorable=true, or limit the extender with managedResources in pmk-sched.yaml to pods that request a resource",
		"extender %s would be asked about its own pods: when none of them runs, the default scheduler could not schedule one", o.Call.Name)
}

// check judges what can be judged before the address is known, for the release that calls it.
func (o Options) check(release versions.Release) ([]profiles.Note, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := o.neverStuck(); err != nil {
		return nil, err
	}
	call := o.Call
	call.URLPrefix = manifest.SidecarURL(manifest.ExtenderPort) // any that is well formed
	return profiles.CheckExtenders(release, []profiles.Extender{call})
}

// rules collects what the policies need.
func (o Options) rules() ([]rbacv1.PolicyRule, error) {
	rules := slices.Clone(o.PluginRules)
	for _, policy := range o.Policies {
		needs := o.Rules[strings.ToLower(policy.Name)]
		if needs == nil {
			continue
		}
		needed, err := needs(policy)
		if err != nil {
			return nil, problem.Invalidf("`pmk-sched plugin list` names the arguments of shipped policies", "extender %s, policy %s: %s", o.Call.Name, policy.Name, err)
		}
		for _, rule := range needed {
			if !manifest.HasRule(rules, rule) {
				rules = append(rules, rule)
			}
		}
	}
	return rules, nil
}

// sidecarWiring is how a scheduler runs it in its own pod; the port is chosen with the scheduler's.
func (o Options) sidecarWiring() (manifest.Wiring, error) {
	rules, err := o.rules()
	if err != nil {
		return manifest.Wiring{}, err
	}
	call := o.Call
	call.EnableHTTPS, call.TLS = false, nil
	return manifest.Wiring{Extender: call, Sidecar: &manifest.Sidecar{
		Image: o.Image, PullPolicy: corev1.PullPolicy(o.PullPolicy), Policies: o.Policies, Rules: rules, Resources: o.Resources,
		Port: int32(o.Port),
	}}, nil
}
