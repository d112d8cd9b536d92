package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/extenders"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler"
)

// extenderFlags describe one extender, and who calls it.
func extenderFlags() []cli.Flag {
	return []cli.Flag{
		extenderNameFlag(),
		&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of the extender's image, as the nodes see it", DefaultText: "the one that build --extender makes"},
		&cli.StringFlag{Name: "pull-policy", Usage: "`POLICY` for pulling the image: IfNotPresent, Always or Never"},
		&cli.StringSliceFlag{Name: "policy", Usage: "`NAME[=WEIGHT]` of a policy that it serves: see `pmk-sched plugin list`; can be repeated"},
		&cli.StringFlag{Name: "config", Usage: "`FILE` with policies and their arguments, as pmk-extender --config reads it"},
		&cli.StringFlag{Name: "prometheus", Usage: "`URL` of the Prometheus that the policy loadaware reads"},
		&cli.StringSliceFlag{Name: "verb", Usage: "`VERB` to ask it: filter, prioritize, preempt or bind; can be repeated", DefaultText: "filter and prioritize"},
		&cli.Int64Flag{Name: "weight", Value: 1, Usage: "`NUMBER` that multiplies its scores"},
		&cli.StringFlag{Name: "ignorable", Usage: "`true|false`: whether pods are scheduled without it where it does not answer; has to be said"},
		&cli.DurationFlag{Name: "http-timeout", Value: profiles.DefaultExtenderTimeout, Usage: "`DURATION` that a scheduler waits for an answer"},
		&cli.StringSliceFlag{Name: "managed-resource", Usage: "ask it only about pods that request the extended resource `NAME[=ignored]`; ignored: the scheduler itself does not look at it; can be repeated"},
		&cli.BoolFlag{Name: "sidecar", Usage: "run it in the scheduler's own pod, on its loopback"},
		&cli.IntFlag{Name: "port", Usage: "`PORT` of a sidecar", DefaultText: "1000 above the scheduler's"},
		&cli.IntFlag{Name: "replicas", Usage: "`NUMBER` of replicas", DefaultText: "2"},
		&cli.StringSliceFlag{Name: "node-selector", Usage: "run on nodes with the label `KEY=VALUE`; can be repeated"},
		&cli.StringSliceFlag{Name: "for", Usage: "wire it into the scheduler `[NAMESPACE/]NAME`; can be repeated"},
		&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "take the extender of --name from spec.extenders of `FILE` instead of flags"},
	}
}

// readExtenderOptions turns the flags, or an entry of a file, into what is to be deployed.
func readExtenderOptions(c *cli.Context) (extenders.Options, error) {
	if c.String("file") != "" {
		return extenderOfFile(c)
	}
	o := extenders.Options{
		Call: profiles.Extender{
			Name: c.String("name"), Weight: c.Int64("weight"), HTTPTimeout: c.Duration("http-timeout"),
		},
		Namespace: global(c, flagNamespace), Image: cmp.Or(c.String("image"), defaultExtenderImage()), PullPolicy: c.String("pull-policy"),
		Sidecar: c.Bool("sidecar"), Port: c.Int("port"), Replicas: c.Int("replicas"),
	}
	if c.IsSet("replicas") && o.Replicas < 1 {
		return o, usagef("leave it out for 2", "--replicas %d: at least one is needed", o.Replicas)
	}
	if o.Call.HTTPTimeout <= 0 {
		return o, usagef("", "--http-timeout %s: it has to be above 0", o.Call.HTTPTimeout)
	}
	for _, read := range []func(*cli.Context, *extenders.Options) error{readVerbs, readIgnorable, readManaged, readPolicies} {
		if err := read(c, &o); err != nil {
			return o, err
		}
	}
	var err error
	if o.NodeSelector, err = parseLabels("node-selector", c.StringSlice("node-selector")); err != nil {
		return o, err
	}
	o = completed(o)
	return o, o.Validate()
}

// completed adds what is the same for every extender.
func completed(o extenders.Options) extenders.Options {
	o.Rules, o.Version, o.Now = policyRules(), ownVersion(), time.Now()
	return o
}

func readVerbs(c *cli.Context, o *extenders.Options) error {
	verbs := firstList(c.StringSlice("verb"), []string{extenders.VerbFilter, extenders.VerbPrioritize})
	for _, verb := range verbs {
		switch verb {
		case extenders.VerbFilter:
			o.Call.FilterVerb = verb
		case extenders.VerbPrioritize:
			o.Call.PrioritizeVerb = verb
		case extenders.VerbPreempt:
			o.Call.PreemptVerb = verb
		case extenders.VerbBind:
			o.Call.BindVerb = verb
		default:
			return usagef("use filter, prioritize, preempt or bind", "unknown --verb %q", verb)
		}
	}
	if o.Call.PrioritizeVerb == "" {
		if c.IsSet("weight") {
			return usagef("add --verb prioritize", "--weight multiplies scores, and the extender is not asked for any")
		}
		o.Call.Weight = 0
	}
	return nil
}

func readIgnorable(c *cli.Context, o *extenders.Options) error {
	const hint = "--ignorable=true schedules pods without the extender where it does not answer, --ignorable=false lets them wait"
	if c.String("ignorable") == "" {
		return usagef(hint, "what is to happen to pods while extender %s does not answer?", o.Call.Name)
	}
	ignorable, err := strconv.ParseBool(c.String("ignorable"))
	if err != nil {
		return usagef(hint, "--ignorable %q is neither true nor false", c.String("ignorable"))
	}
	o.Call.Ignorable = &ignorable
	return nil
}

func readManaged(c *cli.Context, o *extenders.Options) error {
	for _, text := range c.StringSlice("managed-resource") {
		name, how, given := strings.Cut(text, "=")
		if given && how != "ignored" {
			return usagef("write NAME or NAME=ignored", "unknown --managed-resource %q", text)
		}
		o.Call.ManagedResources = append(o.Call.ManagedResources, profiles.ManagedResource{Name: name, IgnoredByScheduler: given})
	}
	return nil
}

// readPolicies reads --config, --policy and --prometheus, in that order.
func readPolicies(c *cli.Context, o *extenders.Options) (err error) {
	if o.Policies, err = policiesOfFile(c.String("config")); err != nil {
		return err
	}
	for _, text := range c.StringSlice("policy") {
		name, weight, given := strings.Cut(text, "=")
		policy := manifest.Policy{Name: name}
		if given {
			if policy.Weight, err = strconv.ParseInt(weight, 10, 64); err != nil || policy.Weight < 1 {
				return usagef("write it as NAME or NAME=2", "--policy %q: the weight is no number above 0", text)
			}
		}
		o.Policies = append(o.Policies, policy)
	}
	server := c.String("prometheus")
	if server == "" {
		return nil
	}
	at := slices.IndexFunc(o.Policies, func(p manifest.Policy) bool { return strings.EqualFold(p.Name, "loadaware") })
	if at < 0 {
		return usagef("add --policy loadaware", "--prometheus is for the policy loadaware, and extender %s does not serve it", o.Call.Name)
	}
	if o.Policies[at].Args["prometheus"] != nil {
		return usagef("", "give the Prometheus with --prometheus or in --config, not both")
	}
	args := map[string]any{"prometheus": map[string]any{"url": server}}
	for key, value := range o.Policies[at].Args {
		args[key] = value
	}
	o.Policies[at].Args = args
	return nil
}

// policiesOfFile reads the policies of a configuration of pmk-extender. What belongs to how it listens is decided by the deployment.
func policiesOfFile(name string) ([]manifest.Policy, error) {
	text, err := readFile("--config", name)
	if err != nil || text == nil {
		return nil, err
	}
	var file struct {
		APIVersion   string            `json:"apiVersion"`
		Kind         string            `json:"kind"`
		Policies     []manifest.Policy `json:"policies"`
		Listen       string            `json:"listen"`
		TLS          map[string]any    `json:"tls"`
		MaxBodyBytes int64             `json:"maxBodyBytes"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, usagef("", "read --config %s: %s", name, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
	}
	switch {
	case file.APIVersion != fileAPIVersion || file.Kind != "Extender":
		return nil, usagef(fmt.Sprintf("it begins with apiVersion: %s and kind: Extender", fileAPIVersion), "read --config %s: it is %s %q", name, file.APIVersion, file.Kind)
	case file.Listen != "" || file.TLS != nil || file.MaxBodyBytes != 0:
		return nil, usagef("leave them out", "read --config %s: listen, tls and maxBodyBytes are set by the deployment", name)
	}
	return file.Policies, nil
}

// policyRules says of each shipped policy what it needs, by its name in small letters.
func policyRules() map[string]func(manifest.Policy) ([]rbacv1.PolicyRule, error) {
	rules := map[string]func(manifest.Policy) ([]rbacv1.PolicyRule, error){}
	for name, declared := range shippedRules {
		rules[name] = func(p manifest.Policy) ([]rbacv1.PolicyRule, error) {
			if len(p.Args) == 0 {
				return declared(scheduler.NewArguments(nil))
			}
			args, err := yaml.Marshal(p.Args)
			if err != nil {
				return nil, err
			}
			return declared(scheduler.NewArguments(args))
		}
	}
	return rules
}

// options is what an entry of spec.extenders asks for.
func (e extenderEntry) options(f *customScheduler, namespace string) (extenders.Options, error) {
	o := extenders.Options{
		Call: e.extender(), Namespace: namespace, Image: cmp.Or(e.Image, defaultExtenderImage()), PullPolicy: e.PullPolicy,
		Sidecar: e.Sidecar, Port: int(e.Port), Replicas: int(e.Replicas),
	}
	o.Call.EnableHTTPS, o.Call.TLS = false, nil
	if e.EnableHTTPS != nil && *e.EnableHTTPS == e.Sidecar {
		return o, usagef("leave enableHTTPS out", "extender %s: pmk-sched deploys a Service with HTTPS, and a sidecar without", e.Name)
	}
	if t := e.TLSConfig; t != nil && *t != (extenderTLSEntry{CA: caAuto}) {
		return o, usagef("leave tlsConfig out, or write ca: auto", "extender %s: its certificates are made by pmk-sched", e.Name)
	}
	if e.FilterVerb+e.PrioritizeVerb+e.PreemptVerb+e.BindVerb == "" {
		o.Call.FilterVerb, o.Call.PrioritizeVerb = extenders.VerbFilter, extenders.VerbPrioritize
	}
	if o.Call.PrioritizeVerb != "" {
		o.Call.Weight = cmp.Or(o.Call.Weight, 1)
	}
	for verb, path := range map[string]string{extenders.VerbFilter: e.FilterVerb, extenders.VerbPrioritize: e.PrioritizeVerb, extenders.VerbPreempt: e.PreemptVerb, extenders.VerbBind: e.BindVerb} {
		if path != "" && path != verb {
			return o, usagef("write "+verb, "extender %s: pmk-extender does not answer at %q", e.Name, path)
		}
	}
	for _, p := range e.Policies {
		policy := manifest.Policy{Name: p.Name, Weight: p.Weight}
		if !p.Args.IsZero() {
			if err := p.Args.Decode(&policy.Args); err != nil {
				return o, usagef("", "extender %s: line %d: the arguments of policy %s are no mapping", e.Name, p.Args.Line, p.Name)
			}
		}
		o.Policies = append(o.Policies, policy)
	}
	var err error
	if o.PluginRules, err = f.rules(); err != nil {
		return o, err
	}
	o = completed(o)
	return o, o.Validate()
}

// extenderOfFile finds the extender of --name in a file; without --name the only one.
func extenderOfFile(c *cli.Context) (extenders.Options, error) {
	for _, flag := range extenderFlags() {
		if name := flag.Names()[0]; c.IsSet(name) && !slices.Contains([]string{"name", "for", "file"}, name) {
			return extenders.Options{}, usagef("write it into the file", "--%s is given, and the extender comes from %s", name, c.String("file"))
		}
	}
	f, err := readCustomScheduler(c.String("file"))
	if err != nil {
		return extenders.Options{}, err
	}
	var names []string
	for _, e := range f.deployedExtenders() {
		names = append(names, e.Name)
		if e.Name == c.String("name") || c.String("name") == "" && len(f.deployedExtenders()) == 1 {
			return e.options(f, namespaceOf(c, f))
		}
	}
	return extenders.Options{}, usagef("name one with --name: "+strings.Join(names, ", "), "%s has no extender %q that pmk-sched deploys", c.String("file"), c.String("name"))
}
