package explain

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// detail adds the pod's requirements.
func (f *Finding) detail(in Input) {
	switch f.Cause {
	case PodAffinity:
		f.add(podTerms(in.Pod, false),
			"start a pod that the affinity selects in a topology domain with room, or relax the affinity")
	case AntiAffinity:
		f.add(podTerms(in.Pod, true), "add nodes, or relax the anti-affinity of this pod and of those that are running")
	case Spread:
		f.add(spreadTerms(in.Pod),
			"raise maxSkew, set whenUnsatisfiable: ScheduleAnyway, or make room in the topology domains with the fewest pods")
	case VolumeZone, VolumeNode:
		f.add(where(in), "make room on a node that reaches the volume, or move the volume")
	case VolumeInUse:
		f.add("", "stop the pod that uses the volume, or use an access mode for several pods")
	case VolumeLimit:
		f.add("", "add a node, or stop pods with volumes of the same driver")
	case Gang:
		f.add("", "create the other pods of the group")
	case NoVolume:
		f.add("", "create a PersistentVolume of the claim's class and size on one of the nodes")
	case Taint:
		f.add("", "add a toleration to the pod, or remove the taint")
	case NotReady:
		f.add("", "repair the nodes")
	case Cordoned:
		f.add("", "kubectl uncordon a node")
	}
}

func (f *Finding) add(text, fix string) {
	if text != "" {
		f.Text += " (" + text + ")"
	}
	f.Fix = fix
}

// podTerms describes the required affinity or anti-affinity to pods.
func podTerms(pod *corev1.Pod, anti bool) string {
	a := pod.Spec.Affinity
	var terms []corev1.PodAffinityTerm
	verb := "requires"
	switch {
	case a == nil:
	case anti && a.PodAntiAffinity != nil:
		verb, terms = "excludes", a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	case !anti && a.PodAffinity != nil:
		terms = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	var texts []string
	for _, t := range terms {
		texts = append(texts, fmt.Sprintf("%s pods %s in the same %s", verb, metav1.FormatLabelSelector(t.LabelSelector),
			t.TopologyKey))
	}
	return strings.Join(texts, ", ")
}

// spreadTerms describes the required topology spread constraints.
func spreadTerms(pod *corev1.Pod) string {
	var texts []string
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			texts = append(texts, fmt.Sprintf("spreads pods %s over %s with maxSkew %d",
				metav1.FormatLabelSelector(c.LabelSelector), c.TopologyKey, c.MaxSkew))
		}
	}
	return strings.Join(texts, ", ")
}
