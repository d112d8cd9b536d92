package route_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
		r := route.Registration{Rule: rule(), Release: release, PolicyAPI: api,
			WebhookNamespace: "pmk-sched-system", Labels: map[string]string{"a": "b"}}
		golden.Equal(t, "testdata/"+name+".yaml", objectsOf(t, r))
		r.Rule.Route.Share = new(10)
		golden.Equal(t, "testdata/"+name+"-share.yaml", objectsOf(t, r))
	}
}

func objectsOf(t *testing.T, r route.Registration) string {
	t.Helper()
	objects, err := route.Objects(r)
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
	return strings.Join(all, "---\n")
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

// The pods of one controller are treated alike, and a share that grows keeps the pods that it had.
func TestShareIsOfControllers(t *testing.T) {
	of := func(uid types.UID, controls *bool) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": {}}}}}}}
		if uid != "bare" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", UID: uid, Controller: controls}}
		}
		return p
	}
	yes, no := new(true), new(false)
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		least int // share that routes it
	}{
		"first UID":        {of("00000000-0000-4000-8000-000000000000", yes), 1},
		"below 10 %":       {of("19999998-ffff-4fff-bfff-ffffffffffff", yes), 10},
		"at 10 %":          {of("19999999-0000-4000-8000-000000000000", yes), 11},
		"half":             {of("7fffffff-ffff-4fff-bfff-ffffffffffff", yes), 50},
		"last UID":         {of("ffffffff-ffff-4fff-bfff-ffffffffffff", yes), 100},
		"bare pod":         {of("bare", nil), 100},
		"not a controller": {of("00000000-0000-4000-8000-000000000000", no), 100},
		"only an owner":    {of("00000000-0000-4000-8000-000000000000", nil), 100},
		"no UID":           {of("", yes), 100},
		"short UID":        {of("0000", yes), 100},
		"another alphabet": {of("!!!!!!!!", yes), 100},
		"capitals":         {of("0000000A-0000", yes), 100},
		"not ASCII":        {of("0000000\u00e9", yes), 100},
	} {
		for share := 0; share <= 100; share++ {
			r := rule()
			r.Route.Share = &share
			if got := r.Routes("ml", tc.pod); got != (share >= tc.least) {
				t.Errorf("%s at %d %%: %t", name, share, got)
			}
		}
	}
}

func TestSharesAreAsLargeAsTheySay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const owners = 20_000
	for _, share := range []int{1, 10, 50, 99} {
		r, routed := rule(), 0
		r.Route.Share = &share
		for range owners {
			uid := types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", random.Uint32()))
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
				{Kind: "Job", UID: uid, Controller: new(true)}}}}
			r.Route.Resources = nil
			if r.Routes("ml", pod) {
				routed++
			}
		}
		if percent := 100 * float64(routed) / owners; math.Abs(percent-float64(share)) > 1 {
			t.Errorf("share %d: %.2f %% of the controllers", share, percent)
		}
	}
}
