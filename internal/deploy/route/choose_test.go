package route_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

func TestRouteOfAPodThatIsNotCreatedYet(t *testing.T) {
	share := func(percent int) v1alpha1.Route {
		return v1alpha1.Route{Namespaces: []string{"shop"}, Share: &percent}
	}
	labeled := func(key, value string) *v1alpha1.LabelSelector {
		return &v1alpha1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	all := v1alpha1.Route{Namespaces: []string{"shop"}}
	for name, tc := range map[string]struct {
		route v1alpha1.Route
		bare  bool   // the pod has no controller
		names string // a scheduler
		label string // of the pod
		want  string
		fail  string
	}{
		"of a namespace":               {route: all, want: "packer"},
		"of another namespace":         {route: v1alpha1.Route{Namespaces: []string{"dev"}}},
		"of namespaces with a label":   {route: v1alpha1.Route{NamespaceSelector: labeled("team", "a")}, want: "packer"},
		"of others with a label":       {route: v1alpha1.Route{NamespaceSelector: labeled("team", "b")}},
		"of pods with a label":         {route: v1alpha1.Route{PodSelector: labeled("app", "web")}, want: "packer"},
		"of other pods":                {route: v1alpha1.Route{PodSelector: labeled("app", "db")}},
		"of a pod of pmk-sched":        {route: all, label: "pmk-sched-controller"},
		"of a resource":                {route: v1alpha1.Route{Resources: []string{"nvidia.com/gpu"}}, want: "packer"},
		"of another resource":          {route: v1alpha1.Route{Resources: []string{"amd.com/gpu"}}},
		"of a pod that names another":  {route: all, names: "other"},
		"of the whole":                 {route: share(100), want: "packer"},
		"of nothing":                   {route: share(0)},
		"of a share":                   {route: share(10), fail: "the route to scheduler packer takes 10 % of such workloads"},
		"of a share, without a parent": {route: share(10), bare: true},
		"of a share of other pods":     {route: v1alpha1.Route{Namespaces: []string{"dev"}, Share: share(10).Share}},
		"of an unknown namespace":      {route: v1alpha1.Route{NamespaceSelector: labeled("team", "a")}, fail: "forbidden"},
		"of the second rule": {route: v1alpha1.Route{PodSelector: labeled("app", "db")}, label: "second",
			want: "second"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": "web"}}}
			pod.Spec = corev1.PodSpec{SchedulerName: tc.names, Containers: []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"nvidia.com/gpu": {}}}}}}
			if tc.label != "" {
				pod.Labels["app.kubernetes.io/name"] = tc.label
			}
			if !tc.bare {
				pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", UID: "u", Controller: new(true)}}
			}
			rules := []route.Rule{{Scheduler: "packer", Namespace: "kube-system", Route: tc.route},
				{Scheduler: "second", Route: v1alpha1.Route{PodSelector: labeled("app.kubernetes.io/name", "second")}}}
			got, err := route.Choose(rules, pod, func() (labels.Set, error) {
				if tc.fail == "forbidden" {
					return nil, errors.New("forbidden")
				}
				return labels.Set{"team": "a"}, nil
			})
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != tc.want || (text == "") != (tc.fail == "") || !strings.Contains(text, tc.fail) {
				t.Errorf("got %q, %v, want %q, %q", got, err, tc.want, tc.fail)
			}
		})
	}
}
