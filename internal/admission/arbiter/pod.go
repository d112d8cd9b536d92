package arbiter

import (
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
	Ports     []scheduler.HostPort
	// Critical pods make room for themselves: their kubelet evicts others.
	Critical bool
}

// NewPod returns what a ledger needs of a pod.
func NewPod(pod *corev1.Pod) *Pod {
	return &Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID,
			ResourceVersion: pod.ResourceVersion},
		Node: pod.Spec.NodeName, Nominated: pod.Status.NominatedNodeName, Scheduler: pod.Spec.SchedulerName,
		Priority: scheduler.PodPriority(pod), Need: scheduler.PodRequests(pod), Ports: scheduler.HostPorts(pod),
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
