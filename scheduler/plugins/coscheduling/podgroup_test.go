package coscheduling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

func podGroupObject(namespace, name string, spec map[string]interface{}) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]interface{}{
		"metadata": map[string]interface{}{"namespace": namespace, "name": name}, "spec": spec,
	}}
}

func TestPodGroupsAreReadAndForgotten(t *testing.T) {
	var changed []string
	g := customresource.NewValues(readPodGroup, func(key string) { changed = append(changed, key) })
	for _, test := range []struct {
		spec  map[string]interface{}
		want  podGroup
		found bool
	}{
		{map[string]interface{}{"minMember": int64(3)}, podGroup{minMember: 3}, true},
		{map[string]interface{}{"minMember": int64(2), "scheduleTimeoutSeconds": int64(30), "minResources": "ignored"},
			podGroup{2, 30 * time.Second}, true},
		{map[string]interface{}{"minMember": int64(2), "scheduleTimeoutSeconds": int64(3600)}, podGroup{
			2, longestTimeout}, true},
		{map[string]interface{}{"minMember": int64(2), "scheduleTimeoutSeconds": int64(-1)}, podGroup{minMember: 2}, true},
		{map[string]interface{}{"minMember": int64(0)}, podGroup{}, false},
		{map[string]interface{}{"minMember": "3"}, podGroup{}, false},
		{nil, podGroup{}, false},
	} {
		changed = nil
		err := g.Set(podGroupObject("shop", "a", test.spec))
		if err != nil {
			g.Delete("shop", "a")
		}
		got, found := g.Get("shop/a").(podGroup)
		if got != test.want || found != test.found || (err == nil) != test.found {
			t.Errorf("%v: got %+v, %v, %v", test.spec, got, found, err)
		}
		if diff := cmp.Diff([]string{"shop/a"}, changed); diff != "" {
			t.Errorf("%v: changed %s", test.spec, diff)
		}
	}
}
