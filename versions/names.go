package versions

import "slices"

// names are names that exist in the minor releases from ≤ minor < before.
type names struct {
	from, before int
	list         []string
}

// plugins are the in-tree plugins (pkg/scheduler/framework/plugins/registry.go).
func plugins() []names {
	return []names{
		{20, onward, []string{
			"DefaultBinder", "DefaultPreemption", "ImageLocality", "InterPodAffinity", "NodeAffinity", "NodeName",
			"NodePorts", "NodeResourcesBalancedAllocation", "NodeResourcesFit", "NodeUnschedulable", "NodeVolumeLimits",
			"PodTopologySpread", "PrioritySort", "TaintToleration", "VolumeBinding", "VolumeRestrictions", "VolumeZone",
		}},
		{20, 23, []string{
			"NodeLabel", "NodePreferAvoidPods", "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated",
			"RequestedToCapacityRatio", "ServiceAffinity",
		}},
		{20, 29, []string{"SelectorSpread"}},
		{20, 32, []string{"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"}},
		{26, onward, []string{"DynamicResources", "SchedulingGates"}},
		{35, onward, []string{"GangScheduling", "NodeDeclaredFeatures"}},
		{36, onward, []string{"PodGroupPodsCount", "TopologyPlacementGenerator"}},
		{37, onward, []string{"DeferredPodScheduling"}},
	}
}

// flags are the flags of kube-scheduler (cmd/kube-scheduler/app/options and those from apiserver
// and component-base), including hidden ones. They come from the binaries; test/binary/matrix
// checks them.
func flags() []names {
	return []names{
		{20, onward, []string{
			"authentication-kubeconfig", "authentication-skip-lookup", "authentication-token-webhook-cache-ttl",
			"authentication-tolerate-lookup-failure", "authorization-always-allow-paths", "authorization-kubeconfig",
			"authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl", "bind-address",
			"cert-dir", "client-ca-file", "config", "contention-profiling", "feature-gates", "help",
			"http2-max-streams-per-connection", "kube-api-burst", "kube-api-content-type", "kube-api-qps", "kubeconfig",
			"leader-elect", "leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-resource-lock",
			"leader-elect-resource-name", "leader-elect-resource-namespace", "leader-elect-retry-period",
			"log-flush-frequency", "logging-format", "master", "permit-port-sharing", "profiling",
			"requestheader-allowed-names", "requestheader-client-ca-file", "requestheader-extra-headers-prefix",
			"requestheader-group-headers", "requestheader-username-headers", "secure-port",
			"show-hidden-metrics-for-version", "tls-cert-file", "tls-cipher-suites", "tls-min-version",
			"tls-private-key-file", "tls-sni-cert-key", "v", "version", "vmodule", "write-config-to",
		}},
		{20, 22, []string{"algorithm-provider", "hard-pod-affinity-symmetric-weight", "scheduler-name"}},
		{20, 23, []string{
			"policy-config-file", "policy-configmap", "policy-configmap-namespace", "use-legacy-policy-config"}},
		{20, 24, []string{"address", "experimental-logging-sanitization", "port"}},
		{20, 26, []string{
			"add-dir-header", "alsologtostderr", "log-backtrace-at", "log-dir", "log-file", "log-file-max-size",
			"logtostderr", "one-output", "skip-headers", "skip-log-headers", "stderrthreshold",
		}},
		{20, 28, []string{"lock-object-name", "lock-object-namespace"}},
		{21, onward, []string{"allow-metric-labels", "disabled-metrics", "permit-address-sharing"}},
		{23, onward, []string{"log-json-info-buffer-size", "log-json-split-stream"}},
		{24, onward, []string{"pod-max-in-unschedulable-pods-duration"}},
		{29, onward, []string{"allow-metric-labels-manifest"}},
		{30, onward, []string{"log-text-info-buffer-size", "log-text-split-stream"}},
		{31, onward, []string{"disable-http2-serving", "emulated-version"}},
		{32, onward, []string{"requestheader-uid-headers"}},
		{35, onward, []string{"min-compatibility-version"}},
		{36, onward, []string{"tls-curve-preferences"}},
	}
}

// EverInTree reports whether any supported release has an in-tree plugin of that name.
func EverInTree(name string) bool {
	return slices.ContainsFunc(plugins(), func(row names) bool { return slices.Contains(row.list, name) })
}

// namesAt returns the sorted names that exist in a minor release.
func namesAt(table []names, minor int) []string {
	return collect(table, func(n names) bool { return n.from <= minor && minor < n.before })
}

func collect(table []names, holds func(names) bool) []string {
	var found []string
	for _, row := range table {
		if holds(row) {
			found = append(found, row.list...)
		}
	}
	slices.Sort(found)
	return found
}
