package spec_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// TestPodsHaveTheTolerationsAndThePriorityClassOfTheFile plans a scheduler with an extender for
// nodes that all have taints of their own, and where the default class is not admitted.
func TestPodsHaveTheTolerationsAndThePriorityClassOfTheFile(t *testing.T) {
	toleration := corev1.Toleration{Key: "pool", Operator: corev1.TolerationOpEqual, Value: "infra",
		Effect: corev1.TaintEffectNoSchedule}
	exists := func(key string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
	}
	for class, want := range map[string]string{"": "system-cluster-critical", "infra": "infra", "none": ""} {
		file := filepath.Join(t.TempDir(), "pmk-sched.yaml")
		text := `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: gpu}
spec:
  image: {reference: "registry.example.com/s:v1"}
  source: {branch: v1.24.3}
  credentials: serviceaccount
  anyNode: true
  priorityClassName: ` + class + `
  tolerations: [{key: pool, operator: Equal, value: infra, effect: NoSchedule}]
  extenders: [{name: near, ignorable: true, image: "registry.example.com/e:v1", policies: [{name: timestamp}]}]
`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := spec.Read(spec.Flags{File: file, Version: "v0"})
		if err != nil {
			t.Fatal(err)
		}
		deployment := extenders.SchedulerDeployment{}
		if deployment.Request, deployment.Facts, err = s.Scheduler(); err != nil {
			t.Fatal(err)
		}
		if deployment.Extenders, err = s.Extenders(); err != nil {
			t.Fatal(err)
		}
		plan, err := extenders.PlanScheduler(t.Context(), deploy.Deps{}, deployment)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range append(plan.Before, plan) {
			pod := podSpec(t, p.Objects)
			if pod.PriorityClassName != want {
				t.Errorf("%s: priority class %q, want %q", p.Name, pod.PriorityClassName, want)
			}
			tolerations := []corev1.Toleration{exists("node-role.kubernetes.io/master"),
				exists("node-role.kubernetes.io/control-plane"), exists("CriticalAddonsOnly"), toleration}
			if diff := cmp.Diff(tolerations, pod.Tolerations); diff != "" {
				t.Errorf("%s: tolerations (-want +got):\n%s", p.Name, diff)
			}
		}
	}
}

// podSpec returns the pods of the only Deployment among the objects.
func podSpec(t *testing.T, objects []*unstructured.Unstructured) (pod corev1.PodSpec) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		fields, _, err := unstructured.NestedMap(o.Object, "spec", "template", "spec")
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &pod)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return pod
}
