package ask

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

func TestPodsThatNameNoSchedulerGetTheOneOfARoute(t *testing.T) {
	packs := func(pod *corev1.Pod) (string, error) {
		_, requested := pod.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"]
		if !requested || pod.Namespace != "shop" || pod.Labels["app"] != "web" || metav1.GetControllerOf(pod) == nil {
			return "", nil
		}
		return "packer", nil
	}
	for name, tc := range map[string]struct {
		names             string
		route             func(*corev1.Pod) (string, error)
		unread            error
		want, notes, fail string
	}{
		"routed":     {route: packs, want: "packer", notes: "Deployment shop/web: a route gives its pods the scheduler packer"},
		"not routed": {route: func(*corev1.Pod) (string, error) { return "", nil }, want: "default-scheduler"},
		"named":      {names: "other", unread: errors.New("not to be read"), want: "other"},
		"not told": {route: func(*corev1.Pod) (string, error) { return "", errors.New("a share") },
			fail: "Deployment shop/web: a share"},
		"unread": {unread: errors.New("forbidden"), fail: "forbidden"},
		// The API server sees no difference to a pod that names none.
		"the default": {names: "default-scheduler", route: packs, want: "packer", notes: "packer"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{"containers": []any{map[string]any{"name": "main", "image": "i",
				"resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "1"}}}}}
			if tc.names != "" {
				spec["schedulerName"] = tc.names
			}
			metadata := map[string]any{"labels": map[string]any{"app": "web"}, "name": "web", "namespace": "shop"}
			q := Question{Manifests: []map[string]any{{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
				"spec": map[string]any{"template": map[string]any{"metadata": metadata, "spec": spec}}}}}
			asked, err := q.read()
			if err != nil {
				t.Fatal(err)
			}
			err = Routes(func(context.Context) (func(*corev1.Pod) (string, error), error) {
				return tc.route, tc.unread
			}).apply(t.Context(), &asked)
			if tc.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fail) || len(problem.Hints(err)) != 1 {
					t.Errorf("got %v, want %q with a hint", err, tc.fail)
				}
				return
			}
			notes := strings.Join(asked.Notes, "\n")
			if got := asked.Workloads[0].Scheduler(); err != nil || got != tc.want || !strings.Contains(notes, tc.notes) ||
				(notes == "") != (tc.notes == "") {
				t.Errorf("got %q, %v, notes %q", got, err, notes)
			}
		})
	}
}
