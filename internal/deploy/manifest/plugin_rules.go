package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// RulesFunc returns the RBAC rules that a plugin with the given arguments (YAML or nil) needs in
// addition to the cluster's roles for a scheduler. It fails for arguments that the plugin refuses.
type RulesFunc = func(args []byte) ([]rbacv1.PolicyRule, error)

// PluginRules returns the rules that the enabled plugins need with the arguments in the
// configuration, in addition to granted. The notes describe the rules for each plugin.
func PluginRules(configuration *profiles.Rendered, needs map[string]RulesFunc,
	granted []rbacv1.PolicyRule) (rules []rbacv1.PolicyRule, notes []string, err error) {
	rules = slices.Clone(granted)
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		arguments, err := configuration.Arguments(name)
		if err != nil {
			return nil, nil, err
		}
		for _, args := range arguments {
			needed, err := needs[name](args)
			if err != nil {
				return nil, nil, problem.Invalidf("`pmk-sched plugin list` lists the arguments of bundled plugins",
					"configuration of plugin %s: %s", name, err)
			}
			for _, rule := range needed {
				if HasRule(rules, rule) {
					continue
				}
				rules = append(rules, rule)
				notes = append(notes, fmt.Sprintf("plugin %s may %s", name, DescribeRule(rule)))
			}
		}
	}
	return rules, notes, nil
}

// HasRule reports whether rule is among rules.
func HasRule(rules []rbacv1.PolicyRule, rule rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return DescribeRule(r) == DescribeRule(rule) })
}

// DescribeRule describes a rule's permissions: "patch pods".
func DescribeRule(r rbacv1.PolicyRule) string {
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
