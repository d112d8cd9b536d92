package deploy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/suspension"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

func routedPlan(facts Facts) (*Plan, error) {
	facts.Image = "localhost/s:v1"
	return NewPlan(&v1alpha1.CustomScheduler{ObjectMeta: metav1.ObjectMeta{Name: "my-scheduler"},
		Spec: v1alpha1.CustomSchedulerSpec{Route: &v1alpha1.Route{Namespaces: []string{"ml"}}}}, facts)
}

func TestThePlanChoosesWhatRoutesPods(t *testing.T) {
	cluster := func(server string, routing *inspect.Routing) Facts {
		info := masterInfo(server)
		info.Routing = routing
		return Facts{Cluster: info}
	}
	const policies = "admissionregistration.k8s.io/v1"
	for name, tc := range map[string]struct {
		facts Facts
		kinds string
		says  string
	}{
		"a policy": {cluster("v1.36.0", &inspect.Routing{PolicyAPI: policies}),
			"MutatingAdmissionPolicy MutatingAdmissionPolicyBinding", "pods in ml, by a policy of the API server"},
		"a policy before the webhook": {cluster("v1.36.0", &inspect.Routing{PolicyAPI: policies, WebhookNamespace: "w"}),
			"MutatingAdmissionPolicy MutatingAdmissionPolicyBinding", "by a policy of the API server"},
		"the webhook": {cluster("v1.24.3", &inspect.Routing{WebhookNamespace: "w"}), "MutatingWebhookConfiguration",
			"by the webhook of pmk-sched in namespace w"},
		"neither": {cluster("v1.24.3", &inspect.Routing{}), "", "serves no MutatingAdmissionPolicies"},
		"unknown": {cluster("v1.24.3", nil), "", "is unknown"},
		"another router": {cluster("v1.24.3", &inspect.Routing{WebhookNamespace: "w",
			Others: []inspect.Router{{Product: "HAMi", Configuration: "hami"}}}), "MutatingWebhookConfiguration",
			"HAMi (MutatingWebhookConfiguration/hami) sets the scheduler of pods too"},
		"no cluster, before 1.36": {Facts{Branch: "v1.35.0"}, "MutatingWebhookConfiguration", "namespace pmk-sched-system"},
		"no cluster, from 1.36 on": {Facts{Branch: "v1.36.0"}, "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
			"by a policy"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := routedPlan(tc.facts)
			if err != nil {
				if tc.kinds != "" || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("error %v, want %q", err, tc.says)
				}
				return
			}
			routing, others := registrations(plan.Objects)
			var kinds []string
			for _, o := range routing {
				kinds = append(kinds, o.GetKind())
			}
			if got := strings.Join(kinds, " "); got != tc.kinds || len(others)+len(routing) != len(plan.Objects) {
				t.Errorf("registered by %q, want %q", got, tc.kinds)
			}
			if said := strings.Join(append(plan.Notes, plan.Warnings...), "\n"); !strings.Contains(said, tc.says) {
				t.Errorf("says %q, want %q", said, tc.says)
			}
		})
	}
}

// registration is an object of a route.
func registration(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	rule, err := route.Rule{Scheduler: "my-scheduler", Namespace: "kube-system"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	o := object("MutatingWebhookConfiguration", "route")
	o.SetAnnotations(map[string]string{route.AnnotationRule: rule})
	return o
}

func TestPodsAreRoutedOnceTheSchedulerIsStable(t *testing.T) {
	const routing = "apply MutatingWebhookConfiguration/route"
	broken := errors.New("broken")
	begin := []string{"preflight", "lock", "binary", "save revision 1", applyNew, "wait"}
	undone := []string{"delete ConfigMap/new Deployment/my-scheduler", "delete lease", "revision 1 failed", "unlock"}
	deployed := []string{"revision 1 deployed", "prune", "unlock"}
	for name, tc := range map[string]struct {
		fails     string
		proof     error
		suspended bool
		want      []string
	}{
		"deployed":       {want: slices.Concat(begin, []string{routing, "prove my-scheduler"}, deployed)},
		"not stable":     {fails: "wait", want: slices.Concat(begin, undone)},
		"not registered": {fails: routing, want: slices.Concat(begin, []string{routing}, undone)},
		"does not act":   {proof: broken, want: slices.Concat(begin, []string{routing, "prove my-scheduler"}, undone)},
		"was suspended before": {suspended: true, want: slices.Concat(begin,
			[]string{"delete MutatingWebhookConfiguration/route", routing, "prove my-scheduler"}, deployed)},
	} {
		t.Run(name, func(t *testing.T) {
			plan := testPlan(t)
			r := &recorder{fails: map[string]error{tc.fails: broken}, owned: slices.Clone(plan.Objects), fresh: !tc.suspended}
			plan.Objects = append(plan.Objects, registration(t))
			if tc.suspended {
				live := registration(t)
				if err := suspension.Suspend(live, now); err != nil {
					t.Fatal(err)
				}
				r.owned = append(r.owned, live)
			}
			d := deps(r)
			d.ProveRoute = func(_ context.Context, rule route.Rule) (string, error) {
				r.calls = append(r.calls, "prove "+rule.Scheduler)
				return "", tc.proof
			}
			_, err := Deploy(t.Context(), d, plan, RunOptions{})
			if failed := tc.fails != "" || tc.proof != nil; failed != (err != nil) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, slices.DeleteFunc(r.calls, func(c string) bool { return c == "delete " })); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUninstallEndsTheRouteFirst(t *testing.T) {
	r := &recorder{owned: []*unstructured.Unstructured{object("Deployment", "my-scheduler"), registration(t)}}
	for _, o := range r.owned {
		o.SetNamespace("kube-system")
	}
	if _, err := Uninstall(t.Context(), deps(r), "kube-system", "my-scheduler"); err != nil {
		t.Fatal(err)
	}
	want := []string{"lock", "delete MutatingWebhookConfiguration/route",
		"delete Deployment/my-scheduler MutatingWebhookConfiguration/route", "delete lease", "delete ", "unlock"}
	if diff := cmp.Diff(want, r.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
