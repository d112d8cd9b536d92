package route_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

func rule() route.Rule {
	return route.Rule{Scheduler: "gpu", Namespace: "tools", Lease: "tools/gpu", Route: v1alpha1.Route{
		Namespaces: []string{"ml"}, NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		PodSelector: &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"db"}}}},
		Resources: []string{"nvidia.com/gpu"}, OnFailure: "Release",
	}}
}

// Namespaces have labels with their names from 1.21 on, webhooks conditions from 1.28 on.
func TestRegistrationOfEachRelease(t *testing.T) {
	for name, api := range map[string]string{"v1.20.15": "", "v1.24.3": "", "v1.28.0": "",
		"v1.34.2": "admissionregistration.k8s.io/v1beta1", "v1.37.1": "admissionregistration.k8s.io/v1"} {
		release, err := versions.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := route.Objects(route.Registration{Rule: rule(), Release: release, PolicyAPI: api,
			WebhookNamespace: "pmk-sched-system", Labels: map[string]string{"a": "b"}})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, o := range objects {
			text, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(text))
		}
		golden.Equal(t, "testdata/"+name+".yaml", strings.Join(all, "---\n"))
	}
}

func TestRuleIsReadFromItsRegistration(t *testing.T) {
	text, err := rule().Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := route.Decode(map[string]string{route.AnnotationRule: text})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rule(), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "{", "{}", "[]"} {
		if _, err := route.Decode(map[string]string{route.AnnotationRule: text}); err == nil {
			t.Errorf("%q is a rule", text)
		}
	}
}

// What the API server does not select, a webhook must not route: before 1.21 it sees every
// namespace, and before 1.28 every pod.
func TestRuleRoutesNoPodOfOthers(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": {}}}}}}}
		change(p)
		return p
	}
	nothing := func(*corev1.Pod) {}
	for name, tc := range map[string]struct {
		namespace string
		pod       *corev1.Pod
		want      bool
	}{
		"selected":          {"ml", pod(nothing), true},
		"another namespace": {"web", pod(nothing), false},
		"kube-system":       {"kube-system", pod(nothing), false},
		"its own namespace": {"tools", pod(nothing), false},
		"names a scheduler": {"ml", pod(func(p *corev1.Pod) { p.Spec.SchedulerName = "x" }), false},
		"has a node":        {"ml", pod(func(p *corev1.Pod) { p.Spec.NodeName = "x" }), false},
		"without a GPU":     {"ml", pod(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = nil }), false},
		"of a DaemonSet": {"ml", pod(func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
		}), false},
	} {
		if got := rule().Routes(tc.namespace, tc.pod); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
