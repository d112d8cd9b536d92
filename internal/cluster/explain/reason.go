package explain

import (
	"regexp"
	"strings"
)

// known is a reason that kube-scheduler's plugins give, by how it begins.
type known struct {
	prefix string
	cause  Cause
	plugin string
}

// knownReasons are the reasons that kube-scheduler's plugins give from 1.20 to 1.37. The first
// prefix that matches counts.
func knownReasons() []known {
	return []known{
		{"Insufficient ", Resource, "NodeResourcesFit"},
		{"Too many pods", Resource, "NodeResourcesFit"},
		{"node(s) had untolerated taint", Taint, "TaintToleration"},
		{"node(s) had taint", Taint, "TaintToleration"}, // up to 1.23
		{"node(s) were unschedulable", Cordoned, "NodeUnschedulable"},
		{"node(s) had unknown conditions", NotReady, "NodeUnschedulable"},
		{"node(s) didn't match Pod's required features", NodeFeatures, "NodeDeclaredFeatures"}, // from 1.35
		{"node(s) didn't match Pod's node affinity", NodeAffinity, "NodeAffinity"},
		{"node(s) didn't match node selector", NodeAffinity, "NodeAffinity"},
		{"node(s) didn't match scheduler-enforced node affinity", NodeAffinity, "NodeAffinity"},
		{"pod affinity terms conflict", NodeAffinity, "NodeAffinity"},
		{"node(s) didn't satisfy plugin(s) [NodeAffinity]", NodeAffinity, "NodeAffinity"},
		{"node(s) didn't satisfy plugin NodeAffinity", NodeAffinity, "NodeAffinity"},
		{"node(s) didn't match the requested", NodeName, "NodeName"},
		{"node(s) didn't have free ports", HostPort, "NodePorts"},
		{"node(s) didn't match pod affinity rules", PodAffinity, "InterPodAffinity"},
		{"node(s) didn't match pod anti-affinity rules", AntiAffinity, "InterPodAffinity"},
		{"node(s) didn't satisfy existing pods anti-affinity rules", AntiAffinity, "InterPodAffinity"},
		{"node(s) didn't match pod topology spread constraints", Spread, "PodTopologySpread"},
		{"node(s) had no available volume zone", VolumeZone, "VolumeZone"},
		{"node(s) had volume node affinity conflict", VolumeNode, "VolumeBinding"},
		{"node(s) didn't match PersistentVolume's node affinity", VolumeNode, "VolumeBinding"}, // from 1.33
		{"node(s) didn't find available persistent volumes to bind", NoVolume, "VolumeBinding"},
		{"node(s) did not have enough free storage", NoCapacity, "VolumeBinding"},
		{"node(s) unavailable due to one or more pvc(s) bound to non-existent", MissingPV, "VolumeBinding"},
		{"pvc(s) bound to non-existent pv(s)", MissingPV, "VolumeBinding"},
		{"pod has unbound immediate PersistentVolumeClaims", UnboundClaim, "VolumeBinding"},
		{"waiting for ephemeral volume controller", UnboundClaim, "VolumeBinding"},
		{"node(s) exceed max volume count", VolumeLimit, "NodeVolumeLimits"},
		{"node(s) had no available disk", VolumeInUse, "VolumeRestrictions"},
		{"node has pod using PersistentVolumeClaim", VolumeInUse, "VolumeRestrictions"},
		{"node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod", VolumeInUse, "VolumeRestrictions"},
		{"cannot allocate all claims", Device, "DynamicResources"},
		{"resourceclaim", Device, "DynamicResources"},
		{"resource claim", Device, "DynamicResources"},
		{"waiting for scheduling gates", Gated, "SchedulingGates"},
		{"waiting for minCount pods", Gang, "GangScheduling"},
		{"waiting for pods's pod group", Gang, "GangScheduling"},
		{"waiting for composite pod group", Gang, "GangScheduling"},
		{"waiting for the preemption", Preempting, "DefaultPreemption"},
	}
}

var (
	missingClaim  = regexp.MustCompile(`(?i)^persistentvolumeclaim "[^"]*" (not found|is being deleted)`)
	missingVolume = regexp.MustCompile(
		`(?i)^persistentvolumeclaim "[^"]*" bound to non-existent|^persistentvolume "[^"]*" not found`)
	missingClass  = regexp.MustCompile(`(?i)^storageclass(\.storage\.k8s\.io)? "[^"]*" not found`)
	missingDriver = regexp.MustCompile(`^\S+ CSI driver is not installed on the node`) // from 1.35
	taintKey      = regexp.MustCompile(`taint \{([^:}]+): ([^}]*)\}`)
)

// generic is a reason at 1.20 that accompanies a more precise one.
const generic = "node(s) didn't match pod affinity/anti-affinity"

// classify returns the cause for a reason, and the plugin. Both are empty if no kube-scheduler
// plugin gives it.
func classify(text string) (cause Cause, plugin string) {
	switch {
	case missingClaim.MatchString(text):
		return MissingClaim, "VolumeBinding"
	case missingVolume.MatchString(text):
		return MissingPV, "VolumeBinding"
	case missingClass.MatchString(text):
		return MissingClass, "VolumeBinding"
	case missingDriver.MatchString(text):
		return VolumeLimit, "NodeVolumeLimits"
	}
	for _, k := range knownReasons() {
		if strings.HasPrefix(text, k.prefix) {
			if k.cause == Taint {
				return taintCause(text), k.plugin
			}
			return k.cause, k.plugin
		}
	}
	return "", ""
}

// Taints that the node controller sets. See k8s.io/api/core/v1, TaintNodeNotReady and others.
const nodeTaintPrefix = "node.kubernetes.io/"

// taintCause returns the cause for a reason about taints, which names one up to 1.33.
func taintCause(text string) Cause {
	m := taintKey.FindStringSubmatch(text)
	if m == nil {
		return Taint
	}
	return causeOfTaint(m[1])
}

func causeOfTaint(key string) Cause {
	switch strings.TrimPrefix(key, nodeTaintPrefix) {
	case "not-ready", "unreachable", "network-unavailable", "out-of-service":
		return NotReady
	case "unschedulable":
		return Cordoned
	}
	return Taint
}
