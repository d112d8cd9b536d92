package deploy

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// ruled returns a revision with rules for plugins.
func ruled(t *testing.T, number int, resources ...string) *apply.Revision {
	t.Helper()
	return revision(t, number, "v1.24.3", func(o *PlanInput) {
		if len(resources) > 0 {
			o.Spec.RBAC.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources,
				Verbs: []string{"get", "list"}}}
		}
	})
}

func TestPermissionsThatARevisionAdds(t *testing.T) {
	shape := func(name string) []*unstructured.Unstructured {
		return shaped(t, "v1.24.3", shapes(t)[name]).Objects
	}
	other := ruled(t, 1).Objects
	for _, o := range other {
		if strings.HasSuffix(o.GetKind(), "RoleBinding") {
			o.Object["subjects"] = []any{map[string]any{"kind": "User", "name": "mallory",
				"apiGroup": "rbac.authorization.k8s.io"}}
		}
	}
	for name, tc := range map[string]struct {
		objects, live []*unstructured.Unstructured
		want          []string
	}{
		"the same":             {ruled(t, 1, "secrets").Objects, ruled(t, 2, "secrets").Objects, nil},
		"fewer":                {ruled(t, 1, "secrets").Objects, ruled(t, 2, "secrets", "pods").Objects, nil},
		"a rule":               {ruled(t, 1, "secrets").Objects, ruled(t, 2).Objects, []string{"in the cluster: get, list secrets"}},
		"a resource of a rule": {ruled(t, 1, "pods", "secrets").Objects, ruled(t, 2, "pods").Objects, []string{"in the cluster: get, list pods, secrets"}},
		"other credentials":    {shape("serviceaccount"), shape("node"), nil},
		"a file of the node":   {shape("hostpath"), shape("node"), []string{"pods of my-scheduler: root in their containers", "pods of my-scheduler: file /etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml of the node"}},
		"a Secret of others":   {shape("extender of pmk-sched"), shape("defaults"), []string{"pods of my-scheduler: Secret far-client"}},
		"nothing is deployed":  {shape("serviceaccount"), nil, nil},
		"another user": {other, ruled(t, 1).Objects, []string{"User mallory in the cluster: ClusterRole system:kube-scheduler",
			"User mallory in the cluster: ClusterRole system:volume-scheduler",
			"User mallory in namespace kube-system: Role extension-apiserver-authentication-reader",
			"User mallory in namespace kube-system: get, update leases of coordination.k8s.io named my-scheduler"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := granter{"kube-system", "my-scheduler"}
			if diff := cmp.Diff(tc.want, g.gained(tc.objects, g.grants(tc.live))); diff != "" {
				t.Errorf("permissions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPermissionsOfARevisionAreConfirmed(t *testing.T) {
	wired := func(r *apply.Revision) *Plan {
		yes := true
		near := v1alpha1.Extender{Name: "near", FilterVerb: "filter", Ignorable: &yes, Sidecar: true,
			Policies: []v1alpha1.Policy{{Name: "loadaware"}}}
		near.Deployed = &v1alpha1.DeployedExtender{Image: "localhost/e:v1", Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"a"}, Resources: []string{"b"}, Verbs: []string{"get"}}}}
		plan, err := rewired(t, r, []v1alpha1.Extender{near})
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	planOf := func(r *apply.Revision) *Plan {
		plan, err := PlanOf(r)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	more, same := ruled(t, 2, "secrets"), ruled(t, 2)
	rendered := planOf(same) // the record has rules, and the objects do not
	rendered.Scheduler.PluginRules = planOf(more).Scheduler.PluginRules
	if err := rendered.Render(); err != nil {
		t.Fatal(err)
	}
	planned := func(recorded bool, resources ...string) *Plan {
		o := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: masterInfo("v1.24.3"), Recorded: recorded,
			Image: "registry.example.com/s:v1.24.3"}}
		o.Spec.RBAC.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources,
			Verbs: []string{"get", "list"}}}
		plan, err := o.Plan()
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	undo := planOf(more)
	undo.Undoes(&Outcome{Revision: 2})
	undone := planOf(more)
	undone.Undoes(&Outcome{Revision: 2, held: granter{"kube-system", "my-scheduler"}.grants(more.Objects)})
	for name, tc := range map[string]struct {
		plan  *Plan
		asks  bool
		fails string
	}{
		"honest":                            {plan: planOf(same)},
		"more":                              {plan: planOf(more), asks: true},
		"a record with more":                {plan: rendered, asks: true},
		"an extender that the user names":   {plan: wired(same)},
		"the same with a record of more":    {plan: wired(more), asks: true},
		"a request of the user with more":   {plan: planned(false, "secrets")},
		"a recorded request with more":      {plan: planned(true, "secrets"), asks: true},
		"an undo that adds permissions":     {plan: undo, fails: "get, list secrets"},
		"an undo that restores permissions": {plan: undone},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{owned: ruled(t, 2).Objects, revisions: []*apply.Revision{ruled(t, 2)}}
			d := deps(r)
			var asked string
			d.Confirm = func(_ context.Context, question string) error {
				asked = question
				return nil
			}
			_, err := Deploy(t.Context(), d, tc.plan, RunOptions{})
			if tc.asks != strings.Contains(asked, "get, list secrets") || (err != nil) != (tc.fails != "") {
				t.Fatalf("asked %q, error %v", asked, err)
			}
			if d.Confirm = nil; tc.asks || tc.fails != "" {
				r = &recorder{owned: ruled(t, 2).Objects, revisions: []*apply.Revision{ruled(t, 2)}}
				d.Cluster = r
				_, err = Deploy(t.Context(), d, tc.plan, RunOptions{})
				if !problem.IsInvalid(err) || !strings.Contains(err.Error(), "get, list secrets") ||
					slices.Contains(r.calls, "save revision 2") {
					t.Errorf("error %v, calls %v", err, r.calls)
				}
			}
		})
	}
}

// The revision may have been written while the deployment ran, or before.
func TestUndoRestoresNoPermissionsThatWereNotThere(t *testing.T) {
	for name, tc := range map[string]struct {
		live     *apply.Revision
		restored bool
	}{"not there": {ruled(t, 1), false}, "there": {ruled(t, 1, "secrets"), true}} {
		t.Run(name, func(t *testing.T) {
			plan := testPlan(t)
			r := &recorder{owned: tc.live.Objects, revisions: []*apply.Revision{ruled(t, 1, "secrets")},
				fails: map[string]error{applyNew: context.DeadlineExceeded}}
			_, err := Deploy(t.Context(), deps(r), plan, RunOptions{})
			refused := strings.Contains(err.Error(), "revision 1 of my-scheduler is not restored") &&
				strings.Contains(err.Error(), "get, list secrets")
			applied := slices.ContainsFunc(r.calls, func(call string) bool {
				return strings.HasPrefix(call, "apply ServiceAccount/my-scheduler")
			})
			if refused == tc.restored || applied != tc.restored {
				t.Errorf("error %v, calls %q", err, r.calls)
			}
		})
	}
}

// A revision of everything that can be deployed can be read.
func TestObjectsOfAPlanArePermitted(t *testing.T) {
	all := shapes(t)
	all["Policy"] = func(o *PlanInput) { o.Spec.Configuration.PolicyConfigMap = true }
	for _, release := range []string{"v1.20.15", "v1.22.17", "v1.34.1"} {
		for name, change := range all {
			if name == "Policy" && release != "v1.20.15" || name == "port, resources, flags" {
				continue // not of that release
			}
			plan := shaped(t, release, change)
			if err := apply.CheckObjects(plan.Objects, plan.Namespace, plan.Name); err != nil {
				t.Errorf("%s, %s: %v", release, name, err)
			}
		}
	}
	cert := []byte("PEM")
	extender := manifest.Extender{Name: "ext", Image: "localhost/e:v1", Release: masterInfo("v1.24.3").Release,
		Policies: []manifest.Policy{{Name: "loadaware"}}, Nodes: []string{"a"}, Restarted: "now",
		Certificates: manifest.ExtenderCertificates{CA: cert, Server: cert, Client: cert, CAKey: cert, ServerKey: cert,
			ClientKey: cert}}
	extender.Call.Name, extender.Call.FilterVerb, extender.Call.BindVerb = "ext", "filter", "bind"
	objects, err := manifest.ExtenderObjects(extender)
	if err == nil {
		err = apply.CheckObjects(objects, "kube-system", "ext")
	}
	if err != nil {
		t.Error(err)
	}
}
