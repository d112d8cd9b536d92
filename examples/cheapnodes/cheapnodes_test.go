package cheapnodes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func TestCheapNodesArePreferred(t *testing.T) {
	for name, tt := range map[string]struct {
		args   string
		prices []string
		want   []int64
	}{
		"by ratio":               {`{}`, []string{"0.10", "0.20", "0.40"}, []int64{100, 50, 25}},
		"equal":                  {`{}`, []string{"0.3", "0.3"}, []int64{100, 100}},
		"free":                   {`{}`, []string{"0", "0.1"}, []int64{100, 0}},
		"not a price":            {`{}`, []string{"0.5", "", "cheap", "-1", "NaN"}, []int64{100, 50, 50, 50, 50}},
		"unknown prices are low": {`{"unknown": 0.1}`, []string{"0.5", ""}, []int64{20, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, err := New(t.Context(), scheduler.NewArguments([]byte(tt.args)), nil)
			if err != nil {
				t.Fatal(err)
			}
			pod, state := plugintest.NewPod("default", "p", nil), plugintest.NewState()
			var scores []scheduler.NodeScore
			for _, price := range tt.prices {
				node := plugintest.NewNode(
					&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"example.com/price": price}}})
				raw, status := plugin.Score(t.Context(), state, pod, node)
				if status != nil {
					t.Fatal(status)
				}
				scores = append(scores, scheduler.NodeScore{Score: raw})
			}
			if status := plugin.NormalizeScore(t.Context(), state, pod, scores); status != nil {
				t.Fatal(status)
			}
			var got []int64
			for _, s := range scores {
				got = append(got, s.Score)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
