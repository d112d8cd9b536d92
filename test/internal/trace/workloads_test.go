package trace_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/openb"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

// pods returns 3 pods without GPUs and 16 pods that request 15 GPUs: 5 in shares, 6 with several.
func pods() (all []*corev1.Pod) {
	add := func(count int, gpu int64) {
		for range count {
			all = append(all, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(len(all))},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
					Requests: requests(1, gpu),
				}}}},
			})
		}
	}
	add(3, 0)
	add(10, 500)
	add(4, 1000)
	add(1, 2000)
	add(1, 4000)
	return all
}

func requests(cpu, gpu int64) corev1.ResourceList {
	list := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)}
	if gpu > 0 {
		list[trace.GPU] = *resource.NewQuantity(gpu, resource.DecimalSI)
	}
	return list
}

func node(model string, cpu, gpu int64) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{openb.GPUModel: model}},
		Status: corev1.NodeStatus{Allocatable: requests(cpu, gpu)}}
}

func workload(t *testing.T, name string, pods []*corev1.Pod, nodes ...*corev1.Node) []*corev1.Pod {
	t.Helper()
	all := trace.Workloads()
	i := slices.IndexFunc(all, func(w trace.Workload) bool { return w.Name == name })
	if i < 0 {
		t.Fatalf("no workload %s", name)
	}
	return all[i].Make(nodes, pods)
}

func TestWorkloadsHaveTheNumbersOfTheirRules(t *testing.T) {
	type sums struct {
		// None are the pods without GPUs, and GPU those with GPUs.
		None, GPU int
		// Shares and Several are parts of the requested GPUs, in percent.
		Shares, Several float64
	}
	for name, want := range map[string]sums{
		"default":     {None: 3, GPU: 16, Shares: 33, Several: 40},
		"gpuspec33":   {None: 3, GPU: 16, Shares: 33, Several: 40},
		"gpumodel33":  {None: 3, GPU: 16, Shares: 33, Several: 40},
		"gpushare0":   {None: 3, GPU: 16, Shares: 0, Several: 56},  // 14 of 25 GPUs
		"gpushare60":  {None: 3, GPU: 16, Shares: 62, Several: 19}, // 6.5 and 2 of 10.5 GPUs
		"gpushare100": {None: 3, GPU: 16, Shares: 100, Several: 0},
		"multigpu50":  {None: 3, GPU: 17, Shares: 29, Several: 47}, // 5 and 8 of 17 GPUs
	} {
		var got sums
		var all, shares, several float64
		for _, pod := range workload(t, name, pods(), node("T4", 8, 4000)) {
			gpu := trace.Request(pod)
			all += float64(gpu)
			switch {
			case gpu == 0:
				got.None++
				continue
			case gpu < trace.Whole:
				shares += float64(gpu)
			case gpu > trace.Whole:
				several += float64(gpu)
			}
			got.GPU++
		}
		got.Shares, got.Several = math.Round(100*shares/all), math.Round(100*several/all)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEveryThirdPodRequiresAModelThatHasRoomForIt(t *testing.T) {
	nodes := []*corev1.Node{node("T4", 8, 1000), node("P100", 8, 2000), node("G2", 8, 4000), node("", 8, 0),
		node("G3", 0, 8000)}
	given := pods()
	for name, want := range map[string][]string{
		"gpumodel33": {"500 G2", "500 G2", "500 P100", "1000 T4", "2000 G2"},
		"gpuspec33":  {"500 P100|V100M16|V100M32", "500 P100", "500 T4", "1000 T4", "2000 G2"},
	} {
		var got []string
		for _, pod := range workload(t, name, given, nodes...) {
			if models := trace.Models(pod); len(models) > 0 {
				got = append(got, fmt.Sprint(trace.Request(pod), " ", strings.Join(models, "|")))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(pods(), given); diff != "" {
		t.Errorf("the pods of the trace have changed:\n%s", diff)
	}
}
