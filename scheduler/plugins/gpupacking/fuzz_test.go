package gpupacking

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// FuzzNode places a pod on a node whose status and whose pod's annotation have any values.
func FuzzNode(f *testing.F) {
	f.Add(int64(32), int64(2), int64(6), int64(6), "1")
	f.Add(int64(1<<60), int64(1<<60), int64(1), int64(1), "0,0")
	f.Add(int64(math.MaxInt64), int64(256), int64(1), int64(math.MaxInt64), "0,1,2")
	g := newPlugin(f, &plugintest.Handle{}, "")
	f.Fuzz(func(t *testing.T, mem, count, request, used int64, devices string) {
		list := func(mem int64) corev1.ResourceList {
			return corev1.ResourceList{"aliyun.com/gpu-mem": *resource.NewQuantity(mem, resource.DecimalSI)}
		}
		running := plugintest.NewPod("shop", "running", list(used))
		running.Annotations = map[string]string{"ALIYUN_COM_GPU_MEM_IDX": devices}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		n.Status.Allocatable = list(mem)
		n.Status.Allocatable["aliyun.com/gpu-count"] = *resource.NewQuantity(count, resource.DecimalSI)
		node, pod, state := plugintest.NewNode(n, running), plugintest.NewPod("shop", "new", list(request)),
			plugintest.NewState()
		if r, ok := g.roomOf(node, ""); ok {
			for _, free := range r.free {
				if free < 0 || free > r.whole || len(r.free) > maxDevices {
					t.Errorf("room %+v", r)
				}
			}
		}
		g.PreFilter(t.Context(), state, pod)
		g.Filter(t.Context(), state, pod, node)
		score, _ := g.Score(t.Context(), state, pod, node)
		scores := []scheduler.NodeScore{{Name: "n", Score: score}, {Name: "none", Score: noDevices}}
		g.NormalizeScore(t.Context(), state, pod, scores)
		for _, s := range scores {
			if s.Score < scheduler.MinNodeScore || s.Score > scheduler.MaxNodeScore {
				t.Errorf("a score of %d becomes %+v", score, scores)
			}
		}
	})
}
