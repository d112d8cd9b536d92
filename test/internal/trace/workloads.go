package trace

import (
	"math"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/openb"
)

// Workload is a list of pods that a rule makes from those of the trace.
type Workload struct {
	Name string
	// Rule is a sentence for the documentation.
	Rule string
	// Make returns the pods of the workload. It changes neither the nodes nor the pods of the trace.
	Make func(nodes []*corev1.Node, pods []*corev1.Pod) []*corev1.Pod
}

// Workloads returns the workloads that differ in kind. The names gpushare and multigpu with a
// percentage are those of the lists openb_pod_list_*.csv of the trace's authors, which have pods in
// the same numbers, drawn by chance; gpushare0 extends their series.
func Workloads() []Workload {
	return []Workload{
		{"default", "The pods of the trace.", func(_ []*corev1.Node, pods []*corev1.Pod) []*corev1.Pod { return pods }},
		{"gpumodel33", "Every third pod with GPUs requires the model of a node, which is drawn among the nodes that have " +
			"room for the pod when they are empty.", requireModels},
		{"gpushare0", "As many pods with GPUs as in the trace, all with whole GPUs.", withShares(0)},
		{"gpushare60", "As many pods with GPUs as in the trace; pods with a share of a GPU request 60 % of the GPUs.",
			withShares(0.6)},
		{"gpushare100", "As many pods with GPUs as in the trace, all with a share of a GPU.", withShares(1)},
		{"multigpu50", "Pods with several GPUs are repeated until they request 50 % of the GPUs.", withSeveral(0.5)},
	}
}

// kinds are the pods of the trace by their request of GPUs.
type kinds struct{ none, share, one, several []*corev1.Pod }

func kindsOf(pods []*corev1.Pod) (k kinds) {
	for _, pod := range pods {
		switch gpu := Request(pod); {
		case gpu == 0:
			k.none = append(k.none, pod)
		case gpu < Whole:
			k.share = append(k.share, pod)
		case gpu == Whole:
			k.one = append(k.one, pod)
		default:
			k.several = append(k.several, pod)
		}
	}
	return k
}

// withShares returns the rule for pods with shares that request a part of all requested GPUs.
func withShares(part float64) func([]*corev1.Node, []*corev1.Pod) []*corev1.Pod {
	return func(_ []*corev1.Node, pods []*corev1.Pod) []*corev1.Pod {
		k := kindsOf(pods)
		whole := slices.Concat(k.one, k.several)
		both := float64(len(k.share) + len(whole))
		share := both * part * mean(whole) / (part*mean(whole) + (1-part)*mean(k.share))
		shares := int(math.Round(share))
		return slices.Concat(k.none, stretch(k.share, shares), stretch(whole, int(both)-shares))
	}
}

// withSeveral returns the rule for pods with several GPUs that request a part of all requested
// GPUs.
func withSeveral(part float64) func([]*corev1.Node, []*corev1.Pod) []*corev1.Pod {
	return func(_ []*corev1.Node, pods []*corev1.Pod) []*corev1.Pod {
		k := kindsOf(pods)
		others := total(k.share) + total(k.one)
		count := int(math.Round(part / (1 - part) * others / mean(k.several)))
		return slices.Concat(k.none, k.share, k.one, stretch(k.several, count))
	}
}

// stretch returns count pods in which each of the pods occurs equally often, or once more.
func stretch(pods []*corev1.Pod, count int) []*corev1.Pod {
	stretched := make([]*corev1.Pod, count)
	for i := range stretched {
		stretched[i] = pods[i*len(pods)/count]
	}
	return stretched
}

func total(pods []*corev1.Pod) (sum float64) {
	for _, pod := range pods {
		sum += float64(Request(pod))
	}
	return sum
}

func mean(pods []*corev1.Pod) float64 { return total(pods) / float64(len(pods)) }

// requireModels makes every third pod with GPUs require a model of GPU. The result is always the
// same.
func requireModels(nodes []*corev1.Node, pods []*corev1.Pod) []*corev1.Pod {
	random := rand.New(rand.NewPCG(33, 0)) //nolint:gosec // a simulation
	result := slices.Clone(pods)
	withGPUs := 0
	for i, pod := range pods {
		if Request(pod) == 0 {
			continue
		}
		if withGPUs++; withGPUs%3 != 0 {
			continue
		}
		var models []string
		for _, n := range nodes {
			if hasRoom(n, pod) {
				models = append(models, n.Labels[openb.GPUModel])
			}
		}
		if len(models) > 0 {
			result[i] = requireModel(pod, models[random.IntN(len(models))])
		}
	}
	return result
}

// hasRoom reports whether an empty node has what a pod requests.
func hasRoom(node *corev1.Node, pod *corev1.Pod) bool {
	for name, amount := range pod.Spec.Containers[0].Resources.Requests {
		if has := node.Status.Allocatable[name]; has.Cmp(amount) < 0 {
			return false
		}
	}
	return true
}

func requireModel(pod *corev1.Pod, model string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: openb.GPUModel, Operator: corev1.NodeSelectorOpIn, Values: []string{model},
			}},
		}}},
	}}
	return pod
}

// Model returns the model of GPU that a pod of a workload requires, or "" if it may have any.
func Model(pod *corev1.Pod) string {
	if pod.Spec.Affinity == nil {
		return ""
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	return required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
}
