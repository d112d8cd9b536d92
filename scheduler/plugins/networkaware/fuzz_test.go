package networkaware

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// FuzzValues scores nodes whose objects have any values.
func FuzzValues(f *testing.F) {
	f.Add("10Mi", "12ms", 20.0)
	f.Add("1e400", "5e-324", 0.0)
	f.Add("9999999999999999999e99999999", "-1E", 1e308)
	f.Fuzz(func(t *testing.T, first, second string, third float64) {
		plugin, list, cycle := newPlugin(t, minimal+`}`), nodes(4), plugintest.NewState()
		for name, value := range map[string]interface{}{"node-0": first, "node-1": second, "node-2": third} {
			_ = plugin.values.set(metric(name, value)) // a value that cannot be read is ignored
		}
		plugin.PreScore(t.Context(), cycle, &corev1.Pod{}, list)
		for _, n := range list {
			score, _ := plugin.Score(t.Context(), cycle, &corev1.Pod{}, n)
			if score < scheduler.MinNodeScore || score > scheduler.MaxNodeScore {
				t.Errorf("%s has the score %d", n.Node().Name, score)
			}
		}
	})
}
