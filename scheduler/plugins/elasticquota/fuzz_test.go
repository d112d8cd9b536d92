package elasticquota

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// FuzzElasticQuota compares a pod with the limits of any ElasticQuota.
func FuzzElasticQuota(f *testing.F) {
	f.Add([]byte(`{"metadata": {"name": "q", "namespace": "a"}, "spec": {"min": {"cpu": 4}, "max": {"cpu": "8"}}}`))
	f.Add([]byte(`{"spec": {"max": {"cpu": "1e-999999999", "memory": "9999999999999999999e99999999"}}}`))
	need := scheduler.PodRequests(plugintest.NewPod("a", "p", plugintest.Requests("1", "1Gi")))
	f.Fuzz(func(t *testing.T, text []byte) {
		var content map[string]interface{}
		if utiljson.Unmarshal(text, &content) != nil {
			return
		}
		q, err := parse(&unstructured.Unstructured{Object: content})
		if err != nil {
			return
		}
		for name, most := range q.max {
			if most < 0 || q.min[name] < 0 || q.min[name] > most {
				t.Errorf("%s: min %d, max %d", name, q.min[name], most)
			}
		}
		for name, excess := range q.beyondMax(amounts{}, need) {
			if excess <= 0 || excess > need[name] {
				t.Errorf("%s: an excess of %d", name, excess)
			}
		}
		q.guarantees(need, need)
	})
}
