package versions

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func selected(t *testing.T, release string) Rules {
	t.Helper()
	r, err := FromServer(release)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := Select(r)
	if err != nil {
		t.Fatalf("Select(%s): %v", release, err)
	}
	return rules
}

// Every row has a fact for a range and its neighbor, so that both sides of each edge are tested,
// each with a suffix that must not matter.
func TestSelectOnBothSidesOfEveryEdge(t *testing.T) {
	type span struct {
		from, to int // minors, both included
		want     string
	}
	list := func(s ...string) string { return strings.Join(s, " ") }
	yes := func(b bool) string {
		if b {
			return "yes"
		}
		return "no"
	}
	for _, tc := range []struct {
		name  string
		get   func(Rules) string
		spans []span
	}{
		{"accepted", func(r Rules) string { return list(r.Accepted...) }, []span{
			{20, 21, ConfigV1beta1},
			{22, 22, list(ConfigV1beta1, ConfigV1beta2)},
			{23, 24, list(ConfigV1beta2, ConfigV1beta3)},
			{25, 27, list(ConfigV1beta2, ConfigV1beta3, ConfigV1)},
			{28, 28, list(ConfigV1beta3, ConfigV1)},
			{29, 37, ConfigV1},
		}},
		{"preferred", func(r Rules) string { return r.Preferred },
			[]span{{20, 21, ConfigV1beta1}, {22, 22, ConfigV1beta2}, {23, 24, ConfigV1beta3}, {25, 37, ConfigV1}}},
		{"render", func(r Rules) string { return r.Render },
			[]span{{20, 22, ConfigV1beta1}, {23, 24, ConfigV1beta3}, {25, 37, ConfigV1}}},
		{"batching", func(r Rules) string { return yes(r.Batching) }, []span{{20, 34, "no"}, {35, 37, "yes"}}},
		{"unsigned plugins", func(r Rules) string { return list(r.UnsignedPlugins...) }, []span{
			{20, 36, ""}, {37, 37, "DeferredPodScheduling"}}},
		{"gangs", func(r Rules) string { return strings.TrimSpace(r.Gangs.API + " " + r.Gangs.Resource) }, []span{
			{20, 34, ""}, {35, 35, "scheduling.k8s.io/v1alpha1 workloads"}, {36, 36,
				"scheduling.k8s.io/v1alpha2 podgroups"}, {37, 37, "scheduling.k8s.io/v1beta1 podgroups"},
		}},
		{"gates of gangs", func(r Rules) string { return list(r.Gangs.Gates...) }, []span{
			{20, 34, ""}, {35, 36, "GenericWorkload GangScheduling"}, {37, 37, "GenericWorkload"}}},
		{"policy", func(r Rules) string { return yes(r.Policy) }, []span{{20, 22, "yes"}, {23, 37, "no"}}},
		{"liveness", func(r Rules) string { return r.LivenessPath }, []span{{20, 30, "/healthz"}, {31, 37, "/livez"}}},
		{"readiness", func(r Rules) string { return r.ReadinessPath }, []span{{20, 30, "/healthz"}, {31, 37, "/readyz"}}},
		{"insecure port", func(r Rules) string { return yes(r.InsecurePort) }, []span{{20, 22, "yes"}, {23, 37, "no"}}},
		{"metric of attempts", func(r Rules) string { return r.Metrics.AttemptDuration },
			[]span{{20, 22, "scheduler_e2e_scheduling_duration_seconds"},
				{23, 37, "scheduler_scheduling_attempt_duration_seconds"}}},
		{"metric of pods", func(r Rules) string { return r.Metrics.PodDuration },
			[]span{{20, 28, "scheduler_pod_scheduling_duration_seconds"},
				{29, 37, "scheduler_pod_scheduling_sli_duration_seconds"}}},
		{"metric of plugins", func(r Rules) string { return r.Metrics.UnschedulablePods }, []span{
			{20, 23, ""}, {24, 37, "scheduler_unschedulable_pods"}}},
		{"leader election flags", func(r Rules) string { return yes(r.LeaderElectFlagsWithConfig) },
			[]span{{20, 21, "no"}, {22, 37, "yes"}}},
		{"coordinated leader election", func(r Rules) string { return yes(r.CoordinatedLeaderElection) },
			[]span{{20, 30, "no"}, {31, 37, "yes"}}},
		{"component-base cli", func(r Rules) string { return yes(r.ComponentBaseCLI) }, []span{
			{20, 22, "no"}, {23, 37, "yes"}}},
		{"json logs", func(r Rules) string { return yes(r.LogsJSONRegister) }, []span{{20, 21, "no"}, {22, 37, "yes"}}},
		{"generated openapi", func(r Rules) string { return yes(r.GeneratedOpenAPI) }, []span{
			{20, 23, "no"}, {24, 37, "yes"}}},
		{"version gates", func(r Rules) string { return yes(r.VersionGates) }, []span{{20, 30, "no"}, {31, 37, "yes"}}},
		{"build tags", func(r Rules) string { return list(r.BuildTags...) }, []span{
			{20, 33, "selinux notest"}, {34, 37, "selinux notest grpcnotrace"}}},
		{"version packages", func(r Rules) string { return list(r.VersionPackages...) },
			[]span{{20, 37, "k8s.io/component-base/version k8s.io/client-go/pkg/version"}}},
		{"container runtime flag", func(r Rules) string { return yes(r.ContainerRuntimeFlag) }, []span{
			{20, 26, "yes"}, {27, 37, "no"}}},
		{"kubelet skew", func(r Rules) string { return strconv.Itoa(r.KubeletSkew) }, []span{{20, 27, "2"}, {28, 37, "3"}}},
		{"go", func(r Rules) string { return r.Go[:4] }, []span{
			{20, 20, "1.15"}, {21, 22, "1.16"}, {23, 23, "1.19"}, {24, 24, "1.18"}, {25, 25, "1.20"}, {26, 26, "1.21"},
			{27, 29, "1.22"}, {30, 30, "1.23"}, {31, 32, "1.24"}, {33, 35, "1.25"}, {36, 37, "1.26"},
		}},
		{"policy named", func(r Rules) string { return yes(r.PolicyNamed) }, []span{{20, 21, "yes"}, {22, 37, "no"}}},
		{"writes default plugins", func(r Rules) string { return yes(r.WritesDefaultPlugins) }, []span{
			{20, 21, "no"}, {22, 37, "yes"}}},
		{"multiPoint twice", func(r Rules) string { return yes(r.MultiPointTwice) }, []span{
			{20, 22, "no"}, {23, 29, "yes"}, {30, 37, "no"}}},
		{"preEnqueue", func(r Rules) string { return yes(r.PreEnqueue) }, []span{{20, 25, "no"}, {26, 37, "yes"}}},
		{"scheduling gates", func(r Rules) string { return yes(r.SchedulingGates) }, []span{{20, 26, "no"}, {27, 37, "yes"}}},
		{"fit scores", func(r Rules) string { return yes(r.FitScores) }, []span{{20, 21, "no"}, {22, 37, "yes"}}},
		{"repeats fit", func(r Rules) string { return yes(r.RepeatsFit) }, []span{{20, 21, "yes"}, {22, 37, "no"}}},
		{"extender's CA", func(r Rules) string { return yes(r.RequiresExtenderCA) }, []span{{20, 21, "no"}, {22, 37, "yes"}}},
		{"idle shape", func(r Rules) string { return yes(r.RejectsIdleShape) }, []span{{20, 35, "no"}, {36, 37, "yes"}}},
		{"ignorable bind", func(r Rules) string { return yes(r.IgnorableBind) }, []span{{20, 29, "no"}, {30, 37, "yes"}}},
		{"nodes of PreFilter", func(r Rules) string { return yes(r.PreFilterNodes) }, []span{
			{20, 23, "no"}, {24, 37, "yes"}}},
		{"plugin context", func(r Rules) string { return yes(r.PluginContext) }, []span{{20, 28, "no"}, {29, 37, "yes"}}},
		{"staged types", func(r Rules) string { return yes(r.StagedTypes) }, []span{{20, 33, "no"}, {34, 37, "yes"}}},
		{"staged interfaces", func(r Rules) string { return yes(r.StagedInterfaces) }, []span{
			{20, 34, "no"}, {35, 37, "yes"}}},
		{"indexed jobs", func(r Rules) string { return yes(r.IndexedJobs) }, []span{{20, 21, "no"}, {22, 37, "yes"}}},
		{"backoff limit for each index", func(r Rules) string { return yes(r.BackoffLimitPerIndex) },
			[]span{{20, 28, "no"}, {29, 37, "yes"}}},
		{"discovery", func(r Rules) string { return yes(r.DiscoveryV1) }, []span{{20, 20, "no"}, {21, 37, "yes"}}},
		{"etcd 3.4", func(r Rules) string { return yes(r.Etcd34) }, []span{{20, 33, "yes"}, {34, 37, "no"}}},
		{"fail cgroup v1", func(r Rules) string { return yes(r.FailCgroupV1) }, []span{{20, 30, "no"}, {31, 37, "yes"}}},
		{"compares images only", func(r Rules) string { return yes(r.ComparesImagesOnly) }, []span{
			{20, 30, "no"}, {31, 37, "yes"}}},
		{"kubeadm crictl", func(r Rules) string { return yes(r.KubeadmCrictl) }, []span{{20, 30, "yes"}, {31, 37, "no"}}},
		{"locks", func(r Rules) string { return list(r.ResourceLocks...) }, []span{
			{20, 23, "leases endpointsleases configmapsleases endpoints configmaps"},
			{24, 26, "leases endpointsleases configmapsleases"}, {27, 37, "leases"},
		}},
		{"policy API", func(r Rules) string { return r.PolicyAPI }, []span{
			{20, 20, "policy/v1beta1"}, {21, 37, "policy/v1"}}},
		{"kubeadm API", func(r Rules) string { return r.KubeadmAPI }, []span{
			{20, 21, "kubeadm.k8s.io/v1beta2"}, {22, 30, "kubeadm.k8s.io/v1beta3"}, {31, 37, "kubeadm.k8s.io/v1beta4"},
		}},
		{"metric of the cache", func(r Rules) string { return r.Metrics.CacheSize },
			[]span{{20, 32, "scheduler_scheduler_cache_size"}, {33, 37, "scheduler_cache_size"}}},
		{"rejected plugins", func(r Rules) string { return list(r.RejectedPlugins[ConfigV1]...) }, []span{
			{20, 24, ""}, {25, 28, "SelectorSpread"}, {29, 30, ""},
			{31, 37, "AzureDiskLimits CinderLimits EBSLimits GCEPDLimits"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			next := oldestMinor
			for _, s := range tc.spans {
				if s.from != next {
					t.Fatalf("the spans have a gap or overlap before 1.%d", s.from)
				}
				next = s.to + 1
				for _, minor := range []int{s.from, s.to} {
					for _, suffix := range []string{"", "-gke.100", "-eks-036c24b", "+k3s1", "+rke2r1", "-rc.1", "-alpha.2"} {
						reported := Release{Major: 1, Minor: minor}.String() + suffix
						if got := tc.get(selected(t, reported)); got != s.want {
							t.Errorf("%s: got %q, want %q", reported, got, s.want)
						}
					}
				}
			}
			if next != newestMinor+1 {
				t.Fatalf("the spans end at 1.%d", next-1)
			}
		})
	}
}

func TestSelectPlugins(t *testing.T) {
	old := []string{"NodeLabel", "NodePreferAvoidPods", "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated",
		"RequestedToCapacityRatio", "ServiceAffinity"}
	volumes := []string{"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"}
	counts := map[int]int{20: 28, 22: 28, 23: 22, 25: 22, 26: 24, 28: 24, 29: 23, 31: 23, 32: 19, 34: 19, 35: 21, 36: 23,
		37: 24}
	for minor, count := range counts {
		if got := len(selected(t, Release{Major: 1, Minor: minor}.String()).Plugins); got != count {
			t.Errorf("1.%d has %d plugins, want %d", minor, got, count)
		}
	}
	for _, tc := range []struct {
		names       []string
		first, last int
	}{
		{old, 20, 22},
		{[]string{"SelectorSpread"}, 20, 28},
		{volumes, 20, 31},
		{[]string{"DynamicResources", "SchedulingGates"}, 26, 37},
		{[]string{"GangScheduling", "NodeDeclaredFeatures"}, 35, 37},
		{[]string{"PodGroupPodsCount", "TopologyPlacementGenerator"}, 36, 37},
		{[]string{"DeferredPodScheduling"}, 37, 37},
		{[]string{"NodeResourcesFit", "DefaultBinder", "PrioritySort"}, 20, 37},
	} {
		for minor := oldestMinor; minor <= newestMinor; minor++ {
			plugins := selected(t, Release{Major: 1, Minor: minor}.String()).Plugins
			for _, name := range tc.names {
				if got, want := slices.Contains(plugins, name), tc.first <= minor && minor <= tc.last; got != want {
					t.Errorf("1.%d has %s: %v, want %v", minor, name, got, want)
				}
			}
			if !slices.IsSorted(plugins) || len(slices.Compact(slices.Clone(plugins))) != len(plugins) {
				t.Errorf("1.%d: plugins are not sorted or not unique: %v", minor, plugins)
			}
		}
	}
}

func TestSelectFlags(t *testing.T) {
	for _, tc := range []struct {
		flag  string
		first int // the first minor that refuses it
	}{
		{"scheduler-name", 22},
		{"policy-configmap", 23},
		{"port", 24},
		{"address", 24},
		{"logtostderr", 26},
		{"lock-object-name", 28},
	} {
		for _, minor := range []int{oldestMinor, tc.first - 1, tc.first, newestMinor} {
			taken := selected(t, Release{Major: 1, Minor: minor}.String()).Flags
			if got, want := slices.Contains(taken, tc.flag), minor < tc.first; got != want {
				t.Errorf("1.%d takes --%s: %v, want %v", minor, tc.flag, got, want)
			}
		}
	}
}

func TestSelectOutsideTheTable(t *testing.T) {
	newest := selected(t, "v1.37.0")
	for _, reported := range []string{"v1.38.0", "v1.38.0-rc.1", "v1.99.1+k3s1", "v2.0.0"} {
		release, err := FromServer(reported)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Select(release)
		var invalid *Error
		if !errors.As(err, &invalid) || !invalid.Invalid() || !strings.Contains(err.Error(), release.String()) ||
			!strings.Contains(err.Error(), "1.37") || !strings.Contains(invalid.Hint(), "--unknown-release nearest") {
			t.Errorf("Select(%s) = %v; want an *Error with the release, the newest minor release and the remedy", reported, err)
		}
		if release.Known() || release.Nearest() != "1.37" {
			t.Errorf("%s: known %v, nearest %s", reported, release.Known(), release.Nearest())
		}
		if diff := cmp.Diff(newest, release.Rules()); diff != "" {
			t.Errorf("the rules of %s differ from the newest rules:\n%s", reported, diff)
		}
	}
	for _, old := range []Release{{Major: 1, Minor: 19, Patch: 16}, {Major: 1, Minor: 2}, {Minor: 24}, {}} {
		_, err := Select(old)
		var invalid *Error
		if !errors.As(err, &invalid) || !invalid.Invalid() || !strings.Contains(invalid.Hint(), "1.20 to 1.37") {
			t.Errorf("Select(%s) = %v; want an *Error that names the range", old, err)
		}
		if old.Known() || old.Nearest() != "1.20" && old.Major == 1 {
			t.Errorf("%s: known %v, nearest %s", old, old.Known(), old.Nearest())
		}
	}
}

func TestSelectReturnsCopies(t *testing.T) {
	first := selected(t, "v1.31.0")
	first.Plugins[0], first.Accepted[0] = "changed", "changed"
	first.RejectedPlugins[ConfigV1][0] = "changed"
	second := selected(t, "v1.31.0")
	if second.Plugins[0] == "changed" || second.Accepted[0] == "changed" ||
		second.RejectedPlugins[ConfigV1][0] == "changed" {
		t.Error("changing one result of Select changes the next")
	}
}

func TestRenderIsAccepted(t *testing.T) {
	for minor := oldestMinor; minor <= newestMinor; minor++ {
		rules := selected(t, Release{Major: 1, Minor: minor}.String())
		for _, api := range []string{rules.Render, rules.Preferred} {
			if !slices.Contains(rules.Accepted, api) {
				t.Errorf("1.%d does not accept %s", minor, api)
			}
		}
		if rules.Render == ConfigV1beta2 {
			t.Errorf("1.%d renders v1beta2", minor)
		}
	}
}

func TestReleasesHaveEveryMinorNewestFirst(t *testing.T) {
	list := Releases()
	if len(list) != newestMinor-oldestMinor+1 {
		t.Fatalf("%d releases, want one for each of 1.%d to 1.%d", len(list), oldestMinor, newestMinor)
	}
	for i, release := range list {
		if release.Minor != newestMinor-i || release.PreRelease != "" {
			t.Errorf("release %d is %s, want one of 1.%d", i, release, newestMinor-i)
		}
		if !strings.Contains(releasesText, "\n"+release.String()+"\n") {
			t.Errorf("%s is not in releases.txt", release)
		}
	}
}

func TestGangsAreEnabledByAllTheirGates(t *testing.T) {
	for _, tt := range []struct {
		release string
		gates   map[string]bool
		want    bool
	}{
		{"v1.34.2", map[string]bool{"GenericWorkload": true, "GangScheduling": true}, false},
		{"v1.36.3", map[string]bool{"GenericWorkload": true}, false},
		{"v1.36.3", map[string]bool{"GenericWorkload": true, "GangScheduling": true}, true},
		{"v1.37.1", map[string]bool{"GenericWorkload": true}, true},
		{"v1.37.1", map[string]bool{"GenericWorkload": false}, false},
		{"v1.37.1", nil, false},
	} {
		if got := selected(t, tt.release).Gangs.Enabled(tt.gates); got != tt.want {
			t.Errorf("%s with %v: %v", tt.release, tt.gates, got)
		}
	}
}
