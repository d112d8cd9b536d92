package versions

import (
	"math"
	"slices"
)

// row is a fact about the minor releases from ≤ minor < before of Kubernetes 1.
type row struct {
	from, before int
	set          func(*Rules)
}

// onward is the end of a range that is still open.
const onward = math.MaxInt

// table has every difference between minor releases except names (plugins, flags). Each range is
// [from, before).
func table() []row {
	return slices.Concat(configurationRows(), servingRows(), metricRows(), sourceRows(), nodeRows())
}

// configurationRows come from pkg/scheduler/apis/config/scheme/scheme.go (accepted, oldest first)
// and …/config/latest/latest.go (preferred).
func configurationRows() []row {
	accept := func(api string) func(*Rules) {
		return func(r *Rules) { r.Accepted = append(r.Accepted, api) }
	}
	reject := func(api string, names ...string) func(*Rules) {
		return func(r *Rules) {
			if r.RejectedPlugins == nil {
				r.RejectedPlugins = map[string][]string{}
			}
			r.RejectedPlugins[api] = append(r.RejectedPlugins[api], names...)
		}
	}
	return []row{
		{20, 23, accept(ConfigV1beta1)},
		{22, 28, accept(ConfigV1beta2)},
		{23, 29, accept(ConfigV1beta3)},
		{25, onward, accept(ConfigV1)},

		{20, 22, func(r *Rules) { r.Preferred = ConfigV1beta1 }},
		{22, 23, func(r *Rules) { r.Preferred = ConfigV1beta2 }},
		{23, 25, func(r *Rules) { r.Preferred = ConfigV1beta3 }},
		{25, onward, func(r *Rules) { r.Preferred = ConfigV1 }},

		{20, 23, func(r *Rules) { r.Render = ConfigV1beta1 }},
		{23, 25, func(r *Rules) { r.Render = ConfigV1beta3 }},
		{25, onward, func(r *Rules) { r.Render = ConfigV1 }},

		{22, 23, reject(ConfigV1beta2, "NodeLabel", "NodePreferAvoidPods", "NodeResourcesLeastAllocated",
			"NodeResourcesMostAllocated", "RequestedToCapacityRatio", "ServiceAffinity")},
		{25, 29, reject(ConfigV1, "SelectorSpread")},
		{31, onward, reject(ConfigV1, "AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")},

		{35, onward, func(r *Rules) { r.Batching = true }},
		{35, onward, func(r *Rules) { r.OrderedTies = true }},
		{37, onward, func(r *Rules) { r.UnsignedPlugins = []string{"DeferredPodScheduling"} }},

		{35, 36, func(r *Rules) { r.Gangs.API, r.Gangs.Resource = "scheduling.k8s.io/v1alpha1", "workloads" }},
		{36, 37, func(r *Rules) { r.Gangs.API, r.Gangs.Resource = "scheduling.k8s.io/v1alpha2", "podgroups" }},
		{37, onward, func(r *Rules) { r.Gangs.API, r.Gangs.Resource = "scheduling.k8s.io/v1beta1", "podgroups" }},
		{35, onward, func(r *Rules) { r.Gangs.Gates = []string{"GenericWorkload"} }},
		{35, 37, func(r *Rules) { r.Gangs.Gates = append(r.Gangs.Gates, "GangScheduling") }},

		{20, 23, func(r *Rules) { r.Policy = true }},
		{25, onward, func(r *Rules) { r.ValidationRules = true }},
		{20, 22, func(r *Rules) { r.PolicyNamed = true }},
		{22, onward, func(r *Rules) { r.WritesDefaultPlugins = true }},
		{23, 30, func(r *Rules) { r.MultiPointTwice = true }},
		{26, onward, func(r *Rules) { r.PreEnqueue = true }},
		{27, onward, func(r *Rules) { r.SchedulingGates = true }},
		{22, onward, func(r *Rules) { r.FitScores = true }},
		{20, 22, func(r *Rules) { r.RepeatsFit = true }},
		{22, onward, func(r *Rules) { r.RequiresExtenderCA = true }},
		{30, onward, func(r *Rules) { r.IgnorableBind = true }},
		{36, onward, func(r *Rules) { r.RejectsIdleShape = true }},
	}
}

func servingRows() []row {
	locks := func(names ...string) func(*Rules) {
		return func(r *Rules) { r.ResourceLocks = append(r.ResourceLocks, names...) }
	}
	devices := func(version string) func(*Rules) {
		return func(r *Rules) { r.DeviceAPIs = append(r.DeviceAPIs, version) }
	}
	return []row{
		{20, onward, locks("leases")},
		{20, 27, locks("endpointsleases", "configmapsleases")},
		{20, 24, locks("endpoints", "configmaps")},
		{20, 31, func(r *Rules) { r.LivenessPath, r.ReadinessPath = "/healthz", "/healthz" }},
		{31, onward, func(r *Rules) { r.LivenessPath, r.ReadinessPath = "/livez", "/readyz" }},
		{20, 23, func(r *Rules) { r.InsecurePort = true }},
		{20, 29, func(r *Rules) { r.StaleImageCounts = true }},
		{22, onward, func(r *Rules) { r.LeaderElectFlagsWithConfig = true }},
		{31, onward, func(r *Rules) { r.CoordinatedLeaderElection = true }},
		{22, onward, func(r *Rules) { r.PodSecurity = true }},
		{31, onward, devices("v1alpha3")},
		{32, onward, devices("v1beta1")},
		{33, onward, devices("v1beta2")},
		{20, 21, func(r *Rules) { r.PolicyAPI = "policy/v1beta1" }},
		{21, onward, func(r *Rules) { r.PolicyAPI = "policy/v1" }},
		{21, onward, func(r *Rules) { r.DiscoveryV1 = true }},
		{21, onward, func(r *Rules) { r.NamespaceNames = true }},
		{28, onward, func(r *Rules) { r.MatchConditions = true }},
		{34, 36, func(r *Rules) { r.MutatingPolicyAPI = "admissionregistration.k8s.io/v1beta1" }},
		{36, onward, func(r *Rules) { r.MutatingPolicyAPI = "admissionregistration.k8s.io/v1" }},
		{22, onward, func(r *Rules) { r.IndexedJobs = true }},
		{29, onward, func(r *Rules) { r.BackoffLimitPerIndex = true }},
		{20, 34, func(r *Rules) { r.Etcd34 = true }},
	}
}

// sourceRows describe a release's modules. The Go version is the newest patch of the minor in the
// newest patch release (.go-version or build/dependencies.yaml), except for 1.24, which began with
// 1.18 and ended with 1.20: its early patch releases need the older one.
func sourceRows() []row {
	golang := func(version string) func(*Rules) { return func(r *Rules) { r.Go = version } }
	tags := func(names ...string) func(*Rules) {
		return func(r *Rules) { r.BuildTags = append(r.BuildTags, names...) }
	}
	return []row{
		{22, onward, func(r *Rules) { r.LogsJSONRegister = true }},
		{23, onward, func(r *Rules) { r.ComponentBaseCLI = true }},
		{24, onward, func(r *Rules) { r.GeneratedOpenAPI = true }},
		{31, onward, func(r *Rules) { r.VersionGates = true }},
		{24, onward, func(r *Rules) { r.PreFilterNodes = true }},
		{29, onward, func(r *Rules) { r.PluginContext = true }},
		{34, onward, func(r *Rules) { r.StagedTypes = true }},
		{35, onward, func(r *Rules) { r.StagedInterfaces = true }},
		{30, onward, func(r *Rules) { r.PerfHarness = true }},
		{32, onward, func(r *Rules) { r.PerfTopics = true }},

		{20, onward, tags("selinux", "notest")},
		{34, onward, tags("grpcnotrace")},
		// Upstream's own builds also name them below k8s.io/kubernetes/vendor (until 1.29), but not
		// when compiled from modules.
		{20, onward, func(r *Rules) {
			r.VersionPackages = []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"}
		}},

		{20, 21, golang("1.15.15")},
		{21, 23, golang("1.16.15")},
		{23, 24, golang("1.19.13")},
		{24, 25, golang("1.18.10")},
		{25, 26, golang("1.20.14")},
		{26, 27, golang("1.21.13")},
		{27, 30, golang("1.22.12")},
		{30, 31, golang("1.23.12")},
		{31, 33, golang("1.24.13")},
		{33, 36, golang("1.25.11")},
		{36, 37, golang("1.26.5")},
		{37, onward, golang("1.26.8")},
	}
}

func nodeRows() []row {
	return []row{
		{20, 28, func(r *Rules) { r.KubeletSkew = 2 }},
		{28, onward, func(r *Rules) { r.KubeletSkew = 3 }},
		{20, 27, func(r *Rules) { r.ContainerRuntimeFlag = true }},
		{31, onward, func(r *Rules) { r.FailCgroupV1 = true }},
		{31, onward, func(r *Rules) { r.ComparesImagesOnly = true }},
		{20, 22, func(r *Rules) { r.KubeadmAPI = "kubeadm.k8s.io/v1beta2" }},
		{22, 31, func(r *Rules) { r.KubeadmAPI = "kubeadm.k8s.io/v1beta3" }},
		{31, onward, func(r *Rules) { r.KubeadmAPI = "kubeadm.k8s.io/v1beta4" }},
		{20, 31, func(r *Rules) { r.KubeadmCrictl = true }},
	}
}
