package coscheduling

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func podGroupObject(namespace, name string, spec map[string]interface{}) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]interface{}{
		"metadata": map[string]interface{}{"namespace": namespace, "name": name}, "spec": spec,
	}}
}

func TestPodGroupsAreReadAndForgotten(t *testing.T) {
	h := &plugintest.Handle{}
	var changed []string
	g := newGroups(h.Logger(t.Context()), func(key string) { changed = append(changed, key) })
	for _, test := range []struct {
		spec  map[string]interface{}
		want  podGroup
		found bool
	}{
		{map[string]interface{}{"minMember": int64(3)}, podGroup{minMember: 3}, true},
		{map[string]interface{}{"minMember": int64(2), "scheduleTimeoutSeconds": int64(30), "minResources": "ignored"}, podGroup{2, 30 * time.Second}, true},
		{map[string]interface{}{"minMember": int64(2), "scheduleTimeoutSeconds": int64(3600)}, podGroup{2, longestTimeout}, true},
		{map[string]interface{}{"minMember": int64(2), "scheduleTimeoutSeconds": int64(-1)}, podGroup{minMember: 2}, true},
		{map[string]interface{}{"minMember": int64(0)}, podGroup{}, false},
		{map[string]interface{}{"minMember": "3"}, podGroup{}, false},
		{nil, podGroup{}, false},
	} {
		changed = nil
		g.set(podGroupObject("shop", "a", test.spec))
		got, found := g.of("shop/a")
		if got != test.want || found != test.found {
			t.Errorf("%v: got %+v, %v", test.spec, got, found)
		}
		if diff := cmp.Diff([]string{"shop/a"}, changed); diff != "" {
			t.Errorf("%v: changed %s", test.spec, diff)
		}
	}
	g.set(podGroupObject("shop", "a", map[string]interface{}{"minMember": int64(3)}))
	g.answered(http.StatusNotFound) // the CustomResourceDefinition is deleted
	if _, found := g.of("shop/a"); found {
		t.Error("a PodGroup without its CustomResourceDefinition is used")
	}
	g.answered(http.StatusOK)
	g.remove(cache.DeletedFinalStateUnknown{Obj: podGroupObject("shop", "a", nil)})
	if _, found := g.of("shop/a"); found {
		t.Error("a deleted PodGroup is used")
	}
}

func TestOneLineIsLoggedWhenPodGroupsBecomeReadableOrNot(t *testing.T) {
	h := &plugintest.Handle{}
	g := newGroups(h.Logger(t.Context()), func(string) {})
	failed := errors.New("failed")
	for _, status := range []int{http.StatusNotFound, http.StatusNotFound, http.StatusOK, http.StatusGone, http.StatusOK, http.StatusForbidden, http.StatusForbidden, http.StatusOK} {
		g.answered(status)
		if status != http.StatusOK {
			g.failed(failed)
		}
	}
	if diff := cmp.Diff([]string{
		"Coscheduling finds no PodGroups, because their CustomResourceDefinition is not installed: sizes are read from labels",
		"Coscheduling reads PodGroups",
		"Coscheduling cannot read PodGroups; the last ones are used err=failed",
		"Coscheduling reads PodGroups",
	}, h.Lines()); diff != "" {
		t.Error(diff)
	}
}
