package profiles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Unbatched is a profile whose pods the scheduler does not batch although its release can: it
// computes the results for each pod, and does not reuse them for identical ones.
type Unbatched struct {
	// Profile is the profile's scheduler name.
	Profile string
	// Reasons are clauses: "plugin Quiet does not sign pods".
	Reasons []string
}

// UnbatchedCost is a clause about the cost of pods that are not batched.
const UnbatchedCost = "each of many identical pods is filtered and scored on its own: with 5,000 nodes and 4,000 " +
	"pods at v1.37.1 the median pod waits 1.4 s, batched 0.6 to 1.0 s"

// String returns the profile with its reasons and the cost.
func (u Unbatched) String() string {
	return fmt.Sprintf("pods of profile %s are not batched: %s; %s", u.Profile, strings.Join(u.Reasons, ", "),
		UnbatchedCost)
}

// batchingGate is the feature gate with which a scheduler batches pods.
const batchingGate = "OpportunisticBatching"

// FindUnbatched returns the profiles of a configuration whose pods are not batched, with the
// reasons. plugins are the compiled-in plugins, and gates the feature gates that the flags of the
// scheduler set. The result is empty for releases that do not batch pods, and if the gate
// OpportunisticBatching is off: that was the user's decision.
func FindUnbatched(source []byte, release versions.Release, plugins []Plugin,
	gates map[string]bool) ([]Unbatched, error) {
	rules := release.Rules()
	if !rules.Batching {
		return nil, nil
	}
	if enabled, set := gates[batchingGate]; set && !enabled {
		return nil, nil
	}
	doc, err := schema.Read("configuration", source, false)
	if err != nil {
		return nil, fmt.Errorf("find profiles whose pods are not batched: %w", err)
	}
	var extenders []string
	for _, e := range node.Items(doc.Root, "extenders") {
		extenders = append(extenders, "extender "+node.Text(e, "urlPrefix")+" is called")
	}
	plugins = slices.Clone(plugins)
	for _, name := range rules.UnsignedPlugins {
		plugins = append(plugins, Plugin{Name: name, Points: signedPoints()})
	}
	api := doc.API.Of(release.Minor)
	var all []Unbatched
	for _, profile := range doc.Profiles() {
		reasons := append(slices.Clone(extenders), unsigned(profile, plugins, api)...)
		if len(reasons) > 0 {
			all = append(all, Unbatched{Profile: cmp.Or(node.Text(profile, "schedulerName"), schema.DefaultSchedulerName),
				Reasons: reasons})
		}
	}
	return all, nil
}

// signedPoints are the extension points whose results the scheduler reuses.
func signedPoints() []string { return []string{"preFilter", "filter", "preScore", "score"} }

// unsigned returns the reasons for which a profile's plugins prevent pod batching.
func unsigned(profile *yaml.Node, plugins []Plugin, api schema.API) []string {
	var reasons []string
	for _, p := range plugins {
		if !p.Signs && runsAt(node.Get(profile, "plugins"), p, signedPoints(), api) {
			reasons = append(reasons, "plugin "+p.Name+" does not sign pods")
		}
	}
	if p, known := schema.InTreeNamed(schema.PodTopologySpread); known &&
		runsAt(node.Get(profile, "plugins"), Plugin{Name: p.Name, Points: p.Points}, signedPoints(), api) &&
		hasDefaultConstraints(profile) {
		reasons = append(reasons,
			"plugin PodTopologySpread has default constraints (defaultingType: List without constraints removes them)")
	}
	return reasons
}

// runsAt reports whether a plugin runs at one of points in a profile.
func runsAt(plugins *yaml.Node, p Plugin, points []string, api schema.API) bool {
	everywhere := slices.Contains(schema.MergedPlugins(plugins, schema.MultiPoint, api), p.Name)
	return slices.ContainsFunc(points, func(point string) bool {
		return schema.Entry(plugins, point, "enabled", p.Name) != nil ||
			everywhere && slices.Contains(p.Points, point) && !schema.IsDisabled(plugins, point, p.Name)
	})
}

// hasDefaultConstraints reports whether PodTopologySpread applies constraints to pods without any.
// It then signs no pod (SignPod in pkg/scheduler/framework/plugins/podtopologyspread/plugin.go).
// Without arguments it uses the system's default constraints.
func hasDefaultConstraints(profile *yaml.Node) bool {
	args := node.Get(schema.ConfigOf(profile, schema.PodTopologySpread), "args")
	return node.Text(args, "defaultingType") != "List" || len(node.Items(args, "defaultConstraints")) > 0
}
