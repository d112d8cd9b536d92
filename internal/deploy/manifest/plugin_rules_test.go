package manifest_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// may returns a rule for one resource.
func may(verb, group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
}

func TestRulesAreDescribed(t *testing.T) {
	named := may("get", "", "secrets")
	named.ResourceNames = []string{"a", "b"}
	for want, rule := range map[string]rbacv1.PolicyRule{
		"patch pods": may("patch", "", "pods"),
		"get, list nodes, nodes.metrics.k8s.io, pods, pods.metrics.k8s.io": {APIGroups: []string{"", "metrics.k8s.io"},
			Resources: []string{"nodes", "pods"}, Verbs: []string{"get", "list"}},
		"get secrets named a, b": named,
		"get /healthz, /metrics": {NonResourceURLs: []string{"/healthz", "/metrics"}, Verbs: []string{"get"}},
	} {
		if got := manifest.DescribeRule(rule); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPluginRulesAreThoseOfTheEnabledPlugins(t *testing.T) {
	const source = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: A}, {name: B}]}}
  pluginConfig: [{name: A, args: {x: 1}}]
`
	rendered, err := profiles.Render(profiles.Request{Release: versions.Release{Major: 1, Minor: 29, Patch: 2},
		SchedulerName: "s", Kubeconfig: "/k", Source: []byte(source), Plugins: []string{"A", "B"}})
	if err != nil {
		t.Fatal(err)
	}
	granted := []rbacv1.PolicyRule{may("get", "", "granted")}
	var args []string
	needs := map[string]manifest.RulesFunc{
		"A": func(a []byte) ([]rbacv1.PolicyRule, error) {
			args = append(args, string(a))
			return []rbacv1.PolicyRule{granted[0], may("list", "metrics.k8s.io", "nodes"), may("patch", "", "pods")}, nil
		},
		"B": func([]byte) ([]rbacv1.PolicyRule, error) {
			return []rbacv1.PolicyRule{may("patch", "", "pods"), may("watch", "", "pods")}, nil
		},
		"C": func([]byte) ([]rbacv1.PolicyRule, error) { return nil, errors.New("it is not enabled") },
	}
	rules, notes, err := manifest.PluginRules(rendered, needs, granted)
	if err != nil {
		t.Fatal(err)
	}
	wantRules := []rbacv1.PolicyRule{granted[0], may("list", "metrics.k8s.io", "nodes"), may("patch", "", "pods"),
		may("watch", "", "pods")}
	if diff := cmp.Diff(wantRules, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	wantNotes := []string{"plugin A may list nodes.metrics.k8s.io", "plugin A may patch pods", "plugin B may watch pods"}
	if !slices.Equal(notes, wantNotes) || !slices.Equal(args, []string{"{x: 1}\n"}) {
		t.Errorf("notes %q, arguments %q", notes, args)
	}
	if len(granted) != 1 {
		t.Errorf("the granted rules have changed: %v", granted)
	}

	needs["B"] = func([]byte) ([]rbacv1.PolicyRule, error) { return nil, errors.New("unknown field y") }
	rules, notes, err = manifest.PluginRules(rendered, needs, nil)
	const want = "configuration of plugin B: unknown field y"
	if rules != nil || notes != nil || !problem.IsInvalid(err) || err.Error() != want {
		t.Errorf("got %v, %v, %v", rules, notes, err)
	}
	unreadable := &profiles.Rendered{YAML: []byte("{")}
	if _, _, err := manifest.PluginRules(unreadable, needs, nil); err == nil {
		t.Error("no error for a configuration that is no YAML")
	}
}
