package deploy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
)

// architectureValues returns the architectures that the pods of a plan require of their nodes.
func architectureValues(t *testing.T, plan *Plan) (values []string) {
	t.Helper()
	for _, o := range plan.Objects {
		terms, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "affinity", "nodeAffinity",
			"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		for _, term := range terms {
			requirements, _, err := unstructured.NestedSlice(term.(map[string]any), "matchExpressions")
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range requirements {
				if r := r.(map[string]any); r["key"] == corev1.LabelArchStable {
					values, _, _ = unstructured.NestedStringSlice(r, "values")
				}
			}
		}
	}
	return values
}

func TestPodsRunOnNodesWithAPlatformOfTheImage(t *testing.T) {
	hosted := masterInfo("v1.29.3")
	hosted.ControlPlane, hosted.Nodes.Count = inspect.ControlPlane{}, 4
	hosted.Hosted = &inspect.Hosted{Kind: "Amazon EKS"}
	mixed := masterInfo("v1.29.3")
	mixed.ControlPlane.Count = 3
	mixed.ControlPlane.Nodes = []inspect.ControlPlaneNode{{Name: "a", Ready: true, Architecture: "amd64"},
		{Name: "b", Ready: true, Architecture: "arm64"}, {Name: "c", Architecture: "arm64"}}
	for name, tc := range map[string]struct {
		info          *inspect.Info
		architectures []string
		selector      map[string]string
		replicas      int32
		warning       string
		failure       string
	}{
		"workers":          {info: hosted, architectures: []string{"amd64"}, replicas: 2},
		"workers, unknown": {info: hosted, replicas: 2},
		"selected nodes": {info: hosted, architectures: []string{"arm64"}, selector: map[string]string{"a": "b"},
			replicas: 1},
		"all control-plane nodes":   {info: mixed, architectures: []string{"amd64", "arm64"}, replicas: 3},
		"one control-plane node":    {info: mixed, architectures: []string{"amd64"}, replicas: 1, warning: "b (arm64), c (arm64)"},
		"control plane, unknown":    {info: mixed, replicas: 3},
		"no control-plane node":     {info: mixed, architectures: []string{"s390x"}, failure: "no control-plane node is: a (amd64)"},
		"a cluster without answers": {architectures: []string{"amd64"}, replicas: 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := PlanInput{Name: "gpu", Facts: Facts{Cluster: tc.info, Image: "registry.example/gpu:v1", Branch: "v1.29.3",
				Now: now, Architectures: tc.architectures}}
			o.Spec.NodeSelector = tc.selector
			plan, err := o.Plan()
			if tc.failure != "" {
				if err == nil || !strings.Contains(err.Error(), tc.failure) || !problem.IsInvalid(err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.architectures, architectureValues(t, plan)); diff != "" {
				t.Errorf("architectures (-want +got):\n%s", diff)
			}
			if got := plan.Scheduler.Replicas; got != tc.replicas {
				t.Errorf("got %d replicas, want %d", got, tc.replicas)
			}
			warned := slices.ContainsFunc(plan.Warnings,
				func(w string) bool { return strings.Contains(w, "without a replica") })
			if warned != (tc.warning != "") || warned && !strings.Contains(strings.Join(plan.Warnings, ";"), tc.warning) {
				t.Errorf("warnings %q", plan.Warnings)
			}
		})
	}
}

func TestPlanKeepsTheReasonWhyAnImageIsMissing(t *testing.T) {
	missing := errors.New("image is missing")
	plan, err := PlanInput{Name: "gpu", Facts: Facts{Cluster: masterInfo("v1.29.3"), Image: "localhost/gpu:v1", Now: now,
		MissingImage: missing}}.Plan()
	if err != nil || !errors.Is(plan.MissingImage, missing) {
		t.Errorf("got %v, %v", plan, err)
	}
}
