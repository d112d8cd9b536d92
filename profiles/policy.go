package profiles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/policy"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// RenderPolicy is [Render] for a scheduler that reads its predicates, priorities and extenders from
// a legacy Policy, 1.20–1.22. The accompanying configuration contains everything else: leader
// election, the client and, up to 1.21, the scheduler's name. A source that is a Policy is kept;
// any other is converted to a Policy, which is an [*Error] if no equivalent Policy exists. To prove
// equivalence, the Policy is converted back.
func RenderPolicy(r Request) (*Rendered, error) {
	if err := policyPossible(r, r.Release.Rules()); err != nil {
		return nil, err
	}
	written, err := load(&r)
	if err != nil {
		return nil, err
	}
	r.Lossy = r.Lossy || written.Policy // the Policy itself is kept
	out, err := Render(r)
	if err != nil {
		return nil, err
	}
	root, problem := schema.Decode(out.YAML)
	if problem != nil {
		return nil, schema.Problems{*problem}.Err("the rendered configuration")
	}
	legacy := node.Mapping("apiVersion", node.String(schema.ConfigGroup+"/v1"), "kind", node.String(schema.PolicyKind))
	if written.Policy {
		policy.CopyFields(legacy, written.Root)
		out.Notes = slices.DeleteFunc(out.Notes, func(n schema.Note) bool { return !n.Warning && n.Line > 0 })
	} else {
		err = writePolicy(legacy, root, r)
	}
	if err != nil {
		return nil, err
	}
	if _, extenders := node.Remove(root, "extenders"); extenders != nil {
		policy.WriteExtenders(extenders)
		node.Put(legacy, "extenders", extenders)
	}
	node.BlockStyle(legacy)
	node.Put(root, "profiles", &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq",
		Content: []*yaml.Node{node.Mapping("schedulerName", node.String(r.SchedulerName))}})
	if out.YAML, err = schema.Encode(root); err != nil {
		return nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	if out.Policy, err = schema.Encode(legacy); err != nil {
		return nil, fmt.Errorf("write scheduler policy: %w", err)
	}
	return out, nil
}

// policyPossible rejects requests that a Policy cannot fulfill.
func policyPossible(r Request, rules versions.Rules) error {
	const without = "omit --policy-configmap: a KubeSchedulerConfiguration can express the same"
	switch {
	case !rules.Policy:
		return schema.NewError(without, "%s does not read a Policy; the last release to do so was 1.22", r.Release)
	case !rules.PolicyNamed && r.SchedulerName != schema.DefaultSchedulerName:
		return schema.NewError(without+"; the default scheduler supports it (`pmk-sched replace --policy-configmap`)",
			"%s names every scheduler with a Policy %s, so it would compete with the default scheduler for pods, and no pod "+
				"could use %s", r.Release, schema.DefaultSchedulerName, r.SchedulerName)
	}
	for _, p := range r.Enable {
		if p.Enable == nil || len(p.Enable) > 0 {
			return schema.NewError(without, "plugin %s cannot be enabled in a Policy, which only supports in-tree plugins",
				p.Name)
		}
	}
	return nil
}

// writePolicy converts the only profile of a v1beta1 configuration to predicates and priorities,
// and proves that they are equivalent.
func writePolicy(legacy, configuration *yaml.Node, r Request) error {
	all := node.Items(configuration, "profiles")
	if len(all) != 1 {
		return &schema.Error{Name: r.SourceName, Problems: []schema.Problem{{
			Message: fmt.Sprintf("a Policy cannot have %d profiles", len(all)),
			Try:     "omit --policy-configmap",
		}}}
	}
	from, _ := schema.APINamed("v1beta1")
	s := policy.Writer{Profile: all[0], API: from.Of(r.Release.Minor)}
	s.Write(legacy)
	text, err := schema.Encode(legacy)
	if err != nil {
		return fmt.Errorf("write scheduler policy: %w", err)
	}
	back := r
	back.Preset, back.Source, back.SourceName, back.Extenders = "", text, "the Policy", nil
	carried, err := Render(back)
	if err != nil {
		return fmt.Errorf("read the Policy back: %w", err)
	}
	root, problem := schema.Decode(carried.YAML)
	if problem != nil {
		return schema.Problems{*problem}.Err("the converted Policy")
	}
	is := policy.SemanticsOf(node.Items(root, "profiles")[0], s.API)
	if lost := policy.SemanticsOf(s.Profile, s.API).Differences(is); len(lost) > 0 {
		return &schema.Error{Name: cmp.Or(r.SourceName, "preset "+r.Preset), Problems: []schema.Problem{{
			Message: "a Policy cannot express: " + strings.Join(lost, "; "),
			Try:     "omit --policy-configmap: " + r.Release.String() + " reads a KubeSchedulerConfiguration too",
		}}}
	}
	return nil
}
