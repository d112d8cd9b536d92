// Package trace reads Alibaba's openb trace for benchmarks, the nodes and pods of a cluster with
// GPUs, and the pod lists of other kinds that its authors made from it.
package trace

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/openb"
)

// variable names the directory with the lists of the trace.
const variable = "PMK_SCHED_OPENB"

// GPU is the extended resource of the trace.
const GPU = corev1.ResourceName(openb.GPUMilli)

// Whole is the amount of the resource that a GPU has.
const Whole = 1000

// directory returns the directory with the lists of the trace.
func directory(b testing.TB) string {
	b.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		b.Fatalf("set %s to a directory with the lists openb_*.csv: directory data/csv of "+
			"github.com/hkust-adsl/kubernetes-scheduler-simulator", variable)
	}
	return dir
}

// Files returns the paths of the lists of all nodes and pods of the trace itself.
func Files(b testing.TB) (nodes, pods string) {
	b.Helper()
	dir := directory(b)
	return filepath.Join(dir, "openb_node_list_all_node.csv"), filepath.Join(dir, "openb_pod_list_default.csv")
}

// Read returns all nodes and pods of the trace itself.
func Read(b testing.TB) ([]*corev1.Node, []*corev1.Pod) {
	b.Helper()
	nodes, pods := Files(b)
	return list[corev1.Node](b, nodes, "Node", openb.Nodes), list[corev1.Pod](b, pods, "Pod", openb.Pods)
}

// Request returns how much of a GPU a pod requests, in thousandths.
func Request(pod *corev1.Pod) int64 {
	amount := pod.Spec.Containers[0].Resources.Requests[GPU]
	return amount.Value()
}

// list reads the objects of one kind: the list of pods begins with their namespace.
func list[T any](b testing.TB, name, kind string, read func(io.Reader, func(map[string]any) error) error) []*T {
	b.Helper()
	file, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	var all []*T
	if err := read(file, func(object map[string]any) error {
		if object["kind"] != kind {
			return nil
		}
		typed := new(T)
		all = append(all, typed)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed)
	}); err != nil {
		b.Fatal(err)
	}
	return all
}
