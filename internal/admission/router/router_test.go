package router

import (
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	listers "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

// of returns a router that knows registrations by the name of the scheduler, with the annotation.
func of(t *testing.T, rules map[string]string) *Router {
	t.Helper()
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for scheduler, rule := range rules {
		if err := known.Add(&registrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{
			Name: route.Name(scheduler), Annotations: map[string]string{route.AnnotationRule: rule}}}); err != nil {
			t.Fatal(err)
		}
	}
	return &Router{listers.NewMutatingWebhookConfigurationLister(known)}
}

type asked = admissionv1.AdmissionRequest

// A pod of 3 MiB takes little more memory than its text, whatever it has a million of.
func TestALargePodTakesLittleMemory(t *testing.T) {
	for name, text := range map[string]string{
		"tolerations": `{"spec": {"tolerations": [` + strings.Repeat("{},", 1<<20) + `{}]}}`,
		"containers":  `{"spec": {"containers": [` + strings.Repeat("{},", 1<<20) + `{}]}}`,
		"labels":      `{"metadata": {"labels": {` + strings.Repeat(`"a":"",`, 3<<20/7) + `"b": ""}}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := decode([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 64 {
			t.Errorf("%s: %d MiB for a text of %d", name, used, len(text)>>20)
		}
	}
}

// What decode leaves out does not change the decision.
func TestPodsAreDecodedWithWhatTheirRouteDependsOn(t *testing.T) {
	controls := true
	whole := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{"a": "b"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", UID: "00ff", Controller: &controls}}},
		Spec: corev1.PodSpec{SchedulerName: "s", NodeName: "n",
			InitContainers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				"example.com/gpu": resource.MustParse("2")}}}},
			Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}}}}}
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	requests := slices.Sorted(maps.Keys(got.Spec.Containers[0].Resources.Requests))
	if !slices.Equal(requests, []corev1.ResourceName{"cpu", "example.com/gpu"}) || got.Spec.NodeName != "n" ||
		got.Spec.SchedulerName != "s" || got.Annotations["a"] != "b" ||
		cmp.Diff(whole.OwnerReferences, got.OwnerReferences) != "" {
		t.Errorf("%+v", got)
	}
}

func TestNoAnswerRefusesAPod(t *testing.T) {
	const rule = `{"scheduler": "gpu", "namespace": "tools", "route": {"namespaces": ["ml"]}}`
	const name = `[{"op":"add","path":"/spec/schedulerName","value":"gpu"},`
	routed := name + `{"op":"add","path":"/metadata/annotations","value":{"pmk-sched.io/route":"gpu"}}]`
	r := of(t, map[string]string{"gpu": rule, "other": rule, "broken": "{"})
	pods := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	for what, tc := range map[string]struct {
		path, pod string
		change    func(*asked)
		patch     string
		warning   string
	}{
		"routed": {"/gpu", `{}`, nil, routed, ""},
		"with annotations": {"/gpu", `{"metadata": {"annotations": {"a": "b"}}}`, nil,
			name + `{"op":"add","path":"/metadata/annotations/pmk-sched.io~1route","value":"gpu"}]`, ""},
		"of another scheduler":  {"/gpu", `{"spec": {"schedulerName": "x"}}`, nil, "", ""},
		"no pod":                {"/gpu", `{"spec": 3}`, nil, "", "decode the pod"},
		"nothing":               {"/gpu", ``, nil, "", "decode the pod"},
		"an unknown scheduler":  {"/x", `{}`, nil, "", "not found"},
		"no scheduler":          {"", `{}`, nil, "", "not found"},
		"a path below":          {"/gpu/x", `{}`, nil, "", "not found"},
		"the rule of another":   {"/other", `{}`, nil, "", "is the route of scheduler gpu"},
		"a rule that is broken": {"/broken", `{}`, nil, "", "decode the annotation"},
		"an update":             {"/gpu", `{}`, func(r *asked) { r.Operation = "UPDATE" }, "", ""},
		"a binding":             {"/gpu", `{}`, func(r *asked) { r.SubResource = "binding" }, "", ""},
		"another resource":      {"/gpu", `{}`, func(r *asked) { r.Resource.Resource = "secrets" }, "", ""},
		"kube-system":           {"/gpu", `{}`, func(r *asked) { r.Namespace = "kube-system" }, "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			request := &asked{UID: "u", Namespace: "ml", Operation: admissionv1.Create, Resource: pods,
				Object: apiruntime.RawExtension{Raw: []byte(tc.pod)}}
			if tc.change != nil {
				tc.change(request)
			}
			answer := r.Admit(t.Context(), tc.path, request)
			if !answer.Allowed || answer.UID != "u" {
				t.Errorf("answer %+v", answer)
			}
			if diff := cmp.Diff(tc.patch, string(answer.Patch)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			said := strings.Join(answer.Warnings, " ")
			if !strings.Contains(said, tc.warning) || (said == "") != (tc.warning == "") {
				t.Errorf("warnings %q, want %q", said, tc.warning)
			}
		})
	}
}
