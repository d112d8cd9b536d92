package versions

import "slices"

// GateChange is a feature gate of kube-scheduler that differs between two releases.
type GateChange struct {
	Name     string
	From, To Gate
	// Scheduling is set if the scheduler itself reads the gate (pkg/scheduler in any release), or the
	// gate guards a pod field that it reads. Other gates belong to the libraries that kube-scheduler
	// links.
	Scheduling bool
}

// GateChanges returns the feature gates that differ between two releases, by name: their default or
// their lock. A gate that only one of them has is a change if it is enabled when it comes, if its
// last default before it went differs, or if flags set it: set are these gates.
func GateChanges(from, to Release, set map[string]bool) []GateChange {
	var found []GateChange
	was, is := from.Gates(), to.Gates()
	for _, h := range gates() {
		a, b := was[h.name], is[h.name]
		_, given := set[h.name]
		switch {
		case a == b:
		case !given && !a.Exists && !b.Default:
		case !given && !b.Exists && a.Default == h.before(to).Default:
		default:
			scheduling := slices.Contains(schedulingGates(), h.name)
			found = append(found, GateChange{Name: h.name, From: a, To: b, Scheduling: scheduling})
		}
	}
	return found
}

// before returns the last state of a gate that a release does not have any more.
func (h gateHistory) before(r Release) Gate {
	_, last := h.at(r.nearest())
	was, _ := h.at(last)
	return was
}

// gatedPlugin is an in-tree plugin that is a default while a feature gate is enabled, from a minor
// release on (applyFeatureGates in pkg/scheduler/apis/config/v1/default_plugins.go).
type gatedPlugin struct {
	name, gate   string
	from, before int
}

func gatedPlugins() []gatedPlugin {
	return []gatedPlugin{
		{"DynamicResources", "DynamicResourceAllocation", 26, onward},
		{"NodeDeclaredFeatures", "NodeDeclaredFeatures", 35, onward},
		{"GangScheduling", "GangScheduling", 35, 37},
		{"GangScheduling", "GenericWorkload", 37, onward},
		{"DeferredPodScheduling", "InPlacePodVerticalScalingSchedulerPreemption", 37, onward},
		{"TopologyPlacementGenerator", "TopologyAwareWorkloadScheduling", 36, onward},
	}
}

// GatedPlugins returns the in-tree plugins that the release enables by default because of feature
// gates. set are the gates that flags set.
func (r Release) GatedPlugins(set map[string]bool) []string {
	var found []string
	gates, minor := r.Gates(), r.nearest()
	for _, p := range gatedPlugins() {
		enabled, given := set[p.gate]
		if !given {
			enabled = gates[p.gate].Default
		}
		if enabled && p.from <= minor && minor < p.before {
			found = append(found, p.name)
		}
	}
	return found
}

// schedulingGates are the feature gates that a supported release's pkg/scheduler reads, and the
// gates for pod fields that its plugins read.
func schedulingGates() []string {
	return []string{
		"BalanceAttachedNodeVolumes", "CSIMigration", "CSIMigrationAWS", "CSIMigrationAzureDisk", "CSIMigrationGCE",
		"CSIMigrationOpenStack", "CSIMigrationPortworx", "CSIMigrationRBD", "CSINodeInfo", "CSIStorageCapacity",
		"CompositePodGroup", "DRAAdminAccess", "DRAConsumableCapacity", "DRAControlPlaneController",
		"DRADerivedAttributes", "DRADeviceBindingConditions", "DRADeviceCompatibilityGroups", "DRADeviceTaintRules",
		"DRADeviceTaints", "DRAExtendedResource", "DRAFractionalCapacityRange", "DRAListTypeAttributes",
		"DRANodeAllocatableResources", "DRAOptionalNodeOperations", "DRAPartitionableDevices", "DRAPrioritizedList",
		"DRAResourceClaimDeviceStatus", "DRASchedulerFilterTimeout", "DRAWorkloadResourceClaims",
		"DefaultPodTopologySpread", "DynamicResourceAllocation", "GangScheduling", "GenericEphemeralVolume",
		"GenericWorkload", "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScaling",
		"InPlacePodVerticalScalingSchedulerPreemption", "InterPodAffinityHostnameFastPath",
		"LocalStorageCapacityIsolation", "MatchLabelKeysInPodAffinity", "MatchLabelKeysInPodTopologySpread",
		"MatchLabelKeysInPodTopologySpreadSelectorMerge", "MinDomainsInPodTopologySpread", "NodeDeclaredFeatures",
		"NodeInclusionPolicyInPodTopologySpread", "NominatedNodeNameForExpectation", "OpportunisticBatching",
		"PodAffinityNamespaceSelector", "PodDisruptionBudget", "PodDisruptionConditions", "PodGroupPreemptionPolicy",
		"PodLevelResources", "PodOverhead", "PodSchedulingReadiness", "PreferNominatedNode", "ReadWriteOncePod",
		"SchedulerAsyncAPICalls", "SchedulerAsyncPreemption", "SchedulerPopFromBackoffQ", "SchedulerPreQueueingHints",
		"SchedulerQueueingHints", "SidecarContainers", "StorageCapacityScoring", "TaintTolerationComparisonOperators",
		"TopologyAwareWorkloadScheduling", "VolumeAttributesClass", "VolumeCapacityPriority", "VolumeLimitScaling",
		"WorkloadAwarePreemption",
	}
}
