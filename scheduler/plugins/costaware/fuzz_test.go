package costaware

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// FuzzNodes scores nodes with any prices and sizes.
func FuzzNodes(f *testing.F) {
	f.Add("0.27", int64(4000), int64(1<<33), "1e9", int64(1), int64(1))
	f.Add("NaN", int64(0), int64(-1), "1e400", int64(1), int64(1))
	f.Fuzz(func(t *testing.T, price string, cpu, memory int64, otherPrice string, otherCPU, otherMemory int64) {
		plugin, err := New(t.Context(), scheduler.NewArguments([]byte(
			`{"factors": [{"label": "spot", "value": "yes", "factor": 1e-300}]}`)), nil)
		if err != nil {
			t.Fatal(err)
		}
		pod, state := plugintest.NewPod("shop", "p", plugintest.Requests("1", "1Gi")), plugintest.NewState()
		node := func(name, price string, cpu, memory int64) scheduler.NodeScore {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
				Labels: map[string]string{"pmk-sched.io/price": price, "spot": "yes"}}}
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI)}
			score, _ := plugin.Score(t.Context(), state, pod, plugintest.NewNode(n))
			return scheduler.NodeScore{Name: name, Score: score}
		}
		scores := []scheduler.NodeScore{node("a", price, cpu, memory), node("b", otherPrice, otherCPU, otherMemory)}
		plugin.NormalizeScore(t.Context(), state, pod, scores)
		for _, s := range scores {
			if s.Score < scheduler.MinNodeScore || s.Score > scheduler.MaxNodeScore {
				t.Errorf("scores %+v", scores)
			}
		}
	})
}
