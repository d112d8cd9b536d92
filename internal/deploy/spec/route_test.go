package spec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

const routed = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: gpu}
spec:
  source: {branch: v1.24.3}
  route: {namespaces: [ml], onFailure: Release, failureAfter: 1m}
`

func TestRouteFlagsReplaceThePartsThatTheyName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pmk-sched.yaml")
	if err := os.WriteFile(file, []byte(routed), 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(change func(*v1alpha1.Route)) *v1alpha1.Route {
		r := &v1alpha1.Route{Namespaces: []string{"ml"}, OnFailure: "Release", FailureAfter: 60e9}
		change(r)
		return r
	}
	for flags, want := range map[string]*v1alpha1.Route{
		"":                      of(func(*v1alpha1.Route) {}),
		"none":                  nil,
		"namespaces=a,b":        of(func(r *v1alpha1.Route) { r.Namespaces = []string{"a", "b"} }),
		"share=10%":             of(func(r *v1alpha1.Route) { r.Share = new(10) }),
		"share=0":               of(func(r *v1alpha1.Route) { r.Share = new(0) }),
		"resources=x.org/gpu":   of(func(r *v1alpha1.Route) { r.Resources = []string{"x.org/gpu"} }),
		"pods=app=web,tier!=db": of(func(r *v1alpha1.Route) { r.PodSelector = selects("app", "web", "tier", "db") }),
		"namespace-selector=app=web,tier!=db resources=cpu": of(func(r *v1alpha1.Route) {
			r.NamespaceSelector, r.Resources = selects("app", "web", "tier", "db"), []string{"cpu"}
		}),
	} {
		s, err := spec.Read(spec.Flags{File: file, Route: strings.Fields(flags)})
		if err != nil {
			t.Fatalf("%s: %v", flags, err)
		}
		request, err := s.Request()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, request.Spec.Route); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flags, diff)
		}
	}
}

// selects returns key=value,other!=not.
func selects(key, value, other, not string) *v1alpha1.LabelSelector {
	return &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelRequirement{
		{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}},
		{Key: other, Operator: metav1.LabelSelectorOpNotIn, Values: []string{not}},
	}}
}

func TestInvalidRouteFlagsAreRefused(t *testing.T) {
	for flags, want := range map[string]string{
		"none namespaces=a":          "excludes other values",
		"ml":                         "must be PART=VALUE",
		"namespaces=":                "must be PART=VALUE",
		"share=half":                 "must be a number",
		"share=101 namespaces=a":     "share: invalid value 101",
		"namespace=a":                `unknown part "namespace"`,
		"pods=a>3":                   "gt cannot be used here",
		"pods=a in (b":               `invalid --route "pods=a in (b"`,
		"namespaces=kube-system":     "the pods of kube-system are never routed",
		"namespaces=A":               `invalid name "A"`,
		"resources=nvidia.com/gpu/x": `invalid name "nvidia.com/gpu/x"`,
	} {
		list := strings.Split(flags, " namespaces")
		if len(list) > 1 {
			list[1] = "namespaces" + list[1]
		}
		_, err := spec.Read(spec.Flags{Name: "gpu", Route: list})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
	}
}
