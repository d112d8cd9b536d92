package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// ExtenderFlags are the flags that describe an extender. Rarer settings are in the file only.
type ExtenderFlags struct {
	Image      string
	Policies   []string
	Config     string
	Prometheus string
	Ignorable  string
	Sidecar    bool
	Replicas   *int
	// Set are the names of the flags that were given.
	Set []string
}

// Extenders returns the extenders that are deployed with the scheduler.
func (s *Spec) Extenders() ([]extenders.Options, error) {
	var list []extenders.Options
	for _, e := range deployedExtenders(s.request) {
		o, err := s.extenderOptions(e)
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}

// Extender returns the extender that the flags describe. If a file is given, it returns the
// extender in the file that --name names.
func (s *Spec) Extender(f ExtenderFlags) (extenders.Options, error) {
	if s.flags.File != "" {
		return s.extenderOfFile(f)
	}
	o := extenders.Options{
		Call:      profiles.Extender{Name: s.flags.Name, Weight: 1, HTTPTimeout: profiles.DefaultExtenderTimeout},
		Namespace: s.Namespace, Image: cmp.Or(f.Image, s.extenderImage()), Sidecar: f.Sidecar,
	}
	o.Call.FilterVerb, o.Call.PrioritizeVerb = extenders.VerbFilter, extenders.VerbPrioritize
	if f.Replicas != nil {
		if o.Replicas = *f.Replicas; o.Replicas < 1 {
			return o, problem.Invalidf("leave it out for 2", "invalid --replicas %d: must be at least 1", o.Replicas)
		}
	}
	var err error
	if o.Call.Ignorable, err = parseIgnorable(f.Ignorable); err != nil {
		return o, err
	}
	if o.Policies, err = f.policies(o.Call.Name); err != nil {
		return o, err
	}
	o = s.completeExtender(o)
	return o, o.Validate()
}

// extenderOfFile returns the extender for --name in the file; without --name the only one.
func (s *Spec) extenderOfFile(f ExtenderFlags) (extenders.Options, error) {
	const hint = "set it in the file instead of --%s"
	if err := excluded(f.Set, "file", hint, "image", "policy", "config", "prometheus", "ignorable", "sidecar",
		"replicas"); err != nil {
		return extenders.Options{}, err
	}
	var names []string
	deployed := deployedExtenders(s.request)
	for _, e := range deployed {
		names = append(names, e.Name)
		if e.Name == s.flags.Name || s.flags.Name == "" && len(deployed) == 1 {
			return s.extenderOptions(e)
		}
	}
	return extenders.Options{}, problem.Invalidf("set --name to one of "+strings.Join(names, ", "),
		"%s has no extender %q that pmk-sched deploys", s.flags.File, s.flags.Name)
}

// extenderOptions returns the extender for an entry in spec.extenders.
func (s *Spec) extenderOptions(e v1alpha1.Extender) (extenders.Options, error) {
	o := extenders.Options{
		Call: deploy.CallOf(e), Namespace: s.Namespace, Image: cmp.Or(e.Image, s.extenderImage()), PullPolicy: e.PullPolicy,
		Sidecar: e.Sidecar, Port: int(e.Port), Replicas: int(e.Replicas), NodeSelector: maps.Clone(e.NodeSelector),
	}
	o.Call.EnableHTTPS, o.Call.TLS = false, nil
	if e.EnableHTTPS != nil && *e.EnableHTTPS == e.Sidecar {
		return o, problem.Invalidf("remove enableHTTPS",
			"extender %s: pmk-sched deploys a Service with HTTPS, and a sidecar without", e.Name)
	}
	if t := e.TLSConfig; t != nil && (t.CA != v1alpha1.CAAuto || t.Insecure || t.ServerName+t.CertFile+t.KeyFile != "") {
		return o, problem.Invalidf("remove tlsConfig, or set ca: auto",
			"extender %s: pmk-sched creates the certificates of an extender that it deploys", e.Name)
	}
	if e.FilterVerb+e.PrioritizeVerb+e.PreemptVerb+e.BindVerb == "" {
		o.Call.FilterVerb, o.Call.PrioritizeVerb = extenders.VerbFilter, extenders.VerbPrioritize
	}
	if o.Call.PrioritizeVerb != "" {
		o.Call.Weight = cmp.Or(o.Call.Weight, 1)
	}
	for verb, path := range map[string]string{extenders.VerbFilter: e.FilterVerb,
		extenders.VerbPrioritize: e.PrioritizeVerb, extenders.VerbPreempt: e.PreemptVerb, extenders.VerbBind: e.BindVerb} {
		if path != "" && path != verb {
			return o, problem.Invalidf("write "+verb, "extender %s: pmk-extender does not serve %q", e.Name, path)
		}
	}
	for _, p := range e.Policies {
		policy := manifest.Policy{Name: p.Name, Weight: p.Weight}
		if err := yaml.Unmarshal([]byte(p.Args), &policy.Args); err != nil {
			return o, problem.Invalidf("", "extender %s: the arguments of policy %s must be a mapping", e.Name, p.Name)
		}
		o.Policies = append(o.Policies, policy)
	}
	o.PluginRules = slices.Clone(s.request.Spec.RBAC.Rules)
	o = s.completeExtender(o)
	return o, o.Validate()
}

// completeExtender adds the options that are the same for every extender.
func (s *Spec) completeExtender(o extenders.Options) extenders.Options {
	o.Rules, o.Version, o.Now = policyRules(), s.flags.Version, time.Now()
	o.Tolerations, o.PriorityClass = s.request.Spec.PodTolerations(), s.request.Spec.PriorityClassName
	if o.Call.NodeCacheCapable == nil { // pmk-extender has a cache of nodes
		cached := true
		o.Call.NodeCacheCapable = &cached
	}
	return o
}

// extenderImage is the image that `build extender` makes by default. A tag cannot have a
// version's plus sign.
func (s *Spec) extenderImage() string {
	return "localhost/" + build.PmkExtender + ":" + strings.ReplaceAll(s.flags.Version, "+", "-")
}

func parseIgnorable(value string) (*bool, error) {
	const hint = "--ignorable=true schedules pods while the extender is unavailable, --ignorable=false keeps them pending"
	if value == "" {
		return nil, problem.Invalidf(hint, "--ignorable is required")
	}
	ignorable, err := strconv.ParseBool(value)
	if err != nil {
		return nil, problem.Invalidf(hint, "invalid --ignorable %q: must be true or false", value)
	}
	return &ignorable, nil
}

// policies reads --config, --policy and --prometheus, in that order.
func (f ExtenderFlags) policies(extender string) ([]manifest.Policy, error) {
	policies, err := readPolicies(f.Config)
	if err != nil {
		return nil, err
	}
	for _, text := range f.Policies {
		name, weight, given := strings.Cut(text, "=")
		policy := manifest.Policy{Name: name}
		if given {
			if policy.Weight, err = strconv.ParseInt(weight, 10, 64); err != nil || policy.Weight < 1 {
				return nil, problem.Invalidf("write NAME or NAME=2", "invalid --policy %q: the weight must be a number above 0",
					text)
			}
		}
		policies = append(policies, policy)
	}
	if f.Prometheus == "" {
		return policies, nil
	}
	at := slices.IndexFunc(policies, func(p manifest.Policy) bool { return strings.EqualFold(p.Name, "loadaware") })
	if at < 0 {
		return nil, problem.Invalidf("add --policy loadaware",
			"--prometheus requires the policy loadaware, which extender %s does not serve", extender)
	}
	if policies[at].Args["prometheus"] != nil {
		return nil, problem.Invalidf("", "--prometheus is set in --config too")
	}
	args := map[string]any{"prometheus": map[string]any{"url": f.Prometheus}}
	for key, value := range policies[at].Args {
		args[key] = value
	}
	policies[at].Args = args
	return policies, nil
}

// readPolicies reads the policies in a pmk-extender configuration. The deployment decides how it
// listens.
func readPolicies(name string) ([]manifest.Policy, error) {
	text, err := problem.ReadFile("--config", name)
	if err != nil || text == nil {
		return nil, err
	}
	var file struct {
		APIVersion       string            `json:"apiVersion"`
		Kind             string            `json:"kind"`
		Policies         []manifest.Policy `json:"policies"`
		Verbs            []string          `json:"verbs"`
		Listen           string            `json:"listen"`
		TLS              map[string]any    `json:"tls"`
		NodeCacheCapable *bool             `json:"nodeCacheCapable"`
		MaxBodyBytes     int64             `json:"maxBodyBytes"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, problem.Invalidf("", "read --config %s: %s", name,
			strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
	}
	switch {
	case file.APIVersion != v1alpha1.APIVersion || file.Kind != "Extender":
		return nil, problem.Invalidf(fmt.Sprintf("start the file with apiVersion: %s and kind: Extender",
			v1alpha1.APIVersion), "read --config %s: expected an Extender, got %s %q", name, file.APIVersion, file.Kind)
	case file.Listen != "" || file.TLS != nil || file.Verbs != nil || file.NodeCacheCapable != nil ||
		file.MaxBodyBytes != 0:
		return nil, problem.Invalidf("remove them",
			"read --config %s: listen, tls, verbs, nodeCacheCapable and maxBodyBytes are set by the deployment", name)
	}
	return file.Policies, nil
}

// policyRules returns the permissions that each bundled policy needs, by its lower-case name.
func policyRules() map[string]func(manifest.Policy) ([]rbacv1.PolicyRule, error) {
	rules := map[string]func(manifest.Policy) ([]rbacv1.PolicyRule, error){}
	for name, declared := range pack.DeclaredRules() {
		rules[name] = func(p manifest.Policy) ([]rbacv1.PolicyRule, error) {
			if len(p.Args) == 0 {
				return declared(nil)
			}
			args, err := yaml.Marshal(p.Args)
			if err != nil {
				return nil, err
			}
			return declared(args)
		}
	}
	return rules
}
