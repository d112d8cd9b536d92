package versions

import "slices"

// bugs are the known kube-scheduler bugs that matter to users: crashes, leaks, pods that are not
// scheduled or scheduled to the wrong node. Patches come from each minor release's CHANGELOG, and
// where that does not say since when, from comparing the sources of its first and last patch.
func bugs() []bug {
	return slices.Concat(bugsUpTo23(), bugsFrom24(), bugsFrom28(), bugsFrom33())
}

// whole returns all patches of the minor releases from ≤ minor < before.
func whole(from, before int) []patches {
	var all []patches
	for minor := from; minor < before; minor++ {
		all = append(all, patches{minor, 0, onward})
	}
	return all
}

const preempted = "pods are preempted"

func bugsUpTo23() []bug {
	return []bug{
		{
			"kubernetes#103019", "extenders are not asked when pods are preempted, so that pods may be deleted in vain",
			Condition{Extenders: true, Pods: preempted}, []patches{{20, 0, 10}, {21, 0, 4}},
		},
		{
			"kubernetes#110853", "kube-scheduler can crash",
			Condition{Plugin: "PodTopologySpread",
				Pods: "pods with topology spread constraints and a required node affinity preempt others"},
			append(whole(20, 22), patches{22, 0, 12}, patches{23, 0, 9}),
		},
		{
			"kubernetes#111803", "kube-scheduler leaks memory",
			Condition{Plugin: "DefaultPreemption", Pods: preempted},
			append(whole(20, 22), patches{22, 0, 13}, patches{23, 0, 10}, patches{24, 0, 4}),
		},
		{
			"kubernetes#109442",
			"a pod that did not fit is tried again minutes late after a change of a node's labels or taints",
			Condition{Plugin: "NodeResourcesFit"}, []patches{{21, 0, 13}, {22, 0, 10}, {23, 0, 7}},
		},
		{
			"kubernetes#122022", "a pod that an extender refused is tried again minutes late",
			Condition{Extenders: true},
			append(whole(22, 26), patches{26, 0, 12}, patches{27, 0, 9}, patches{28, 0, 5}, patches{29, 0, 10}),
		},
		{
			"kubernetes#120334", "a pod that meets an error after it was unschedulable is tried again minutes late",
			Condition{}, append(whole(22, 25), patches{25, 0, 15}, patches{26, 0, 10}, patches{27, 0, 7}, patches{28, 0, 3}),
		},
		{
			"kubernetes#108890",
			"compiled-in plugins run after those of multiPoint, regardless of the order in the configuration",
			Condition{OutOfTree: true}, []patches{{23, 0, 7}},
		},
		{
			"kubernetes#122066", "a plugin runs twice, and no pod is scheduled when its scores exceed the limit",
			Condition{Overrides: true},
			append([]patches{{23, 7, onward}, {24, 0, onward}, {25, 0, onward}}, patches{26, 0, 13}, patches{27, 0, 10},
				patches{28, 0, 6}, patches{29, 0, 1}),
		},
	}
}

func bugsFrom24() []bug {
	return []bug{
		{
			"kubernetes#114526",
			"all Filter plugins run on a node even after one has refused it, so that scheduling takes longer",
			Condition{}, []patches{{24, 0, 10}, {25, 0, 6}, {26, 0, 1}},
		},
		{
			"kubernetes#124559", "a pod stays pending while one of the nodes that it names does not exist",
			Condition{Plugin: "NodeAffinity", Pods: "pods name nodes by matchFields"},
			append(whole(24, 27), patches{27, 0, 14}, patches{28, 0, 10}, patches{29, 0, 5}),
		},
		{
			"kubernetes#123465",
			"a pod stays pending while the node of its local PersistentVolume does not exist, with an error that does not " +
				"name the volume",
			Condition{Plugin: "VolumeBinding", Pods: "nodes with local PersistentVolumes are removed"},
			[]patches{{27, 0, 14}, {28, 0, 10}, {29, 0, 5}},
		},
		{
			"kubernetes#115347", "kube-scheduler can crash",
			Condition{Plugin: "NodeVolumeLimits",
				Pods: "pods have inline volumes of an in-tree cloud provider, and a node has no CSINode"},
			[]patches{{25, 0, 7}, {26, 0, 2}},
		},
		{
			"kubernetes#117194",
			"PreEnqueue plugins do not run when a pod leaves the backoff queue, so that pods with gates can be scheduled",
			Condition{Plugin: "SchedulingGates"}, []patches{{27, 0, 1}},
		},
		{
			"kubernetes#119943", "preemption can fail after a PreFilter plugin has refused a pod",
			Condition{Plugin: "DefaultPreemption", Pods: preempted}, []patches{{27, 0, 6}, {28, 0, 2}},
		},
		{
			"kubernetes#121666", "kube-scheduler can crash",
			Condition{FewScores: true}, []patches{{27, 0, 9}, {28, 0, 5}},
		},
		{
			"kubernetes#125039", "kube-scheduler crashes",
			Condition{Plugin: "NodeAffinity", Pods: "pods name only nodes by matchFields that do not exist"},
			[]patches{{27, 14, 15}, {28, 10, 11}, {29, 5, 6}, {30, 0, 2}},
		},
		{
			"kubernetes#125527", "a pod that a compiled-in PreEnqueue plugin rejected is not tried again",
			Condition{OutOfTree: true, Pods: "PreEnqueue plugins reject pods"},
			[]patches{{27, 15, onward}, {28, 11, 12}, {29, 6, 7}, {30, 2, 3}},
		},
		{
			"kubernetes#127584", "pods with a local PersistentVolume stay pending or are bound to the wrong node",
			Condition{Plugin: "VolumeBinding", Pods: "the label kubernetes.io/hostname of a node is not the name of the node"},
			append(whole(27, 29), patches{29, 0, 11}, patches{30, 0, 7}, patches{31, 0, 3}),
		},
	}
}

func bugsFrom28() []bug {
	return []bug{
		{
			"kubernetes#120622", "kube-scheduler uses more and more memory",
			Condition{Gate: "SchedulerQueueingHints"}, []patches{{28, 0, 5}},
		},
		{
			"kubernetes#120413", "a pod can be tried again minutes late",
			Condition{}, []patches{{28, 0, 2}},
		},
		{
			"kubernetes#124517", "a data race can crash kube-scheduler",
			Condition{}, []patches{{29, 0, 5}, {30, 0, 1}},
		},
		{
			"kubernetes#126691", "preemption fails if the pods have different quality-of-service classes",
			Condition{Plugin: "DefaultPreemption", Pods: preempted}, []patches{{29, 0, 9}, {30, 0, 5}, {31, 0, 1}},
		},
		{
			"kubernetes#136564", "one device can be allocated to two ResourceClaims",
			Condition{Gate: "DynamicResourceAllocation", OptIn: true, Pods: "pods use ResourceClaims"}, []patches{{32, 0, 12},
				{33, 0, 8}},
		},
	}
}

func bugsFrom33() []bug {
	return []bug{
		{
			"kubernetes#141781",
			"nodes look empty to NodeResourcesFit and NodeResourcesBalancedAllocation when an extender has filtered them",
			Condition{WholeNodes: true}, whole(33, newestMinor+1),
		},
		{
			"kubernetes#133285", "kube-scheduler can crash",
			Condition{Pods: "the status of a container has requests that its spec lacks"}, []patches{{33, 0, 4}},
		},
		{
			"kubernetes#134400", "scheduling and preemption slow down while the API server is under load",
			Condition{Gate: "SchedulerAsyncAPICalls"}, []patches{{34, 0, 2}},
		},
		{
			"kubernetes#135900", "scheduling slows down when requests to the API server are throttled",
			Condition{Gate: "SchedulerAsyncAPICalls"}, []patches{{35, 0, 1}},
		},
		{
			"kubernetes#136566", "one device can be allocated to two ResourceClaims",
			Condition{Gate: "DynamicResourceAllocation", Pods: "pods use ResourceClaims"}, []patches{{34, 0, 4}, {35, 0, 1}},
		},
		{
			"kubernetes#138988", "kube-scheduler crashes",
			Condition{Gate: "DRAPartitionableDevices",
				Pods: "ResourceClaims have allocationMode All, and devices have shared counters"}, []patches{{36, 0, 2}},
		},
		{
			"kubernetes#139363",
			"a pod with a ResourceClaim that pods on several nodes share, and another one, can stay pending",
			Condition{Gate: "DynamicResourceAllocation", Pods: "pods use ResourceClaims"}, []patches{{36, 0, 2}},
		},
	}
}
