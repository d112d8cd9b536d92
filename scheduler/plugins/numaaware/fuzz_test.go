package numaaware

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// FuzzTopology places and scores a pod with any NodeResourceTopology.
func FuzzTopology(f *testing.F) {
	for _, u := range []*unstructured.Unstructured{
		topologyOf("n", "single-numa-node", "pod", "8 16Gi 4", "1e17 - -5"),
		topologyOf("n", "single-numa-node", "container", "9e18 1e-999999999"),
	} {
		text, err := json.Marshal(u.Object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	n := needOf(podOf("p", container("2", 1, true), container("1", 0, true)))
	f.Fuzz(func(t *testing.T, text []byte) {
		var content map[string]interface{}
		if utiljson.Unmarshal(text, &content) != nil {
			return
		}
		read, err := readTopology(&unstructured.Unstructured{Object: content})
		if err != nil {
			return
		}
		topology := read.(*topology)
		zones := topology.without(n.all)
		var placed placement
		if !topology.place(n, zones, &placed) {
			return
		}
		for _, strategy := range []string{StrategyLeastAllocated, StrategyMostAllocated} {
			score := topology.score(topology.parts(n), zones, &placed, strategy)
			if score < scheduler.MinNodeScore || score > scheduler.MaxNodeScore {
				t.Errorf("%s: score %d", strategy, score)
			}
		}
	})
}
