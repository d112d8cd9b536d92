package spec

import (
	"cmp"
	"fmt"
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
	e, err := f.extender(s.flags.Name)
	if err != nil {
		return extenders.Options{}, err
	}
	return s.extenderOptions(e)
}

// extender returns the flags as an entry in spec.extenders.
func (f ExtenderFlags) extender(name string) (e v1alpha1.Extender, err error) {
	e = v1alpha1.Extender{
		Name: name, Image: f.Image, Sidecar: f.Sidecar, HTTPTimeout: v1alpha1.Duration(profiles.DefaultExtenderTimeout),
	}
	if f.Replicas != nil {
		if *f.Replicas < 1 {
			return e, problem.Invalidf("leave it out for 2", "invalid --replicas %d: must be at least 1", *f.Replicas)
		}
		e.Replicas = v1alpha1.AutoInt(*f.Replicas)
	}
	if e.Ignorable, err = parseIgnorable(f.Ignorable); err != nil {
		return e, err
	}
	policies, err := f.policies(name)
	for _, p := range policies {
		policy := v1alpha1.Policy{Name: p.Name, Weight: p.Weight}
		if len(p.Args) > 0 {
			args, err := yaml.Marshal(p.Args)
			if err != nil {
				return e, fmt.Errorf("extender %s: write the arguments of policy %s: %w", name, p.Name, err)
			}
			policy.Args = v1alpha1.Document(args)
		}
		e.Policies = append(e.Policies, policy)
	}
	return e, err
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

// extenderOptions returns the options for an entry in spec.extenders.
func (s *Spec) extenderOptions(e v1alpha1.Extender) (extenders.Options, error) {
	o := extenders.Options{
		Extender: e, Namespace: s.Namespace, Rules: policyRules(), PluginRules: slices.Clone(s.request.Spec.RBAC.Rules),
		Tolerations: s.request.Spec.PodTolerations(), PriorityClass: s.request.Spec.PriorityClassName,
		Version: s.flags.Version, Now: time.Now(),
	}
	o.Image = cmp.Or(e.Image, s.extenderImage())
	if e.EnableHTTPS != nil && *e.EnableHTTPS == e.Sidecar {
		return o, problem.Invalidf("remove enableHTTPS",
			"extender %s: pmk-sched deploys a Service with HTTPS, and a sidecar without", e.Name)
	}
	if t := e.TLSConfig; t != nil && (t.CA != v1alpha1.CAAuto || t.Insecure || t.ServerName+t.CertFile+t.KeyFile != "") {
		return o, problem.Invalidf("remove tlsConfig, or set ca: auto",
			"extender %s: pmk-sched creates the certificates of an extender that it deploys", e.Name)
	}
	for verb, path := range map[string]string{deploy.VerbFilter: e.FilterVerb, deploy.VerbPrioritize: e.PrioritizeVerb,
		deploy.VerbPreempt: e.PreemptVerb, deploy.VerbBind: e.BindVerb} {
		if path != "" && path != verb {
			return o, problem.Invalidf("write "+verb, "extender %s: pmk-extender does not serve %q", e.Name, path)
		}
	}
	return o, o.Validate()
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
