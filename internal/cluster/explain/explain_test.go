package explain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newNode returns a node with CPUs and 8 GiB.
func newNode(name, cpu string, taints ...corev1.Taint) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "a"}},
		Spec: corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("8Gi"),
			corev1.ResourcePods: resource.MustParse("2"),
		}},
	}
}

// newPod returns a pod of scheduler s with a request of a resource.
func newPod(name, request, quantity string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop",
			CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))},
		Spec: corev1.PodSpec{SchedulerName: "s", Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceName(request): resource.MustParse(quantity)}},
		}}},
	}
}

// newInput returns a pending pod on three nodes, one of which is tainted, with a scheduler.
func newInput() Input {
	return Input{
		Namespace: "shop", Name: "web-0", Now: now, Pod: newPod("web-0", "cpu", "1"),
		Nodes: []corev1.Node{newNode("n1", "4"), newNode("n2", "4"),
			newNode("n3", "4", corev1.Taint{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule})},
		Usage:      map[string]*Usage{},
		Schedulers: []Scheduler{{Name: "default-scheduler"}, {Name: "s", Where: "Deployment/kube-system/s"}},
	}
}

// reject sets the condition PodScheduled.
func reject(pod *corev1.Pod, reason, message string) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: reason, Message: message}}
}

// occupy puts a pod on a node.
func occupy(in *Input, node string, pod *corev1.Pod) {
	if in.Usage[node] == nil {
		in.Usage[node] = &Usage{}
	}
	in.Usage[node].Add(pod, in.Pod)
}

func claimVolume(name string) []corev1.Volume {
	return []corev1.Volume{{Name: "data",
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
}

func newClaim(class, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, VolumeName: volume}}
}

func tolerateAll(in *Input) {
	in.Pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

// preemption is the suffix of a message in releases from 1.24 on.
const preemption = " preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."

// explained is a pending pod with its cause, and the messages that releases give it.
type explained struct {
	name string
	set  func(*Input)
	// messages are the messages of the condition PodScheduled by release, as the sources of the
	// releases print them.
	messages map[string]string
	want     Finding // Text and Fix are parts
}

func causes() []explained {
	hostname := metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	return []explained{
		{"CPU", func(in *Input) {
			tolerateAll(in)
			in.Pod = newPod("web-0", "cpu", "2500m")
			tolerateAll(in)
			for _, n := range []string{"n1", "n2", "n3"} {
				occupy(in, n, newPod("a", "cpu", "2"))
			}
		}, map[string]string{
			"1.20": "0/3 nodes are available: 3 Insufficient cpu.",
			"1.24": "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption " +
				"victims found for incoming pod.",
			"1.29": "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption " +
				"victims found for incoming pod.",
			"1.37": "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption " +
				"victims found for incoming pod.",
			"1.36": "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are " +
				"available: 3 No preemption victims found for incoming pod.",
		}, Finding{Cause: Resource, Resource: "cpu", By: "NodeResourcesFit", Nodes: 3, Text: "3 nodes lack 500m CPU",
			Fix: "free 500m CPU on node n1, request at most 2 instead of 2.5"}},
		{"CPU and a taint", func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "8")
		}, map[string]string{
			"1.20": "0/3 nodes are available: 1 node(s) had taint {team: x}, that the pod didn't tolerate, 2 Insufficient cpu.",
			"1.24": "0/3 nodes are available: 1 node(s) had untolerated taint {team: x}, 2 Insufficient cpu." + preemption,
			"1.36": "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. no new claims to " +
				"deallocate," + preemption,
		}, Finding{Cause: Resource, Resource: "cpu", Nodes: 2, Text: "2 nodes lack 4 CPU",
			Fix: "the pod requests 8 CPU, and no node has more than 4"}},
		{"memory", func(in *Input) {
			in.Pod = newPod("web-0", "memory", "9Gi")
			tolerateAll(in)
		}, map[string]string{"1.20": "0/3 nodes are available: 3 Insufficient memory.",
			"1.24": "0/3 nodes are available: 3 Insufficient memory." + preemption},
			Finding{Cause: Resource, Resource: "memory", By: "NodeResourcesFit", Nodes: 3, Text: "3 nodes lack 1Gi memory",
				Fix: "no node has more than 8Gi"}},
		{"too many pods", func(in *Input) {
			tolerateAll(in)
			for _, n := range []string{"n1", "n2", "n3"} {
				occupy(in, n, newPod("a", "cpu", "1m"))
				occupy(in, n, newPod("b", "cpu", "1m"))
			}
		}, map[string]string{"1.20": "0/3 nodes are available: 3 Too many pods.",
			"1.29": "0/3 nodes are available: 3 Too many pods." + preemption},
			Finding{Cause: Resource, Resource: "pods", By: "NodeResourcesFit", Nodes: 3,
				Text: "3 nodes lack 1 free place for pods", Fix: "maxPods"}},
		{"extended resource", func(in *Input) {
			in.Pod = newPod("web-0", "example.com/gpu", "1")
			tolerateAll(in)
		}, map[string]string{"1.20": "0/3 nodes are available: 3 Insufficient example.com/gpu.",
			"1.36": "0/3 nodes are available: 3 Insufficient example.com/gpu. no new claims to deallocate," + preemption},
			Finding{Cause: Resource, Resource: "example.com/gpu", By: "NodeResourcesFit", Nodes: 3,
				Text: "3 nodes lack 1 example.com/gpu"}},
		{"taint", func(in *Input) {
			in.Nodes = in.Nodes[2:]
		}, map[string]string{
			"1.20": "0/1 nodes are available: 1 node(s) had taint {team: x}, that the pod didn't tolerate.",
			"1.24": "0/1 nodes are available: 1 node(s) had untolerated taint {team: x}. preemption: 0/1 nodes are available: " +
				"1 Preemption is not helpful for scheduling.",
			"1.29": "0/1 nodes are available: 1 node(s) had untolerated taint {team: x}. preemption: 0/1 nodes are available: " +
				"1 Preemption is not helpful for scheduling.",
			"1.37": "0/1 nodes are available: 1 node(s) had untolerated taint(s). All PostFilter plugins are skipped",
			"1.36": "0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate, preemption: " +
				"0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
		}, Finding{Cause: Taint, By: "TaintToleration", Nodes: 1, Text: "1 node has the untolerated taint team=x:NoSchedule",
			Fix: "add a toleration of team=x:NoSchedule"}},
		{"node not ready", func(in *Input) {
			in.Nodes = []corev1.Node{newNode("n1", "4",
				corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})}
		}, map[string]string{
			"1.20": "0/1 nodes are available: 1 node(s) had taint {node.kubernetes.io/not-ready: }, that the pod didn't " +
				"tolerate.",
			"1.24": "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.",
			"1.37": "0/1 nodes are available: 1 node(s) had untolerated taint(s).",
		}, Finding{Cause: NotReady, By: "TaintToleration", Nodes: 1,
			Text: "1 node is not ready: taint node.kubernetes.io/not-ready:NoSchedule"}},
		{"cordoned", func(in *Input) {
			in.Nodes = in.Nodes[:1]
			in.Nodes[0].Spec.Unschedulable = true
			in.Nodes[0].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
		}, map[string]string{"1.20": "0/1 nodes are available: 1 node(s) were unschedulable.",
			"1.37": "0/1 nodes are available: 1 node(s) were unschedulable." + preemption},
			Finding{Cause: Cordoned, By: "NodeUnschedulable", Nodes: 1, Text: "1 node is cordoned", Fix: "kubectl uncordon n1"}},
		{"node selector", func(in *Input) {
			tolerateAll(in)
			in.Pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		}, map[string]string{
			"1.20": "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity.",
			"1.24": "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector." + preemption,
		}, Finding{Cause: NodeAffinity, By: "NodeAffinity", Nodes: 3, Text: "3 nodes do not match the pod's disk=ssd",
			Fix: "label a node"}},
		{"node name in the affinity", func(in *Input) {
			tolerateAll(in)
			in.Pod.Spec.Affinity = &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name",
						Operator: corev1.NodeSelectorOpIn, Values: []string{"gone"}}}}},
				}}}
		}, map[string]string{
			"1.24": "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
			"1.29": "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity]." + preemption,
		}, Finding{Cause: NodeAffinity, By: "NodeAffinity", Nodes: 3, Text: "metadata.name In gone"}},
		{"pod affinity", func(in *Input) {
			in.Pod.Spec.Affinity = &corev1.Affinity{
				PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{LabelSelector: &hostname, TopologyKey: corev1.LabelTopologyZone}}}}
		}, map[string]string{
			"1.20": "0/3 nodes are available: 3 node(s) didn't match pod affinity rules, 3 node(s) didn't match pod " +
				"affinity/anti-affinity.",
			"1.24": "0/3 nodes are available: 3 node(s) didn't match pod affinity rules." + preemption,
		}, Finding{Cause: PodAffinity, By: "InterPodAffinity", Nodes: 3,
			Text: "requires pods app=web in the same topology.kubernetes.io/zone"}},
		{"pod anti-affinity", func(in *Input) {
			in.Pod.Spec.Affinity = &corev1.Affinity{
				PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{LabelSelector: &hostname, TopologyKey: corev1.LabelHostname}}}}
		}, map[string]string{
			"1.20": "0/3 nodes are available: 3 node(s) didn't match pod affinity/anti-affinity, 3 node(s) didn't match pod " +
				"anti-affinity rules.",
			"1.24": "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules. preemption: 0/3 nodes are " +
				"available: 3 No preemption victims found for incoming pod.",
		}, Finding{Cause: AntiAffinity, By: "InterPodAffinity", Nodes: 3,
			Text: "excludes pods app=web in the same kubernetes.io/hostname"}},
		{"anti-affinity of other pods", func(*Input) {}, map[string]string{
			"1.20": "0/3 nodes are available: 3 node(s) didn't match pod affinity/anti-affinity, 3 node(s) didn't satisfy " +
				"existing pods anti-affinity rules.",
			"1.24": "0/3 nodes are available: 3 node(s) didn't satisfy existing pods anti-affinity rules.",
		}, Finding{Cause: AntiAffinity, By: "InterPodAffinity", Nodes: 3, Text: "existing pods anti-affinity"}},
		{"topology spread", func(in *Input) {
			in.Pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1,
				TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &hostname}}
		}, map[string]string{
			"1.20": "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints.",
			"1.37": "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints (missing required label)." +
				preemption,
		}, Finding{Cause: Spread, By: "PodTopologySpread", Nodes: 3,
			Text: "spreads pods app=web over topology.kubernetes.io/zone with maxSkew 1", Fix: "raise maxSkew"}},
		{"host port", func(in *Input) {
			tolerateAll(in)
			in.Pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, Protocol: corev1.ProtocolTCP}}
			other := newPod("ingress", "cpu", "1m")
			other.Spec.Containers[0].Ports = in.Pod.Spec.Containers[0].Ports
			for _, n := range []string{"n1", "n2", "n3"} {
				occupy(in, n, other)
			}
		},
			map[string]string{"1.20": "0/3 nodes are available: 3 node(s) didn't have free ports for the requested pod ports."},
			Finding{Cause: HostPort, By: "NodePorts", Nodes: 3,
				Text: "3 nodes have no free host port TCP/80, used by shop/ingress"}},
		{"host port of a sidecar, of the same protocol", func(in *Input) {
			tolerateAll(in)
			always := corev1.ContainerRestartPolicyAlways
			in.Pod.Spec.InitContainers = []corev1.Container{
				{Ports: []corev1.ContainerPort{{HostPort: 70}}}, // it ends before the node is shared
				{RestartPolicy: &always, Ports: []corev1.ContainerPort{{HostPort: 80}, {HostPort: 80, Protocol: "SCTP"}}},
			}
			sctp, ended := newPod("sctp", "cpu", "1m"), newPod("init", "cpu", "1m")
			sctp.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, Protocol: corev1.ProtocolSCTP}}
			ended.Spec.InitContainers = []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: 80}}}}
			udp := newPod("udp", "cpu", "1m")
			udp.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, Protocol: corev1.ProtocolUDP}, {HostPort: 70}}
			occupy(in, "n1", sctp)
			occupy(in, "n2", ended)
			occupy(in, "n2", udp)
		},
			map[string]string{"1.36": "0/3 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."},
			Finding{Cause: HostPort, By: "NodePorts", Nodes: 1,
				Text: "1 node has no free host port SCTP/80, used by shop/sctp"}},
		{"missing claim", func(in *Input) {
			in.Pod.Spec.Volumes, in.Claims = claimVolume("data"), []Claim{{Name: "data"}}
		}, map[string]string{
			"1.20": `0/3 nodes are available: 3 persistentvolumeclaim "data" not found.`,
			"1.24": `0/3 nodes are available: 3 persistentvolumeclaim "data" not found.` + preemption,
			"1.29": `0/3 nodes are available: persistentvolumeclaim "data" not found.` + preemption,
		}, Finding{Cause: MissingClaim, By: "VolumeBinding", Nodes: 3, Text: "claim shop/data does not exist",
			Fix: "create PersistentVolumeClaim shop/data"}},
		{"unbound claim", func(in *Input) {
			in.Classes = []storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "csi.example.com"}}
			in.Claims = []Claim{{Name: "data", Claim: newClaim("fast", ""), Event: "failed to provision volume: no space"}}
		}, map[string]string{
			"1.20": "0/3 nodes are available: 3 pod has unbound immediate PersistentVolumeClaims.",
			"1.24": "0/3 nodes are available: 3 pod has unbound immediate PersistentVolumeClaims." + preemption,
			"1.29": "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims." + preemption,
		}, Finding{Cause: UnboundClaim, By: "VolumeBinding", Nodes: 3,
			Text: "no volume of StorageClass fast (failed to provision volume: no space)",
			Fix:  "whether provisioner csi.example.com runs"}},
		{"missing StorageClass", func(in *Input) {
			in.Classes = []storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}}
			in.Claims = []Claim{{Name: "data", Claim: newClaim("fast", "")}}
		}, map[string]string{"1.29": "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims." +
			preemption},
			Finding{Cause: MissingClass, By: "VolumeBinding", Nodes: 3, Text: "StorageClass fast does not exist",
				Fix: "one of the cluster's: slow"}},
		{"missing volume", func(in *Input) {
			in.Claims = []Claim{{Name: "data", Claim: newClaim("fast", "pv-1")}}
		}, map[string]string{
			"1.20": "0/3 nodes are available: 3 pvc(s) bound to non-existent pv(s).",
			"1.24": "0/3 nodes are available: 3 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)." +
				preemption,
			"1.29": `0/3 nodes are available: persistentvolumeclaim "data" bound to non-existent persistentvolume "pv-1".` +
				preemption,
		}, Finding{Cause: MissingPV, By: "VolumeBinding", Nodes: 3, Text: "PersistentVolume pv-1, which does not exist"}},
		{"volume zone", func(in *Input) {
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1",
				Labels: map[string]string{corev1.LabelTopologyZone: "b__c"}}}
			in.Claims = []Claim{{Name: "data", Claim: newClaim("fast", "pv-1"), Volume: pv}}
		}, map[string]string{"1.20": "0/3 nodes are available: 3 node(s) had no available volume zone."},
			Finding{Cause: VolumeZone, By: "VolumeZone", Nodes: 3,
				Text: "volume pv-1 of claim data is in topology.kubernetes.io/zone=b,c"}},
		{"volume node affinity", func(in *Input) {
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"},
				Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{
						{MatchExpressions: []corev1.NodeSelectorRequirement{
							{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"gone"}}}}},
				}}}}
			in.Claims = []Claim{{Name: "data", Claim: newClaim("local", "pv-1"), Volume: pv}}
		}, map[string]string{
			"1.20": "0/3 nodes are available: 3 node(s) had volume node affinity conflict.",
			"1.29": `nodeinfo not found for node name "gone"`,
			"1.37": "0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity." + preemption,
		}, Finding{Cause: VolumeNode, By: "VolumeBinding", Nodes: 3,
			Text: "volume pv-1 of claim data requires kubernetes.io/hostname In gone"}},
		{"no volume to bind", func(*Input) {}, map[string]string{
			"1.20": "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind."},
			Finding{Cause: NoVolume, By: "VolumeBinding", Nodes: 3}},
		{"volume limit", func(*Input) {}, map[string]string{
			"1.20": "0/3 nodes are available: 3 node(s) exceed max volume count."},
			Finding{Cause: VolumeLimit, By: "NodeVolumeLimits", Nodes: 3}},
		{"volume in use", func(*Input) {}, map[string]string{
			"1.24": "0/3 nodes are available: 3 node has pod using PersistentVolumeClaim with the same name and " +
				"ReadWriteOncePod access mode.",
			"1.37": "0/3 nodes are available: 3 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access " +
				"mode already in-use by another pod.",
		}, Finding{Cause: VolumeInUse, By: "VolumeRestrictions", Nodes: 3}},
		{"resource claim", func(*Input) {}, map[string]string{
			"1.29": "0/3 nodes are available: 3 resourceclaim not available on the node.",
			"1.36": "0/3 nodes are available: 3 cannot allocate all claims. still not schedulable," + preemption,
		}, Finding{Cause: Device, By: "DynamicResources", Nodes: 3}},
		{"plugin", func(in *Input) {
			in.Schedulers[1].Plugins = []string{"LoadAware"}
		}, map[string]string{"1.24": "0/3 nodes are available: 3 memory load is 85% or more." + preemption},
			Finding{Cause: Plugin, By: "LoadAware", Nodes: 3, Text: "3 nodes: memory load is 85% or more, by LoadAware"}},
		{"extender rejects", func(in *Input) {
			in.Schedulers[1].Extenders = []string{"https://policy.kube-system.svc"}
		}, map[string]string{"1.24": "0/3 nodes are available: 3 not on Fridays, 2 at all."},
			Finding{Cause: ExtenderNo, By: "extender https://policy.kube-system.svc", Nodes: 3, Text: "not on Fridays"}},
		{"extender does not answer", func(in *Input) {
			in.Schedulers[1].Extenders = []string{"https://policy.kube-system.svc/v1"}
		}, map[string]string{
			"1.20": `Post "https://policy.kube-system.svc/v1/filter": dial tcp 10.0.0.1:443: connect: connection refused`,
			"1.37": `failed filter with extender at URL https://policy.kube-system.svc/v1/filter, code 500`,
		}, Finding{Cause: ExtenderDown, By: "https://policy.kube-system.svc/v1",
			Text: "extender https://policy.kube-system.svc/v1 failed"}},
		{"plugin fails", func(*Input) {}, map[string]string{
			"1.20": `running "LoadAware" filter plugin for pod "web-0": no metrics`,
			"1.24": `running "LoadAware" filter plugin: no metrics`,
			"1.29": `running PreFilter plugin "LoadAware": no metrics`,
			"1.33": `running "LoadAware" filter plugin: Get "http://prometheus:9090/api/v1/query": dial tcp: lookup prometheus: no such host`,
			"1.37": `rejected due to timeout after waiting 10s at plugin LoadAware`,
		}, Finding{Cause: PluginError, By: "LoadAware", Text: "plugin LoadAware failed"}},
		{"no nodes", func(in *Input) { in.Nodes = nil }, map[string]string{
			"1.20": "no nodes available to schedule pods", "1.37": "no nodes available to schedule pods"},
			Finding{Cause: NoNodes, Text: "the cluster has no nodes"}},
		{"gated", func(in *Input) {
			in.Pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
		}, map[string]string{"1.29": "Scheduling is blocked due to non-empty scheduling gates"},
			Finding{Cause: Gated, By: "SchedulingGates", Text: "the pod has the scheduling gates example.com/quota"}},
		{"no such scheduler", func(in *Input) { in.Pod.Spec.SchedulerName = "gone" }, map[string]string{"any": ""},
			Finding{Cause: NoScheduler, Text: "scheduler gone, which was not found: no Deployment of pmk-sched, no Lease and no readable " +
				"configuration of a kube-scheduler has this name; there are default-scheduler, s"}},
		{"scheduler without a leader", func(in *Input) {
			in.Schedulers[1].Problem = "Deployment/kube-system/s has no ready replica"
		}, map[string]string{"any": "", "1.24": "0/3 nodes are available: 3 Insufficient cpu."},
			Finding{Cause: Down, Text: "scheduler s does not schedule: Deployment/kube-system/s has no ready replica"}},
		{"not tried", func(*Input) {}, map[string]string{"any": ""}, Finding{
			Cause: NotTried, Text: "scheduler s has not reported the pod in 1m0s"}},
		{"preempting", func(in *Input) {
			in.Pod.Status.NominatedNodeName = "n1"
			victim := newPod("victim", "cpu", "3500m")
			victim.DeletionTimestamp = &metav1.Time{Time: now}
			occupy(in, "n1", victim)
		}, map[string]string{"1.24": "0/3 nodes are available: 3 Insufficient cpu."},
			Finding{Cause: Preempting, By: "DefaultPreemption",
				Text: "nominated to node n1, where 1 pod is terminating: shop/victim"}},
		{"terminating", func(in *Input) { in.Pod.DeletionTimestamp = &metav1.Time{Time: now} }, map[string]string{
			"any": ""}, Finding{Cause: Deleted}},
	}
}

func TestTheFirstFindingIsTheCause(t *testing.T) {
	for _, tc := range causes() {
		for release, message := range tc.messages {
			t.Run(tc.name+"/"+release, func(t *testing.T) {
				in := newInput()
				tc.set(&in)
				if message != "" {
					reject(in.Pod, corev1.PodReasonUnschedulable, message)
				}
				r := Pod(in)
				if r.State != Pending || len(r.Findings) == 0 {
					t.Fatalf("report %+v", r)
				}
				compare(t, r, tc.want)
			})
		}
	}
}

// compare compares the first finding with the wanted one.
func compare(t *testing.T, r *Report, want Finding) {
	t.Helper()
	got := r.Findings[0]
	if got.Cause != want.Cause || got.Resource != want.Resource || got.Nodes != want.Nodes || want.By != "" &&
		got.By != want.By {
		t.Errorf("got %+v, want %+v; all: %+v", got, want, r.Findings)
	}
	if !strings.Contains(got.Text, want.Text) || !strings.Contains(got.Fix, want.Fix) {
		t.Errorf("got text %q and fix %q, want %q and %q", got.Text, got.Fix, want.Text, want.Fix)
	}
	if !strings.HasPrefix(r.Summary, got.Text) {
		t.Errorf("the summary %q does not begin with %q", r.Summary, got.Text)
	}
}

func TestAllReasonsAreFindings(t *testing.T) {
	in := newInput()
	in.Pod = newPod("web-0", "cpu", "4")
	occupy(&in, "n1", newPod("a", "cpu", "1"))
	occupy(&in, "n2", newPod("a", "cpu", "1"))
	reject(in.Pod, corev1.PodReasonUnschedulable,
		"0/3 nodes are available: 1 node(s) had taint {team: x}, that the pod didn't tolerate, 2 Insufficient cpu.")
	r := Pod(in)
	var got []string
	for _, f := range r.Findings {
		got = append(got, fmt.Sprintf("%d %s", f.Nodes, f.Cause))
	}
	if want := "2 InsufficientResource, 1 Taint, 0 Priority"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if r.Message != in.Pod.Status.Conditions[0].Message {
		t.Errorf("message %q is not complete", r.Message)
	}
}

// If the pod's node selector excludes most nodes, the problem of the other nodes is the cause.
func TestExcludedNodesAreNotTheCause(t *testing.T) {
	cases := map[string]struct {
		label, message string
		want           Cause
	}{
		"few match": {"n3",
			"0/3 nodes are available: 1 node(s) had untolerated taint {team: x}, 2 node(s) didn't match Pod's node " +
				"affinity/selector.", Taint},
		"one lacks CPU": {"n1",
			"0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector.", Resource},
		"a taint elsewhere": {"n1",
			"0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had " +
				"untolerated taint {team: x}.", Resource},
		"cordoned elsewhere": {"n3",
			"0/3 nodes are available: 1 node(s) had untolerated taint {team: x}, 2 node(s) were unschedulable.", Taint},
		"no node matches": {"gone",
			"0/3 nodes are available: 1 node(s) had untolerated taint {team: x}, 2 node(s) didn't match Pod's node " +
				"affinity/selector.", NodeAffinity},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := newInput()
			in.Pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: tc.label}
			reject(in.Pod, corev1.PodReasonUnschedulable, tc.message)
			if got := Pod(in).Findings; got[0].Cause != tc.want {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}

func TestDifferentShortagesAreCounted(t *testing.T) {
	in := newInput()
	in.Pod = newPod("web-0", "cpu", "3")
	tolerateAll(&in)
	occupy(&in, "n1", newPod("a", "cpu", "1500m"))
	occupy(&in, "n2", newPod("a", "cpu", "1500m"))
	occupy(&in, "n3", newPod("a", "cpu", "3"))
	reject(in.Pod, corev1.PodReasonUnschedulable, "0/3 nodes are available: 3 Insufficient cpu.")
	compare(t, Pod(in), Finding{Cause: Resource, Resource: "cpu", Nodes: 3, Text: "2 nodes lack 500m CPU, 1 node lacks 2",
		Fix: "free 500m CPU on node n1, request at most 2.5 instead of 3"})
}

func TestFinishedPodsUseNothing(t *testing.T) {
	in := newInput()
	in.Pod = newPod("web-0", "cpu", "3")
	done := newPod("done", "cpu", "4")
	done.Status.Phase = corev1.PodSucceeded
	occupy(&in, "n1", done)
	reject(in.Pod, corev1.PodReasonUnschedulable, "0/3 nodes are available: 3 Insufficient cpu.")
	r := Pod(in)
	last := r.Findings[len(r.Findings)-1]
	if last.Cause != Retry || !strings.Contains(last.Text, "2 nodes have room for the pod: n1, n2") {
		t.Errorf("findings %+v", r.Findings)
	}
}

func TestPreemptionOfLowerPrioritiesIsExplained(t *testing.T) {
	never := corev1.PreemptNever
	cases := map[string]struct {
		policy  *corev1.PreemptionPolicy
		running int32
		want    string
	}{
		"same priority":  {nil, 5, "no running pod has a lower priority than 5"},
		"lower priority": {nil, 4, "would not make room"},
		"never":          {&never, 4, "preemptionPolicy is Never"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := newInput()
			priority := int32(5)
			in.Pod = newPod("web-0", "cpu", "3")
			in.Pod.Spec.Priority, in.Pod.Spec.PreemptionPolicy = &priority, tc.policy
			other := newPod("a", "cpu", "2")
			other.Spec.Priority = &tc.running
			occupy(&in, "n1", other)
			occupy(&in, "n2", other)
			reject(in.Pod, corev1.PodReasonUnschedulable,
				"0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found "+
					"for incoming pod.")
			for _, f := range Pod(in).Findings {
				if f.Cause == Priority && strings.Contains(f.Text, tc.want) {
					return
				}
			}
			t.Errorf("no finding has %q: %+v", tc.want, Pod(in).Findings)
		})
	}
}

func TestPlacedPod(t *testing.T) {
	in := newInput()
	in.Pod.Spec.NodeName = "n1"
	in.Pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1"}
	in.Events = []corev1.Event{{Reason: "Scheduled", Source: corev1.EventSource{Component: "s"},
		LastTimestamp: metav1.NewTime(now)}}
	r := Pod(in)
	if r.State != Bound || r.Node != "n1" {
		t.Fatalf("report %+v", r)
	}
	compare(t, r, Finding{Cause: Scheduled, Text: "scheduler s placed it on node n1 at 2026-01-02T03:04:05Z"})
	if f := r.Findings[1]; f.Cause != NodeAffinity || f.Nodes != 1 ||
		!strings.Contains(f.Text, "1 node matches kubernetes.io/hostname=n1") {
		t.Errorf("finding %+v", f)
	}
}

// An attempt that failed earlier says nothing about a pod that is bound.
func TestReportOfABoundPodHasNoMessageOfAnEarlierAttempt(t *testing.T) {
	in := newInput()
	in.Pod.Spec.NodeName = "n1"
	in.Events = []corev1.Event{{Reason: "FailedScheduling", Message: "0/3 nodes are available: 3 Insufficient cpu."}}
	if r := Pod(in); r.State != Bound || r.Message != "" {
		t.Errorf("report %+v", r)
	}
}

// Without a condition the last event counts; a condition that is left from a gate does not.
func TestEventOfASchedulerWithoutACondition(t *testing.T) {
	in := newInput()
	in.Events = []corev1.Event{{Reason: "FailedScheduling", Message: "no nodes available to schedule pods"}}
	reject(in.Pod, corev1.PodReasonSchedulingGated, "Scheduling is blocked due to non-empty scheduling gates")
	r := Pod(in)
	compare(t, r, Finding{Cause: NoNodes, Text: "the cluster has no nodes"})
	if r.Message != in.Events[0].Message {
		t.Errorf("message %q", r.Message)
	}
}

func TestPodThatIsNotCreated(t *testing.T) {
	event := func(message string) corev1.Event {
		return corev1.Event{Reason: "FailedCreate", Message: message,
			InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet", Name: "web-abc"}}
	}
	in := Input{Namespace: "shop", Name: "web", Now: now, Events: []corev1.Event{
		event(
			`Error creating: pods "web-abc-x" is forbidden: exceeded quota: small, requested: cpu=2, used: cpu=1, limited: cpu=2`),
		event(
			`Error creating: pods "web-abc-y" is forbidden: exceeded quota: small, requested: cpu=2, used: cpu=1, limited: cpu=2`),
	}}
	r := Pod(in)
	if r.State != Missing || len(r.Findings) != 1 {
		t.Fatalf("report %+v", r)
	}
	compare(t, r, Finding{Cause: Quota, By: "ReplicaSet web-abc", Text: "requested: cpu=2, used: cpu=1, limited: cpu=2",
		Fix: "raise the ResourceQuota"})
}

func FuzzParseFit(f *testing.F) {
	for _, tc := range causes() {
		for _, message := range tc.messages {
			f.Add(message)
		}
	}
	f.Fuzz(func(t *testing.T, message string) {
		in := newInput()
		reject(in.Pod, corev1.PodReasonUnschedulable, message)
		if r := Pod(in); len(r.Findings) == 0 || r.Summary == "" {
			t.Errorf("report %+v", r)
		}
	})
}

// A scheduler reports the first obstacle of a node; all of them have to be removed.
func TestAllObstaclesOfANodeAreFound(t *testing.T) {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}}}
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("1"), "pods": resource.MustParse("10")}
	in := Input{Pod: newPod("web-0", "cpu", "2"),
		Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, node}, Usage: map[string]*Usage{}}
	in.Pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	var by []string
	for _, f := range Node(in, "n") {
		by = append(by, f.By)
		if f.Nodes != 1 || f.Text == "" || f.Fix == "" {
			t.Errorf("%+v", f)
		}
	}
	if want := []string{"NodeAffinity", "TaintToleration", "NodeResourcesFit"}; !slices.Equal(by, want) {
		t.Errorf("got %v, want %v", by, want)
	}
	if found := Node(in, "none"); len(found) > 0 {
		t.Errorf("an unknown node has %v", found)
	}
}

// Up to 1.24.9 all plugins judge each node, so that the counts of the scheduler include nodes that
// the pod's node selector or a taint excludes.
func TestNodesThatAreExcludedAreNotCountedTwice(t *testing.T) {
	for name, tc := range map[string]struct {
		set     func(*Input)
		message string
		want    []string
		nodes   int
	}{
		"resources": {func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "8")
			in.Pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1"}
		},
			"0/3 nodes are available: 1 node(s) had untolerated taint {team: x}, 2 node(s) didn't match Pod's node " +
				"affinity/selector, 3 Insufficient cpu." + preemption,
			[]string{"1 node lacks 4 CPU (the scheduler counts 3, with nodes that the pod's node selector or a taint excludes)",
				"1 node: node(s) had untolerated taint {team: x}, which the pod's node selector excludes"}, 1},
		"resources and a taint": {func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "8")
		}, "0/3 nodes are available: 1 node(s) had untolerated taint {team: x}, 3 Insufficient cpu." + preemption,
			[]string{"2 nodes lack 4 CPU (the scheduler counts 3, with nodes that"}, 2},
		"affinity": {func(in *Input) {
			tolerateAll(in)
			in.Pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1"}
		},
			"0/3 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 3 node(s) didn't match pod " +
				"affinity rules." + preemption,
			[]string{
				"3 nodes: node(s) didn't match pod affinity rules; 1 node matches the pod's node selector, the scheduler counts " +
					"the others too"}, 3},
		"a node has left since": {func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "8")
			tolerateAll(in)
			in.Nodes = in.Nodes[:2]
		}, "0/3 nodes are available: 3 Insufficient cpu." +
			preemption, []string{"3 nodes: Insufficient cpu (now 2 nodes lack 4 CPU)"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput()
			tc.set(&in)
			reject(in.Pod, corev1.PodReasonUnschedulable, tc.message)
			findings := Pod(in).Findings
			all := ""
			for _, f := range findings {
				all += f.Text + "\n"
			}
			for _, text := range tc.want {
				if !strings.Contains(all, text) {
					t.Errorf("the findings lack %q:\n%s", text, all)
				}
			}
			if len(findings) == 0 || findings[0].Nodes != tc.nodes {
				t.Errorf("first finding %+v, want one of %d nodes", findings, tc.nodes)
			}
		})
	}
}

// A scheduler may run where no object shows it, and deploy refuses some names.
func TestSchedulerThatWasNotFoundIsNotDeniedAndOnlyDeployableOnesAreAdvised(t *testing.T) {
	pod := Process{Namespace: "scheduler-plugins", Pod: "x-1", Program: "kube-scheduler"}
	for name, tc := range map[string]struct {
		scheduler  string
		processes  []Process
		unknown    []string
		text, fix  string
		notAdvised string
	}{
		"deployable": {scheduler: "packer", text: "no Deployment of pmk-sched, no Lease", fix: "pmk-sched deploy --name packer"},
		"default": {scheduler: "", text: "no static pod runs it", fix: "see the log of that process",
			notAdvised: "pmk-sched deploy"},
		"a name of the cluster": {scheduler: "kube-scheduler", text: "was not found", fix: "that exists",
			notAdvised: "pmk-sched deploy"},
		"not a DNS label": {scheduler: "my.scheduler", text: "was not found", fix: "that exists",
			notAdvised: "pmk-sched deploy"},
		"it may run already": {scheduler: "gang", processes: []Process{pod}, notAdvised: "pmk-sched deploy",
			text: "one of these may be it: Pod/scheduler-plugins/x-1 runs kube-scheduler",
			fix:  "kubectl logs -n scheduler-plugins x-1"},
		"not everything can be read": {scheduler: "gang", unknown: []string{"list leases: no permission"},
			text: "among the objects that can be read", fix: "pmk-sched deploy --name gang"},
	} {
		in := Input{Pod: &corev1.Pod{Spec: corev1.PodSpec{SchedulerName: tc.scheduler}}, Processes: tc.processes,
			Unknown: tc.unknown}
		f := Pod(in).Findings[0]
		if f.Cause != NoScheduler || !strings.Contains(f.Text, tc.text) || !strings.Contains(f.Fix, tc.fix) ||
			tc.notAdvised != "" && strings.Contains(f.Fix, tc.notAdvised) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
