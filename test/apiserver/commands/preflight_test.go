//go:build linux

package commands

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
)

// runPreflight runs the checks and returns a line for each one that did not pass.
func runPreflight(ctx context.Context, t *testing.T, cfg *rest.Config, o preflight.Options) (string, error) {
	t.Helper()
	checks, err := preflight.Checks(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	_, err = preflight.RunAll(ctx, checks, func(o preflight.Outcome) {
		if o.Status != preflight.Passed {
			lines = append(lines, string(o.Status)+" "+o.Name+": "+o.Detail)
		}
	})
	return strings.Join(lines, "\n"), err
}

func options(name, ns string) preflight.Options {
	return preflight.Options{Name: name, Namespace: ns, Image: "localhost/scheduler:1",
		Objects: schedulerObjects(name, ns), Port: 10260}
}

func TestPreflightPassesForAdministrator(t *testing.T) {
	ctx := testContext(t)
	ns := server.Namespace(t)
	account(ctx, t, ns, "default")
	node(ctx, t, "master-good", masterLabel, masterTaint)
	if problems, err := runPreflight(ctx, t, server.Config(), options("good", ns)); err != nil || problems != "" {
		t.Errorf("%v\n%s", err, problems)
	}
}

func TestPreflightReportsAllFailures(t *testing.T) {
	ctx := testContext(t)
	ns := server.Namespace(t)
	node(ctx, t, "master-bad", masterLabel, corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoExecute})
	foreign := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(schedulerObjects("bad", ns)[1].Object,
		foreign); err != nil {
		t.Fatal(err)
	}
	foreign.Labels = nil
	if _, err := server.Client(t).AppsV1().Deployments(ns).Create(ctx, foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o := options("bad", ns)
	o.Image = "localhost/Not An Image"
	o.TakenPorts = map[int]string{10260: "another-scheduler"}
	problems, err := runPreflight(ctx, t, server.Config(), o)
	want := `failed image-reference: invalid image "localhost/Not An Image": could not parse reference: localhost/Not An Image
failed names-free: Deployment/` + ns + `/bad already exists and is not managed by pmk-sched for bad
failed control-plane-node: no node accepts the pod: master-bad has the taint maintenance:NoExecute
unknown pod-admitted: could not be checked: namespace ` + ns + ` has no ServiceAccount default
failed port-free: port 10260 is in use by another-scheduler`
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	var failed *preflight.FailedError
	if !errors.As(err, &failed) || len(failed.Failed) != 4 || !failed.CheckFailed() ||
		!strings.Contains(failed.Hint(), "--port") {
		t.Errorf("error is %v", err)
	}
}

func TestPreflightWithoutNamespaceAndNode(t *testing.T) {
	problems, err := runPreflight(testContext(t), t, server.Config(), options("lost", "no-such-namespace"))
	want := `failed namespace-exists: namespace no-such-namespace does not exist
failed control-plane-node: no node has the label node-role.kubernetes.io/master
unknown pod-admitted: could not be checked: namespace no-such-namespace has no ServiceAccount default`
	if diff := cmp.Diff(want, problems); diff != "" || err == nil {
		t.Errorf("problems (-want +got):\n%s\n%v", diff, err)
	}
}

func TestPreflightFindsPodThatUsesPort(t *testing.T) {
	ctx := testContext(t)
	ns := server.Namespace(t)
	node(ctx, t, "master-taken", masterLabel, masterTaint)
	account(ctx, t, ns, "default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "squatter"}, Spec: corev1.PodSpec{
		HostNetwork: true, NodeName: "master-taken",
		Containers: []corev1.Container{{Name: "c", Image: "localhost/x",
			Command: []string{"kube-scheduler", "--secure-port=10260"}}},
	}}
	if _, err := server.Client(t).CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	problems, err := runPreflight(ctx, t, server.Config(), options("taken", ns))
	want := "failed port-free: port 10260 of node master-taken is in use by Pod/" + ns + "/squatter"
	if diff := cmp.Diff(want, problems); diff != "" || err == nil {
		t.Errorf("problems (-want +got):\n%s\n%v", diff, err)
	}
}

func TestPreflightReportsMissingPermissions(t *testing.T) {
	ctx := testContext(t)
	ns := server.Namespace(t)
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}},
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, Rules: rules}
	if _, err := server.Client(t).RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
			Kind: "ClusterRole", Name: "viewer"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "viewer"}},
	}
	if _, err := server.Client(t).RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := server.AwaitAccess(ctx, "viewer", authorizationv1.ResourceAttributes{Verb: "list", Group: "apps",
		Resource: "deployments", Namespace: ns}); err != nil {
		t.Fatal(err)
	}
	node(ctx, t, "master-viewed", masterLabel, masterTaint)
	problems, err := runPreflight(ctx, t, server.ConfigFor("viewer"), options("viewed", ns))
	want := strings.ReplaceAll(`unknown names-free: could not be checked: read ClusterRoleBinding/viewed-as-kube-scheduler: no permission: user viewer cannot get clusterrolebindings.rbac.authorization.k8s.io at cluster scope
unknown pod-admitted: could not be checked: namespace NS has no ServiceAccount default
failed permission: cannot get, list, create, patch, delete clusterrolebindings.rbac.authorization.k8s.io
warning permission: cannot bind clusterroles.rbac.authorization.k8s.io system:kube-scheduler
failed permission: cannot create, patch, delete secrets in namespace NS
failed permission: cannot create, patch, delete deployments.apps in namespace NS`, "NS", ns)
	if diff := cmp.Diff(want, problems); diff != "" || err == nil {
		t.Errorf("problems (-want +got):\n%s\n%v", diff, err)
	}
}
