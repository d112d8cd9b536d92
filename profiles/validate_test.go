package profiles_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestValidate(t *testing.T) {
	const (
		v1beta1 = "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n"
		v1beta2 = "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n"
		v1beta3 = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
		v1      = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
		policy  = "apiVersion: v1\nkind: Policy\n"
	)
	scoring := func(text string) string {
		return v1 + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: " + text + "}}]}]\n"
	}
	spreading := func(api, text string) string {
		return api + "profiles: [{pluginConfig: [{name: PodTopologySpread, args: " + text + "}]}]\n"
	}
	results := transcript{}
	for _, c := range []struct {
		name, release, source string
		want                  string // in the only problem, or empty if the source is valid
	}{
		{"v1beta1 at 1.24", "v1.24.3", v1beta1, "1:13: v1.24.3 does not read v1beta1; it reads v1beta2 and v1beta3"},
		{"v1 at 1.24", "v1.24.3", v1, "does not read v1;"},
		{"Policy at 1.22", "v1.22.2", policy, ""},
		{"Policy at 1.23", "v1.23.17", policy, "does not read a Policy; the last release to do so was 1.22"},
		{"unknown predicate", "v1.22.2", policy + "predicates: [{name: HostNam}]\n", `3:21: unknown predicate "HostNam"`},
		{"unknown field", "v1.24.3", v1beta3 + "paralelism: 2\n", `3:1: unknown field "paralelism"`},
		{"a field of a later minor", "v1.25.4", v1 + "profiles: [{plugins: {preEnqueue: {}}}]\n",
			`field "profiles[0].plugins.preEnqueue" does not exist in v1`},
		{"what rendering repairs", "v1.24.3", v1beta3 + "profiles: [{schedulerName: x}]\nplugins: {}\n",
			`unknown field "plugins"`},
		{"unknown plugin", "v1.24.3", v1beta3 + "profiles: [{plugins: {score: {enabled: [{name: Foo}]}}}]\n",
			`plugin "Foo" does not exist in v1.24.3`},
		{"compiled in", "v1.24.3", v1beta3 + "profiles: [{plugins: {score: {enabled: [{name: MyPlugin}]}}}]\n", ""},
		{"removed plugin", "v1.36.3", v1 + "profiles: [{plugins: {filter: {enabled: [{name: NodeLabel}]}}}]\n",
			`plugin "NodeLabel" does not exist in v1.36.3`},
		{"default enabled again", "v1.22.2", v1beta1 + "profiles: [{plugins: {score: {enabled: [{name: ImageLocality}]}}}]\n",
			"ImageLocality is enabled twice under score"},
		{"default enabled again later", "v1.22.2",
			v1beta2 + "profiles: [{plugins: {score: {enabled: [{name: ImageLocality}]}}}]\n", ""},
		{"enabled twice", "v1.36.3",
			v1 + "profiles: [{plugins: {score: {enabled: [{name: ImageLocality}, {name: ImageLocality}]}}}]\n", "enabled twice"},
		{"extension point that is not implemented", "v1.24.3",
			v1beta3 + "profiles: [{plugins: {filter: {enabled: [{name: ImageLocality}]}}}]\n", "does not implement filter"},
		{"nothing binds", "v1.22.2", v1beta2 + "profiles: [{plugins: {bind: {disabled: [{name: DefaultBinder}]}}}]\n",
			"no bind plugin is enabled"},
		{"nothing sorts", "v1.22.2", v1beta2 + "profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]\n",
			"0 queueSort plugins"},
		{"queues differ", "v1.24.3",
			v1beta3 +
				"profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: MyPlugin}], disabled: " +
				"[{name: '*'}]}}}]\n", "queueSort differs"},
		{"two profiles without names", "v1.24.3", v1beta3 + "profiles: [{}, {schedulerName: b}]\n", "has no schedulerName"},
		{"two of a name", "v1.24.3", v1beta3 + "profiles: [{schedulerName: b}, {schedulerName: b}]\n",
			"two profiles are named"},
		{"old lock at start", "v1.24.3", v1beta3 + "leaderElection: {resourceLock: endpoints}\n",
			`invalid resourceLock "endpoints": v1.24.3 does not support it`},
		{"old lock without election", "v1.36.3", v1 + "leaderElection: {resourceLock: endpoints, leaderElect: false}\n", ""},
		{"short lease", "v1.36.3", v1 + "leaderElection: {leaseDuration: 5s}\n", "leaseDuration 5s is not longer"},
		{"long retries", "v1.36.3", v1 + "leaderElection: {retryPeriod: 9s}\n", "1.2 times retryPeriod 9s"},
		{"backoff", "v1.36.3", v1 + "podInitialBackoffSeconds: 20\n", "podMaxBackoffSeconds"},
		{"extender without weight", "v1.36.3", v1 + "extenders: [{urlPrefix: 'http://x', prioritizeVerb: p}]\n",
			"it has a prioritizeVerb, but no weight above 0"},
		{"two binders", "v1.36.3",
			v1 + "extenders: [{urlPrefix: 'http://x', bindVerb: b}, {urlPrefix: 'http://y', bindVerb: b}]\n",
			"it has a bindVerb, and so does"},
		{"a resource of Kubernetes", "v1.36.3",
			v1 + "extenders: [{urlPrefix: 'http://x', managedResources: [{name: cpu}]}]\n", "extended resource"},
		{"a resource twice", "v1.36.3",
			v1 + "extenders: [{urlPrefix: 'http://x', managedResources: [{name: a.b/c}, {name: a.b/c}]}]\n", "named twice"},
		{"unknown strategy", "v1.36.3", scoring("{type: Most}"), `unknown scoring strategy "Most"`},
		{"weights", "v1.36.3", scoring("{type: MostAllocated, resources: [{name: cpu}]}"), ""},
		{"no shape", "v1.36.3", scoring("{type: RequestedToCapacityRatio}"), "has no shape"},
		{"shape out of order", "v1.36.3",
			scoring(
				"{type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 5, score: 0}, {utilization: " +
					"1, score: 1}]}}"), "is not greater than"},
		{"constraints without a type", "v1.36.3",
			spreading(v1, "{defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}"),
			"defaultConstraints require defaultingType List"},
		{"the same in v1beta1", "v1.22.2",
			spreading(v1beta1, "{defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}"), ""},
		{"constraint of a later minor", "v1.22.2",
			spreading(v1beta2,
				"{defaultingType: List, defaultConstraints: [{maxSkew: 1, minDomains: 2, topologyKey: a, whenUnsatisfiable: "+
					"ScheduleAnyway}]}"), "minDomains"},
		{"a shape with another strategy", "v1.36.3",
			scoring("{type: MostAllocated, requestedToCapacityRatio: {shape: [{utilization: 0, score: 1}]}}"),
			"requires type RequestedToCapacityRatio"},
		{"weights without a limit", "v1.21.3",
			v1beta1 + "profiles: [{plugins: {score: {enabled: [{name: RequestedToCapacityRatio}]}}, pluginConfig: [{name: " +
				"RequestedToCapacityRatio, args: {shape: [{utilization: 0, score: 1}], resources: [{name: cpu, weight: 500}]}}]}]\n", ""},
		{"a weight is missing", "v1.21.3",
			v1beta1 + "profiles: [{plugins: {score: {enabled: [{name: RequestedToCapacityRatio}]}}, pluginConfig: [{name: " +
				"RequestedToCapacityRatio, args: {shape: [{utilization: 0, score: 1}], resources: [{name: cpu}]}}]}]\n",
			"invalid weight 0 of resource cpu"},
		{"two ways to score", "v1.22.2",
			v1beta1 + "profiles: [{plugins: {score: {enabled: [{name: NodeResourcesFit}]}}}]\n",
			"NodeResourcesFit and NodeResourcesLeastAllocated cannot both score"},
		{"arguments of a plugin that does not run, 1.21", "v1.21.3",
			v1beta1 + "profiles: [{pluginConfig: [{name: NodeLabel, args: {presentLabels: [a], absentLabels: [a]}}]}]\n", ""},
		{"arguments of a plugin that does not run, 1.22", "v1.22.2",
			v1beta1 + "profiles: [{pluginConfig: [{name: NodeLabel, args: {presentLabels: [a], absentLabels: [a]}}]}]\n",
			"both present and absent"},
		{"the shape of volumes", "v1.36.3",
			v1 + "profiles: [{pluginConfig: [{name: VolumeBinding, args: {shape: [{utilization: 0, score: 1}]}}]}]\n",
			"requires a feature gate"},
		{"the shape of volumes later", "v1.37.1",
			v1 + "profiles: [{pluginConfig: [{name: VolumeBinding, args: {shape: [{utilization: 0, score: 1}]}}]}]\n", ""},
		{"a timeout behind a gate", "v1.35.4",
			v1 + "profiles: [{pluginConfig: [{name: DynamicResources, args: {bindingTimeout: 60s}}]}]\n", "requires a feature gate"},
		{"a short timeout", "v1.36.3",
			v1 + "profiles: [{pluginConfig: [{name: DynamicResources, args: {bindingTimeout: 500ms}}]}]\n", "less than 1s"},
		{"queues that differ where both run the default", "v1.36.3",
			v1 + "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {disabled: [{name: Foo}]}}}]\n",
			"queueSort differs"},
		{"the same where defaults are merged", "v1.22.2",
			v1beta2 + "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {disabled: [{name: Foo}]}}}]\n", ""},
		{"the same where they are not", "v1.21.3",
			v1beta1 + "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {disabled: [{name: Foo}]}}}]\n",
			"queueSort differs"},
		{"two configurations", "v1.36.3", v1 + "profiles: [{pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]}]\n",
			"two entries"},
	} {
		v, err := profiles.Validate(profiles.ValidateRequest{Release: release(t, c.release), Source: []byte(c.source),
			SourceName: "f.yaml", Plugins: []string{"MyPlugin"}})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		// The warning without a line, about the kubeconfig, is the same for each.
		placed := slices.DeleteFunc(slices.Clone(v.Warnings), func(n profiles.Note) bool { return n.Line == 0 })
		results.add(c.name, v.Err(), placed, nil)
		t.Run(c.name, func(t *testing.T) {
			text := (&profiles.Error{Name: "f.yaml", Problems: v.Problems}).Error()
			switch {
			case c.want == "" && !v.Valid():
				t.Errorf("refused: %s", text)
			case c.want != "" && (len(v.Problems) != 1 || !strings.Contains(text, c.want)):
				t.Errorf("problems are %q, want the one with %q", text, c.want)
			}
		})
	}
	results.equal(t, "validate.txt")
}

// What the scheduler accepts and ignores is valid, with a warning.
func TestValidateWarnsAboutIgnoredSettings(t *testing.T) {
	const (
		v1beta2 = "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n" +
			"clientConnection: {kubeconfig: /k}\n"
		v1beta3 = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n" +
			"clientConnection: {kubeconfig: /k}\n"
	)
	results := transcript{}
	for name, c := range map[string]struct{ source, want string }{
		"nothing": {v1beta3, ""},
		"arguments without a name": {v1beta3 + "profiles: [{pluginConfig: [{args: {hardPodAffinityWeight: 10}}]}]\n",
			"f.yaml:4: profiles[0].pluginConfig[0] has no name: its arguments reach no plugin"},
		"arguments of a misspelt plugin": {v1beta3 + "profiles: [{pluginConfig: [{name: InterpodAfinity, args: {a: 1}}]}]\n",
			`f.yaml:4: pluginConfig: plugin "InterpodAfinity" does not exist in v1.24.3; its arguments have no effect; ` +
				"did you mean InterPodAffinity?"},
		"arguments of a plugin that is not compiled in": {v1beta3 + "profiles: [{pluginConfig: [{name: Other}]}]\n",
			"use --plugin Other"},
		"arguments of a removed plugin": {
			v1beta2 + "profiles: [{pluginConfig: [{name: NodeResourcesMostAllocated, args: {}}]}]\n",
			"use NodeResourcesFit with args.scoringStrategy.type MostAllocated"},
		"arguments of a plugin that is disabled": {
			v1beta3 + "profiles: [{plugins: {multiPoint: {disabled: [{name: NodePorts}, {name: InterPodAffinity}]}}, " +
				"pluginConfig: [{name: InterPodAffinity}]}]\n", "InterPodAffinity is not enabled in the profile"},
		"arguments of a compiled-in plugin that is not enabled": {
			v1beta3 + "profiles: [{pluginConfig: [{name: MyPlugin}]}]\n", "MyPlugin is not enabled in the profile"},
		"arguments of an enabled plugin": {
			v1beta3 + "profiles: [{plugins: {multiPoint: {enabled: [{name: MyPlugin}]}}, pluginConfig: [{name: MyPlugin}]}]\n", ""},
		"arguments of another version": {
			v1beta3 + "profiles: [{plugins: {filter: {enabled: [{name: MyPlugin}]}}, pluginConfig: [{name: MyPlugin, args: " +
				"{apiVersion: kubescheduler.config.k8s.io/v1beta2, kind: MyPluginArgs}}]}]\n",
			"args of plugin MyPlugin: apiVersion kubescheduler.config.k8s.io/v1beta2 in a v1beta3 file"},
		"a misspelt plugin is disabled": {v1beta3 + "profiles: [{plugins: {score: {disabled: [{name: ImageLocalty}]}}}]\n",
			`score.disabled: plugin "ImageLocalty" does not exist in v1.24.3; the line has no effect; did you mean ImageLocality?`},
		"a plugin is disabled where it does not run": {
			v1beta3 + "profiles: [{plugins: {filter: {disabled: [{name: ImageLocality}]}}}]\n",
			"filter.disabled: plugin ImageLocality does not implement filter in v1.24.3"},
		"a name is missing":          {v1beta3 + "profiles: [{plugins: {score: {disabled: [{weight: 1}]}}}]\n", "disables nothing"},
		"an empty item":              {v1beta3 + "extenders:\n- {urlPrefix: 'http://x'}\nprofiles:\n-\n", "profiles[0] is empty"},
		"multiPoint of v1beta2":      {v1beta2 + "profiles: [{plugins: {multiPoint: {enabled: [{name: A}]}}}]\n", "multiPoint has no effect"},
		"a weight of 0":              {v1beta3 + "profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: 0}]}}}]\n", "means 1"},
		"a weight of a filter":       {v1beta3 + "profiles: [{plugins: {filter: {enabled: [{name: NodeName, weight: 2}]}}}]\n", "no effect"},
		"a shape that is not used":   {v1beta3 + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {shape: [{utilization: 0, score: 1}]}}}}]}]\n", "no effect with type MostAllocated"},
		"no kubeconfig":              {strings.Replace(v1beta3, "/k", "''", 1), "clientConnection.kubeconfig is not set"},
		"an extender without a host": {v1beta3 + "extenders: [{urlPrefix: /filter, filterVerb: f, ignorable: true, nodeCacheCapable: true, httpTimeout: 1s}]\n", `invalid urlPrefix "/filter"`},
	} {
		v, err := profiles.Validate(profiles.ValidateRequest{Release: release(t, "v1.24.3"), Source: []byte(c.source),
			SourceName: "f.yaml", Plugins: []string{"MyPlugin"}})
		if err == nil {
			results.add(name, v.Err(), v.Warnings, nil)
		}
		t.Run(name, func(t *testing.T) {
			if err != nil || !v.Valid() {
				t.Fatalf("not valid: %v %v", err, v)
			}
			_, warnings := profiles.SplitNotes(v.Warnings, "f.yaml")
			if text := strings.Join(warnings, "\n"); c.want == "" && text != "" || !strings.Contains(text, c.want) {
				t.Errorf("warnings are\n%s\nwant\n%s", text, c.want)
			}
		})
	}
	results.equal(t, "validate-warnings.txt")
}

// A source that cannot be parsed is an error, not a problem.
func TestValidateRejectsMalformedSource(t *testing.T) {
	release := versions.Releases()[0]
	for _, source := range []string{"", "a: [", "kind: Pod\napiVersion: v1\n",
		"apiVersion: x/v1\nkind: KubeSchedulerConfiguration\n",
		"apiVersion: kubescheduler.config.k8s.io/v2\nkind: KubeSchedulerConfiguration\n"} {
		if v, err := profiles.Validate(profiles.ValidateRequest{Release: release, Source: []byte(source)}); err == nil {
			t.Errorf("%q: %+v", source, v)
		}
	}
}
