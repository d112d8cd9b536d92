// Package versions contains the differences between the Kubernetes releases that pmk-sched
// supports. Every difference is a row with a half-open range of minor releases (table.go,
// names.go); Select combines the rows for a release and returns the result as plain data.
//
// The package imports nothing from this module and does no I/O.
package versions

import "fmt"

// The config APIs of the scheduler, group kubescheduler.config.k8s.io
// (staging/src/k8s.io/kube-scheduler/config), oldest first.
const (
	ConfigV1beta1 = "kubescheduler.config.k8s.io/v1beta1"
	ConfigV1beta2 = "kubescheduler.config.k8s.io/v1beta2"
	ConfigV1beta3 = "kubescheduler.config.k8s.io/v1beta3"
	ConfigV1      = "kubescheduler.config.k8s.io/v1"
)

// SecurePort is the default HTTPS port of kube-scheduler (pkg/scheduler/apis/config/types.go).
const SecurePort = 10259

// Rules are the facts about one minor Kubernetes release. The caller may modify slices and maps.
type Rules struct {
	// Accepted are the config APIs that the release decodes, as full apiVersions, oldest first
	// (pkg/scheduler/apis/config/scheme/scheme.go).
	Accepted []string
	// Preferred is the config API that the release writes with --write-config-to.
	Preferred string
	// Render is the config API that pmk-sched writes for the release: v1beta1, v1beta3 or v1, which
	// cover every release. v1beta2 is only read.
	Render string
	// RejectedPlugins are, by config API, in-tree plugins, of this or an earlier release, that the
	// release refuses to enable in that config API
	// (pkg/scheduler/apis/config/validation/validation.go).
	RejectedPlugins map[string][]string
	// Plugins are the sorted names of the release's in-tree plugins
	// (pkg/scheduler/framework/plugins/registry.go). The scheduler does not start if any other name
	// is enabled, unless it is compiled in.
	Plugins []string
	// Batching is set if the release reuses the results of a pod for identical ones by default: the
	// feature gate OpportunisticBatching (from 1.35). It does so only in profiles whose plugins all
	// sign pods and that call no extender (computeBatchablePlugins in
	// pkg/scheduler/framework/runtime/framework.go).
	Batching bool
	// UnsignedPlugins are in-tree plugins that filter or score and do not sign pods.
	UnsignedPlugins []string
	// OrderedTies is set if the release takes the first of equally good nodes, in an order that
	// depends on its list of nodes, and one at random only for pods that an extender scores (from
	// 1.35, prioritizeNodes in pkg/scheduler/schedule_one.go).
	OrderedTies bool
	// Gangs is the configuration with which the release itself places groups of pods together. It is
	// zero before 1.35 and disabled by default.
	Gangs Gangs
	// ValidationRules is set if the API server evaluates CEL rules of CustomResourceDefinitions
	// without a feature gate (from 1.25, CustomResourceValidationExpressions in
	// staging/src/k8s.io/apiserver/pkg/features/kube_features.go).
	ValidationRules bool
	// Policy is set if the release reads the legacy kind Policy (1.20–1.22).
	Policy bool
	// PolicyNamed is set if a scheduler with a Policy keeps the name in its configuration (1.20,
	// 1.21). Later it is called default-scheduler (createFromPolicy in pkg/scheduler/factory.go).
	PolicyNamed bool
	// WritesDefaultPlugins is set if --write-config-to includes the plugins that are enabled by
	// default (from 1.22, pkg/scheduler/apis/config/v1beta1/default_plugins.go). Earlier schedulers
	// add them afterwards (pkg/scheduler/algorithmprovider/registry.go).
	WritesDefaultPlugins bool
	// MultiPointTwice is set if a plugin that multiPoint and an extension point enable may run twice
	// (from 1.23 up to 1.29.0, expandMultiPointPlugins in
	// pkg/scheduler/framework/runtime/framework.go).
	MultiPointTwice bool
	// PreEnqueue is set if the extension point preEnqueue exists (from 1.26).
	PreEnqueue bool
	// SchedulingGates is set if the plugin SchedulingGates is a default (from 1.27).
	SchedulingGates bool
	// ResourceLocks are the locks of leader election. Since 1.24 client-go supports only locks that
	// include a lease, and since 1.27 only leases (tools/leaderelection/resourcelock/interface.go).
	ResourceLocks []string
	// FitScores is set if NodeResourcesFit scores nodes (from 1.22). Before,
	// NodeResourcesLeastAllocated, NodeResourcesMostAllocated and RequestedToCapacityRatio do.
	FitScores bool
	// RepeatsFit is set if the release configures NodeResourcesFit a second time for resources that
	// an extender manages, and rejects existing arguments (1.20, 1.21, pkg/scheduler/factory.go).
	RepeatsFit bool
	// RejectsIdleShape is set if NodeResourcesFit rejects requestedToCapacityRatio with another type
	// of scoring strategy (from 1.36, ValidateNodeResourcesFitArgs in
	// pkg/scheduler/apis/config/validation/validation_pluginargs.go).
	RejectsIdleShape bool
	// RequiresExtenderCA is set if the scheduler does not start with an extender whose caData
	// contains no certificate (from 1.22). Earlier it starts and trusts no certificate.
	RequiresExtenderCA bool
	// IgnorableBind is set if an ignorable extender's failure to bind a pod is ignored (from 1.30,
	// kubernetes#122503).
	IgnorableBind bool
	// PreFilterNodes is set if a PreFilter plugin can return the nodes to consider (from 1.24,
	// PreFilterResult in pkg/scheduler/framework/interface.go).
	PreFilterNodes bool
	// PluginContext is set if a plugin's constructor has a context (from 1.29, PluginFactory in
	// pkg/scheduler/framework/runtime/registry.go). StagedTypes is set if the framework's types are in
	// k8s.io/kube-scheduler/framework (from 1.34), StagedInterfaces if the plugins' interfaces are too
	// (from 1.35).
	PluginContext, StagedTypes, StagedInterfaces bool

	// LivenessPath and ReadinessPath are the probe paths on the secure port: /healthz, and from
	// 1.31 /livez and /readyz (cmd/kube-scheduler/app/server.go).
	LivenessPath, ReadinessPath string
	// InsecurePort is set if the release opens a plain HTTP listener (default 10251), which a
	// configuration file cannot disable (1.20–1.22).
	InsecurePort bool
	// Metrics are the metrics of the release whose names other releases do not have.
	Metrics Metrics

	// StaleImageCounts is set if a node's image states keep the number of nodes that had the image at
	// the node's last update (up to 1.28, kubernetes#116938). ImageLocality's score depends on that
	// number.
	StaleImageCounts bool

	// LeaderElectFlagsWithConfig is set if --leader-elect* apply in addition to --config (from
	// 1.22); before, only the configuration applies.
	LeaderElectFlagsWithConfig bool
	// CoordinatedLeaderElection is set if the feature gate of that name exists (from 1.31). It uses
	// the default scheduler's lease regardless of the configuration, so it is disabled for a second
	// scheduler.
	CoordinatedLeaderElection bool
	// Flags are the sorted names of kube-scheduler flags, without dashes, including deprecated ones.
	Flags []string

	// ComponentBaseCLI is set if k8s.io/component-base/cli exists (from 1.23).
	ComponentBaseCLI bool
	// LogsJSONRegister is set if k8s.io/component-base/logs/json/register exists (from 1.22).
	LogsJSONRegister bool
	// GeneratedOpenAPI is set if the module contains the OpenAPI definitions of kube-apiserver
	// (from 1.24), so that it compiles on its own.
	GeneratedOpenAPI bool
	// VersionGates is set if the linked version determines the defaults of feature gates (from
	// 1.31), so that it must be the exact tag.
	VersionGates bool
	// PerfHarness is set if the package k8s.io/kubernetes/test/integration/scheduler_perf exports its
	// harness, which takes plugins (from 1.30; earlier it is in files of tests). PerfTopics is set if
	// its workloads are in a directory for each topic (from 1.32); earlier they are in one file.
	PerfHarness, PerfTopics bool
	// BuildTags are the build tags of upstream's release binaries
	// (hack/lib/golang.sh, kube::golang::build_binaries).
	BuildTags []string
	// VersionPackages are the packages with the variables that hold a binary's version: six each, set
	// by the linker (hack/lib/version.sh).
	VersionPackages []string
	// Go is a Go version that compiles the minor release, for example "1.18.10". It is the fallback:
	// each patch release names its own.
	Go string

	// PodSecurity is set if kube-apiserver includes the admission plugin PodSecurity (from 1.22).
	PodSecurity bool
	// DeviceAPIs are the versions of resource.k8s.io with DeviceClasses and ResourceSlices that
	// kube-apiserver serves with --runtime-config only (from 1.31; v1 is enabled from 1.34 on). It
	// does not start with a version that it does not know.
	DeviceAPIs []string
	// PolicyAPI is the newest API of PodDisruptionBudgets: policy/v1 from 1.21.
	PolicyAPI string
	// DiscoveryV1 is set if kube-apiserver serves discovery.k8s.io/v1 (from 1.21).
	DiscoveryV1 bool
	// MutatingPolicyAPI is the newest API of MutatingAdmissionPolicies: v1 from 1.36, and v1beta1 in
	// 1.34 and 1.35, which kube-apiserver serves with --runtime-config and the feature gate
	// MutatingAdmissionPolicy only. It is empty for earlier releases.
	MutatingPolicyAPI string
	// MatchConditions is set if the webhooks of kube-apiserver have matchConditions by default (from
	// 1.28, AdmissionWebhookMatchConditions in staging/src/k8s.io/apiserver/pkg/features).
	MatchConditions bool
	// NamespaceNames is set if every namespace has its name as the label kubernetes.io/metadata.name
	// (from 1.21, NamespaceDefaultLabelName in pkg/features/kube_features.go).
	NamespaceNames bool
	// IndexedJobs is set if kube-apiserver accepts indexed Jobs by default (from 1.22), and
	// BackoffLimitPerIndex if their indexes may have a backoff limit each (from 1.29): the feature
	// gates IndexedJob and JobBackoffLimitPerIndex in pkg/features/kube_features.go.
	IndexedJobs, BackoffLimitPerIndex bool
	// Etcd34 is set if kube-apiserver works with etcd 3.4 (up to 1.33). Later ones need features that
	// it lacks, and watches stall.
	Etcd34 bool

	// KubeletSkew is the number of minor releases by which a kubelet may be older than the API
	// server: 2, and 3 from 1.28 (Kubernetes' version skew policy).
	KubeletSkew int
	// ContainerRuntimeFlag is set if the kubelet requires --container-runtime=remote (up to 1.26).
	ContainerRuntimeFlag bool
	// FailCgroupV1 is set if the kubelet's configuration has failCgroupV1 (from 1.31).
	FailCgroupV1 bool
	// ComparesImagesOnly is set if the kubelet restarts a changed container only if its name or image
	// differs (from 1.31, pickFieldsToHash in pkg/kubelet/container/helpers.go). Earlier ones compare
	// the whole container.
	ComparesImagesOnly bool
	// KubeadmAPI is the newest configuration API that kubeadm reads (cmd/kubeadm/app/apis/kubeadm).
	KubeadmAPI string
	// KubeadmCrictl is set if kubeadm finds images with crictl (up to 1.30). Later ones ask the
	// container runtime themselves (cmd/kubeadm/app/util/runtime).
	KubeadmCrictl bool
}

// Gangs is the cluster configuration with which kube-scheduler itself places the pods of a group
// together or not at all.
type Gangs struct {
	// API is the groups' apiVersion, which differs in each minor release so far
	// (pkg/registry/scheduling/rest/storage_scheduling.go). It is disabled by default: kube-apiserver
	// serves it with --runtime-config and the feature gate GenericWorkload. With that gate its role
	// system:kube-scheduler includes the permissions on them
	// (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go).
	API string
	// Resource is the resource that the scheduler reads.
	Resource string
	// Gates are the feature gates that kube-scheduler needs
	// (pkg/scheduler/apis/config/v1/default_plugins.go).
	Gates []string
}

// Enabled reports whether a scheduler with these feature gates places groups.
func (g Gangs) Enabled(gates map[string]bool) bool {
	for _, gate := range g.Gates {
		if !gates[gate] {
			return false
		}
	}
	return len(g.Gates) > 0
}

// The minor releases in the table, inclusive.
const (
	oldestMinor = 20
	newestMinor = 37
)

// Oldest returns the first minor release in the table: "1.20".
func Oldest() string { return Release{Major: 1, Minor: oldestMinor}.MinorString() }

// Newest returns the last minor release in the table: "1.37".
func Newest() string { return Release{Major: 1, Minor: newestMinor}.MinorString() }

// Select returns a release's rules. Only the minor release matters; a pre-release uses its
// release's rules. A release outside the table is an *Error with the supported range:
// [Release.Rules] returns the rules of the closest one.
func Select(r Release) (Rules, error) {
	switch {
	case r.Known():
		return rulesOf(r.Minor), nil
	case r.Major < 1 || r.Major == 1 && r.Minor < oldestMinor:
		return Rules{}, &Error{
			Message: fmt.Sprintf("release %s is not supported: Kubernetes %s is too old", r, r.MinorString()),
			Try:     fmt.Sprintf("use a release from %s to %s", Oldest(), Newest()),
		}
	}
	return Rules{}, &Error{
		Message: fmt.Sprintf("release %s is not supported: Kubernetes %s is the newest minor release that this pmk-sched knows",
			r, Newest()),
		Try: fmt.Sprintf("use a newer pmk-sched, or try the rules of %s: `build` and `simulate` take --unknown-release nearest",
			Newest()),
	}
}

// Known reports whether the minor release of r is in the table.
func (r Release) Known() bool {
	return r.Major == 1 && oldestMinor <= r.Minor && r.Minor <= newestMinor
}

// Nearest returns the minor release whose rules [Release.Rules] returns: "1.37".
func (r Release) Nearest() string {
	return Release{Major: 1, Minor: r.nearest()}.MinorString()
}

// Rules returns the rules for the release, or for the closest release in the table.
func (r Release) Rules() Rules { return rulesOf(r.nearest()) }

func (r Release) nearest() int {
	if r.Major > 1 {
		return newestMinor
	}
	return min(max(r.Minor, oldestMinor), newestMinor)
}

func rulesOf(minor int) Rules {
	var rules Rules
	for _, row := range table() {
		if row.from <= minor && minor < row.before {
			row.set(&rules)
		}
	}
	rules.Plugins = namesAt(plugins(), minor)
	rules.Flags = namesAt(flags(), minor)
	return rules
}
