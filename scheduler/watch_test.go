package scheduler

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

type handler = cache.ResourceEventHandlerFuncs

func TestPodEventsAreSeenOrGone(t *testing.T) {
	pod := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: uid}}
	}
	missed := func(object interface{}) interface{} {
		return cache.DeletedFinalStateUnknown{Key: "web", Obj: object}
	}
	for name, c := range map[string]struct {
		do   func(h handler)
		want string
	}{
		"added":                      {func(h handler) { h.OnAdd(pod("1"), false) }, "seen 1"},
		"changed":                    {func(h handler) { h.OnUpdate(pod("1"), pod("1")) }, "seen 1"},
		"recreated":                  {func(h handler) { h.OnUpdate(pod("1"), pod("2")) }, "gone 1, seen 2"},
		"deleted":                    {func(h handler) { h.OnDelete(pod("1")) }, "gone 1"},
		"a deletion that was missed": {func(h handler) { h.OnDelete(missed(pod("1"))) }, "gone 1"},
		"a missed deletion of an unknown object": {func(h handler) {
			h.OnDelete(missed(nil))
		}, ""},
		"other objects": {func(h handler) {
			h.OnAdd(&corev1.Node{}, false)
			h.OnUpdate(&corev1.Node{}, &corev1.Node{})
			h.OnDelete(&corev1.Node{})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var events []string
			record := func(kind string) func(*corev1.Pod) {
				return func(pod *corev1.Pod) { events = append(events, kind+" "+string(pod.UID)) }
			}
			c.do(podHandler(record("seen"), record("gone")))
			if got := strings.Join(events, ", "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
