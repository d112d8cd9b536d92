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

// Workloads returns the workloads that differ in kind. The names gpuspec, gpushare and multigpu
// with a percentage are those of the lists openb_pod_list_*.csv of the trace's authors, which have
// pods in the same numbers, drawn by chance; gpushare0 extends their series.
func Workloads() []Workload {
	return []Workload{
		{"default", "The pods of the trace.", func(_ []*corev1.Node, pods []*corev1.Pod) []*corev1.Pod { return pods }},
		{"gpuspec33", "Every third pod with GPUs requires models of GPUs, drawn in the proportions of the authors' list " +
			"among those that have room for the pod.", withModels(ofAuthors)},
		{"gpumodel33", "Every third pod with GPUs requires a model of GPU, drawn in proportion to the nodes that have it " +
			"among those that have room for the pod.", withModels(byNodes)},
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

// request is models of GPUs, of which a pod may have any, and how often they are requested.
type request struct {
	models []string
	weight int
}

// byNodes returns each model, as often as nodes have it.
func byNodes(nodes []*corev1.Node) (all []request) {
	for _, n := range nodes {
		model := n.Labels[openb.GPUModel]
		i := slices.IndexFunc(all, func(r request) bool { return r.models[0] == model })
		if i < 0 {
			i, all = len(all), append(all, request{models: []string{model}})
		}
		all[i].weight++
	}
	return all
}

// ofAuthors returns the models in the column gpu_spec of the authors' list
// openb_pod_list_gpuspec33.csv, without those that occur less than ten times.
func ofAuthors([]*corev1.Node) []request {
	return []request{
		{[]string{"T4"}, 1291},
		{[]string{"G2"}, 331},
		{[]string{"P100"}, 279},
		{[]string{"V100M16", "V100M32"}, 163},
		{[]string{"P100", "V100M16", "V100M32"}, 103},
		{[]string{"G3"}, 86},
		{[]string{"G2", "P100", "T4", "V100M16", "V100M32"}, 39},
		{[]string{"P100", "T4", "V100M16", "V100M32"}, 33},
		{[]string{"A10", "G2", "T4", "V100M16", "V100M32"}, 24},
		{[]string{"V100M32"}, 20},
	}
}

// withModels returns the rule that every third pod with GPUs requires models. The result is always
// the same.
func withModels(requests func([]*corev1.Node) []request) func([]*corev1.Node, []*corev1.Pod) []*corev1.Pod {
	return func(nodes []*corev1.Node, pods []*corev1.Pod) []*corev1.Pod {
		random := rand.New(rand.NewPCG(33, 0)) //nolint:gosec // a simulation
		all, result, withGPUs := requests(nodes), slices.Clone(pods), 0
		for i, pod := range pods {
			if Request(pod) == 0 {
				continue
			}
			if withGPUs++; withGPUs%3 != 0 {
				continue
			}
			var possible [][]string
			for _, r := range all {
				room := func(n *corev1.Node) bool {
					return slices.Contains(r.models, n.Labels[openb.GPUModel]) && hasRoom(n, pod)
				}
				if slices.ContainsFunc(nodes, room) {
					possible = append(possible, slices.Repeat([][]string{r.models}, r.weight)...)
				}
			}
			if len(possible) > 0 {
				result[i] = requireModels(pod, possible[random.IntN(len(possible))])
			}
		}
		return result
	}
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

func requireModels(pod *corev1.Pod, models []string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: openb.GPUModel, Operator: corev1.NodeSelectorOpIn, Values: models,
			}},
		}}},
	}}
	return pod
}

// Models returns the models of GPUs of which a pod of a workload requires one, or none if it may
// have any.
func Models(pod *corev1.Pod) []string {
	if pod.Spec.Affinity == nil {
		return nil
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	return required.NodeSelectorTerms[0].MatchExpressions[0].Values
}
