package ask

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

func TestRoutesChooseTheSchedulerOfPodsThatNameNone(t *testing.T) {
	share := func(percent int) v1alpha1.Route {
		return v1alpha1.Route{Namespaces: []string{"shop"}, Share: &percent}
	}
	selector := func(key, value string) *v1alpha1.LabelSelector {
		return &v1alpha1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	for name, tc := range map[string]struct {
		route v1alpha1.Route
		pod   bool // a Pod of the question, not a Deployment
		names string
		want  string
		fail  string
	}{
		"of a namespace":              {route: v1alpha1.Route{Namespaces: []string{"shop"}}, want: "packer"},
		"of another namespace":        {route: v1alpha1.Route{Namespaces: []string{"dev"}}},
		"of namespaces with a label":  {route: v1alpha1.Route{NamespaceSelector: selector("team", "shop")}, want: "packer"},
		"of others with a label":      {route: v1alpha1.Route{NamespaceSelector: selector("team", "dev")}},
		"of pods with a label":        {route: v1alpha1.Route{PodSelector: selector("app", "web")}, want: "packer"},
		"of other pods":               {route: v1alpha1.Route{PodSelector: selector("app", "db")}},
		"of a resource":               {route: v1alpha1.Route{Resources: []string{"nvidia.com/gpu"}}, want: "packer"},
		"of another resource":         {route: v1alpha1.Route{Resources: []string{"amd.com/gpu"}}},
		"to a pod that names one":     {route: v1alpha1.Route{Namespaces: []string{"shop"}}, names: "other", want: "other"},
		"of the whole":                {route: share(100), want: "packer"},
		"of nothing":                  {route: share(0)},
		"of a share of controllers":   {route: share(10), fail: "takes 10 % of the workloads like Deployment shop/web"},
		"of a share without the pod":  {route: share(10), pod: true},
		"of a share of no such pods":  {route: v1alpha1.Route{Namespaces: []string{"dev"}, Share: share(10).Share}},
		"whose namespace is not read": {route: v1alpha1.Route{NamespaceSelector: selector("team", "lost")}, fail: "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{"containers": []any{map[string]any{"name": "main", "image": "i",
				"resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "1"}}}}}
			if tc.names != "" {
				spec["schedulerName"] = tc.names
			}
			label := map[string]any{"labels": map[string]any{"app": "web"}, "name": "web", "namespace": "shop"}
			manifest := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": label, "spec": spec}
			if !tc.pod {
				manifest = map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": label,
					"spec": map[string]any{"template": map[string]any{"metadata": label, "spec": spec}}}
			}
			q := Question{Manifests: []map[string]any{manifest}}
			asked, err := q.read()
			if err != nil {
				t.Fatal(err)
			}
			rules := []route.Rule{{Scheduler: "packer", Namespace: "kube-system", Route: tc.route},
				{Scheduler: "second", Namespace: "kube-system", Route: v1alpha1.Route{Namespaces: []string{"else"}}}}
			err = applyRules(rules, &asked, func(namespace string) (labels.Set, error) {
				if tc.fail == "forbidden" {
					return nil, errors.New("forbidden")
				}
				return labels.Set{"team": namespace}, nil
			})
			if tc.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fail) {
					t.Errorf("got %v, want %q", err, tc.fail)
				}
				return
			}
			want := tc.want
			if want == "" {
				want = "default-scheduler"
			}
			if got := asked.Workloads[0].Scheduler(); err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
			if routed := want == "packer"; routed != (len(asked.Notes) == 1) {
				t.Errorf("notes: %q", asked.Notes)
			}
		})
	}
}
