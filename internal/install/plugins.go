package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Rules says what a plugin with the given arguments, YAML or nothing, needs
// beyond the cluster's own roles for a scheduler. Its error is about arguments
// that the plugin itself would refuse.
type Rules func(args []byte) ([]rbacv1.PolicyRule, error)

// choosePluginRules collects what the enabled plugins need: by their own word,
// from the arguments that the rendered configuration gives them, and what the
// person lists.
func (p *planner) choosePluginRules() error {
	rules := slices.Clone(p.o.PluginRules)
	for _, name := range slices.Sorted(maps.Keys(p.o.Rules)) {
		profiles, err := p.plan.Scheduler.Configuration.Arguments(name)
		if err != nil {
			return err
		}
		for _, args := range profiles {
			needed, err := p.o.Rules[name](args)
			if err != nil {
				return invalidf("`pmk-sched plugin list` names the arguments of shipped plugins", "the configuration of plugin %s: %s", name, err)
			}
			for _, rule := range needed {
				if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return describeRule(r) == describeRule(rule) }) {
					rules = append(rules, rule)
					p.note("plugin %s may %s", name, describeRule(rule))
				}
			}
		}
	}
	p.plan.Scheduler.PluginRules = rules
	return nil
}

// describeRule says what a rule allows: "patch pods".
func describeRule(r rbacv1.PolicyRule) string {
	var what []string
	for _, resource := range r.Resources {
		for _, group := range r.APIGroups {
			what = append(what, strings.TrimSuffix(resource+"."+group, "."))
		}
	}
	what = append(what, r.NonResourceURLs...)
	text := strings.Join(r.Verbs, ", ") + " " + strings.Join(what, ", ")
	if len(r.ResourceNames) > 0 {
		text += fmt.Sprintf(" named %s", strings.Join(r.ResourceNames, ", "))
	}
	return text
}
