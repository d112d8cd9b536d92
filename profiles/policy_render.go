package profiles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/versions"
)

// policyNamed is the last minor in which a scheduler with a Policy has the name
// that its configuration says: 1.22 calls it default-scheduler
// (createFromPolicy in pkg/scheduler/factory.go).
const policyNamed = 21

// RenderPolicy is Render for a scheduler that reads its predicates, priorities and
// extenders from a legacy Policy, 1.20–1.22. The configuration beside it has all
// else: leader election, the client and, up to 1.21, the scheduler's name. A source
// that is a Policy keeps its words; any other is said as a Policy, which is an
// [*Error] where none means the same. Whether it does is proved by carrying the
// Policy back.
func RenderPolicy(r Request) (*Rendered, error) {
	rules, _, err := versions.Select(r.Release)
	if err != nil {
		return nil, fmt.Errorf("render scheduler policy: %w", err)
	}
	if err := policyPossible(r, rules); err != nil {
		return nil, err
	}
	written, err := load(&r)
	if err != nil {
		return nil, err
	}
	r.Lossy = r.Lossy || written.policy // nothing of it is carried elsewhere
	out, err := Render(r)
	if err != nil {
		return nil, err
	}
	root, problem := decode(out.YAML)
	if problem != nil {
		return nil, problems{*problem}.err("the rendered configuration")
	}
	policy := mapping("apiVersion", str(configGroup+"/v1"), "kind", str(policyKind))
	if written.policy {
		keepPolicy(policy, written.root)
		out.Notes = slices.DeleteFunc(out.Notes, func(n Note) bool { return !n.Warning && n.Line > 0 })
	} else {
		err = sayAsPolicy(policy, root, r)
	}
	if err != nil {
		return nil, err
	}
	if _, extenders := remove(root, "extenders"); extenders != nil {
		toLegacyExtenders(extenders)
		put(policy, "extenders", extenders)
	}
	blockStyle(policy)
	put(root, "profiles", &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{mapping("schedulerName", str(r.SchedulerName))}})
	if out.YAML, err = encode(root); err != nil {
		return nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	if out.Policy, err = encode(policy); err != nil {
		return nil, fmt.Errorf("write scheduler policy: %w", err)
	}
	return out, nil
}

// policyPossible refuses what no Policy can be for.
func policyPossible(r Request, rules versions.Rules) error {
	fail := func(try, format string, args ...any) error {
		return &Error{Problems: []Problem{{Message: fmt.Sprintf(format, args...), Try: try}}}
	}
	const without = "leave --policy-configmap out: a KubeSchedulerConfiguration says the same"
	switch {
	case !rules.Policy:
		return fail(without, "%s does not read a Policy; 1.22 was the last to", r.Release)
	case r.Release.Minor > policyNamed && r.SchedulerName != defaultScheduler:
		return fail(without+"; the default scheduler itself takes one (`pmk-sched replace --policy-configmap`)", "%s names every scheduler with a Policy %s, so it would fight the cluster's own for the same pods, and no pod could ask for %s", r.Release, defaultScheduler, r.SchedulerName)
	}
	for _, p := range r.Enable {
		if p.Enable == nil || len(p.Enable) > 0 {
			return fail(without, "plugin %s cannot be enabled in a Policy, which knows in-tree plugins only", p.Name)
		}
	}
	return nil
}

// keepPolicy takes over what a Policy says of predicates and priorities.
func keepPolicy(policy, source *yaml.Node) {
	for _, name := range []string{"predicates", "priorities", "hardPodAffinitySymmetricWeight", "alwaysCheckAllPredicates"} {
		if key, value := lookup(source, name); key != nil {
			policy.Content = append(policy.Content, key, value)
		}
	}
}

// toLegacyExtenders spells the extenders' fields as a Policy does.
func toLegacyExtenders(extenders *yaml.Node) {
	for _, e := range items(extenders) {
		if key, _ := lookup(e, "enableHTTPS"); key != nil {
			key.Value = "enableHttps"
		}
		if _, value := lookup(e, "httpTimeout"); !isNull(value) {
			put(e, "httpTimeout", integer(int(readTimeout(value))))
		}
	}
}

// sayAsPolicy says the only profile of a v1beta1 configuration as predicates and
// priorities, and proves that they mean the same.
func sayAsPolicy(policy, configuration *yaml.Node, r Request) error {
	all := items(get(configuration, "profiles"))
	if len(all) != 1 {
		return &Error{Name: r.SourceName, Problems: []Problem{{
			Message: fmt.Sprintf("%d profiles cannot be said in a Policy, which has one", len(all)),
			Try:     "leave --policy-configmap out",
		}}}
	}
	from, _ := apiNamed("v1beta1")
	s := saying{profile: all[0], api: from.of(r.Release.Minor)}
	s.write(policy)
	text, err := encode(policy)
	if err != nil {
		return fmt.Errorf("write scheduler policy: %w", err)
	}
	back := r
	back.Preset, back.Source, back.SourceName, back.Extenders = "", text, "the Policy", nil
	carried, err := Render(back)
	if err != nil {
		return fmt.Errorf("read the Policy back: %w", err)
	}
	root, problem := decode(carried.YAML)
	if problem != nil {
		return problems{*problem}.err("the Policy, carried back")
	}
	is := meaningOf(items(get(root, "profiles"))[0], s.api)
	if lost := meaningOf(s.profile, s.api).without(is); len(lost) > 0 {
		return &Error{Name: cmp.Or(r.SourceName, "preset "+r.Preset), Problems: []Problem{{
			Message: "this cannot be said in a Policy: " + strings.Join(lost, "; "),
			Try:     "leave --policy-configmap out: " + r.Release.String() + " reads a KubeSchedulerConfiguration too",
		}}}
	}
	return nil
}
