package trace

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/openb"
)

// Workload is one of the pod lists with which the authors of the trace compare policies.
type Workload struct {
	// Name is the part of the file's name that differs, such as "default" or "gpushare40".
	Name string
	path string
}

// Workloads returns the pod lists in the directory of the trace, by name. Without any the benchmark
// fails.
func Workloads(b testing.TB) (all []Workload) {
	b.Helper()
	const before, after = "openb_pod_list_", ".csv"
	paths, err := filepath.Glob(filepath.Join(directory(b), before+"*"+after))
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), before), after)
		all = append(all, Workload{Name: name, path: path})
	}
	if len(all) == 0 {
		b.Fatalf("%s has no pod list", directory(b))
	}
	return all
}

// Pods returns the pods of the list, in its order.
func (w Workload) Pods(b testing.TB) []*corev1.Pod {
	b.Helper()
	return list[corev1.Pod](b, w.path, "Pod", openb.Pods)
}

// GPUNodes returns the nodes with GPUs, on which the authors compare policies. As in their
// simulator, the number of pods limits no node.
func GPUNodes(b testing.TB) []*corev1.Node {
	b.Helper()
	nodes := list[corev1.Node](b, filepath.Join(directory(b), "openb_node_list_gpu_node.csv"), "Node", openb.Nodes)
	for _, n := range nodes {
		n.Status.Capacity[corev1.ResourcePods] = resource.MustParse("1001")
		n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1001")
	}
	return nodes
}

// Models returns the models of GPUs of which a pod requires one, or none if it may have any.
func Models(pod *corev1.Pod) []string {
	if pod.Spec.Affinity == nil {
		return nil
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	return required.NodeSelectorTerms[0].MatchExpressions[0].Values
}
