package inspect

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// hook is a webhook of a Service for the creation of objects.
func hook(name, service string, resources ...string) admissionv1.MutatingWebhookConfiguration {
	return admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionv1.MutatingWebhook{{
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Name: service}},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{Resources: resources}}},
		}},
	}
}

func TestDetectFindsAnArbiter(t *testing.T) {
	registered := admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ownership.Arbiter},
		Webhooks: []admissionv1.ValidatingWebhook{{ClientConfig: admissionv1.WebhookClientConfig{
			Service: &admissionv1.ServiceReference{Name: ownership.Admission, Namespace: "tools"}}}}}
	for name, tc := range map[string]struct {
		server *apiServer
		want   string
	}{
		"none":       {&apiServer{}, ""},
		"registered": {&apiServer{arbiters: []admissionv1.ValidatingWebhookConfiguration{registered}}, "tools"},
		"webhooks that may not be listed": {&apiServer{
			forbid: func(path string) bool { return strings.HasSuffix(path, "webhookconfigurations") }}, ""},
	} {
		tc.server.gitVersion = "v1.24.3"
		info, err := Detect(t.Context(), tc.server.start(t), Options{NodeRoot: NoNode})
		if err != nil {
			t.Fatal(err)
		}
		warned := slices.ContainsFunc(info.Warnings, func(w string) bool { return strings.Contains(w, "arbiter") })
		if info.Arbiter != tc.want || warned {
			t.Errorf("%s: got %q, expected %q; %q", name, info.Arbiter, tc.want, info.Warnings)
		}
	}
}

func TestDetectFindsWhatRoutesPods(t *testing.T) {
	policies := map[string][]string{"admissionregistration.k8s.io/v1": {"mutatingadmissionpolicies"},
		"admissionregistration.k8s.io/v1beta1": {"mutatingadmissionpolicies"}}
	installed := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "tools",
		Labels: map[string]string{ownership.LabelName: ownership.Admission}}}
	for name, tc := range map[string]struct {
		server *apiServer
		want   *Routing
	}{
		"nothing": {&apiServer{gitVersion: "v1.24.3"}, &Routing{Others: []Router{}}},
		"policies that the administrator turned on": {&apiServer{gitVersion: "v1.34.2", resources: policies},
			&Routing{PolicyAPI: "admissionregistration.k8s.io/v1beta1", Others: []Router{}}},
		"policies": {&apiServer{gitVersion: "v1.36.0", resources: policies},
			&Routing{PolicyAPI: "admissionregistration.k8s.io/v1", Others: []Router{}}},
		"policies that are off": {&apiServer{gitVersion: "v1.35.0"}, &Routing{Others: []Router{}}},
		"the webhook of pmk-sched": {&apiServer{gitVersion: "v1.24.3", deployments: []appsv1.Deployment{installed}},
			&Routing{WebhookNamespace: "tools", Others: []Router{}}},
		"other products": {&apiServer{gitVersion: "v1.24.3", webhooks: []admissionv1.MutatingWebhookConfiguration{
			hook("hami-webhook", "hami-scheduler", "pods"), hook("mutate", "yunikorn-admission-controller-service", "pods"),
			hook("volcano-admission-service-jobs-mutate", "volcano-admission-service", "jobs"), hook("istio", "istiod", "pods"),
		}}, &Routing{Others: []Router{{"HAMi", "hami-webhook"}, {"Apache YuniKorn", "mutate"}}}},
		"the webhook in the namespace of a controller": {&apiServer{gitVersion: "v1.24.3",
			deployments: []appsv1.Deployment{installed},
			forbid:      func(path string) bool { return path == "/apis/apps/v1/deployments" }},
			&Routing{WebhookNamespace: "tools", Others: []Router{}}},
		"webhooks that may not be listed": {&apiServer{gitVersion: "v1.24.3",
			forbid: func(path string) bool { return strings.HasSuffix(path, "webhookconfigurations") }}, &Routing{}},
	} {
		t.Run(name, func(t *testing.T) {
			info, err := Detect(t.Context(), tc.server.start(t), Options{NodeRoot: NoNode, SchedulerNamespace: "tools"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, info.Routing); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
