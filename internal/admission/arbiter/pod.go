package arbiter

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Pod is what a ledger needs of a pod. The informer keeps it in place of the pod.
type Pod struct {
	// ObjectMeta has the name, the namespace and the UID only, and the version, which informers need.
	metav1.ObjectMeta
	// Node that the pod is bound to, or "".
	Node string
	// Nominated is the node for which the pod's scheduler has evicted others, or "".
	Nominated string
	Scheduler string
	Priority  int32
	Need      scheduler.Amounts
	Ports     []Port
	// Critical pods make room for themselves: their kubelet evicts others.
	Critical bool
}

// Port is a port of a node that a pod needs.
type Port struct {
	IP       string
	Protocol corev1.Protocol
	Number   int32
}

// NewPod returns what a ledger needs of a pod.
func NewPod(pod *corev1.Pod) *Pod {
	return &Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID,
			ResourceVersion: pod.ResourceVersion},
		Node: pod.Spec.NodeName, Nominated: pod.Status.NominatedNodeName, Scheduler: pod.Spec.SchedulerName,
		Priority: scheduler.PodPriority(pod), Need: scheduler.PodRequests(pod), Ports: hostPorts(pod),
		Critical: isCritical(pod),
	}
}

func (p *Pod) key() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// systemCritical is the priority of system-cluster-critical (SystemCriticalPriority in
// pkg/apis/scheduling/types.go).
const systemCritical = 2_000_000_000

// isCritical reports whether a kubelet evicts other pods to admit the pod (IsCriticalPod in
// pkg/kubelet/types/pod_update.go).
func isCritical(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || scheduler.PodPriority(pod) >= systemCritical
}

// anyAddress is the address of a port without one. It conflicts with all addresses.
const anyAddress = "0.0.0.0"

// hostPorts returns the ports of the node that a pod needs as long as it runs, as the plugin
// NodePorts counts them.
func hostPorts(pod *corev1.Pod) []Port {
	var all []Port
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				all = append(all, Port{cmp.Or(p.HostIP, anyAddress), cmp.Or(p.Protocol, corev1.ProtocolTCP), p.HostPort})
			}
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; scheduler.IsSidecar(c) {
			add(c)
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	return all
}

// conflicts reports whether two pods cannot have both ports on one node.
func (p Port) conflicts(other Port) bool {
	return p.Number == other.Number && p.Protocol == other.Protocol &&
		(p.IP == other.IP || p.IP == anyAddress || other.IP == anyAddress)
}
