//go:build linux

package apply_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

func TestApplyCreatesInOrderThenSaysUnchanged(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	objs := objects(t, "first", ns, "a")

	planned, err := client.Plan(ctx, objs)
	if err != nil {
		t.Fatal(err)
	}
	created, err := client.Apply(ctx, objs)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("NS", ns).Replace(`ClusterRoleBinding/first-as-kube-scheduler created
ServiceAccount/NS/first created
Role/NS/first-lease created
RoleBinding/NS/first-lease created
ConfigMap/NS/first-config-a created
Secret/NS/first-credentials-a created
Deployment/NS/first created
`)
	if diff := cmp.Diff(want, created.String()); diff != "" {
		t.Errorf("first run (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(planned.String(), created.String()); diff != "" {
		t.Errorf("the plan differs from what was done (-plan +done):\n%s", diff)
	}
	again, err := client.Apply(ctx, objs)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(want, "created", "unchanged"); again.String() != want || again.Changed() ||
		again.Diff() != "" {
		t.Errorf("second run changes something:\n%s%s", again, again.Diff())
	}
	if strings.Contains(planned.Diff(), "a2V5") {
		t.Errorf("the diff shows a key:\n%s", planned.Diff())
	}
}

func TestPlanShowsWhatDiffersAndChangesNothing(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	if _, err := client.Apply(ctx, objects(t, "planned", ns, "a")); err != nil {
		t.Fatal(err)
	}
	objs := objects(t, "planned", ns, "a")
	deployment := find(t, objs, "Deployment")
	if err := unstructured.SetNestedField(deployment.Object, int64(2), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		changes, err := client.Plan(ctx, objs)
		if err != nil {
			t.Fatal(err)
		}
		if want := "Deployment/" + ns + "/planned configured\n"; !strings.Contains(changes.String(), want) {
			t.Errorf("changes\n%s do not hold %q", changes, want)
		}
		if diff := changes.Diff(); !strings.Contains(diff, "-  replicas: 1\n+  replicas: 2\n") {
			t.Errorf("diff does not show the replicas:\n%s", diff)
		}
	}
}

func TestApplyTakesBackWhatOthersChangedAndSaysSo(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	objs := objects(t, "edited", ns, "a")
	if _, err := client.Apply(ctx, objs); err != nil {
		t.Fatal(err)
	}
	scale := []byte(`{"spec":{"replicas":0}}`)
	_, err := server.Client(t).AppsV1().Deployments(ns).Patch(ctx, "edited", types.MergePatchType, scale,
		metav1.PatchOptions{FieldManager: "someone"})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := client.Apply(ctx, objs)
	if err != nil {
		t.Fatal(err)
	}
	want := "Deployment/" + ns + `/edited configured (reverts changes of others: .spec.replicas ("someone" using apps/v1))`
	if !strings.Contains(changes.String(), want) {
		t.Errorf("changes\n%s do not hold\n%s", changes, want)
	}
}

func TestApplyRecreatesWhatCannotBeChangedOnlyWhereNothingIsLost(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	if _, err := client.Apply(ctx, objects(t, "fixed", ns, "a")); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		change func(objs []*unstructured.Unstructured) error
		want   string
	}{
		"data of an immutable ConfigMap": {func(objs []*unstructured.Unstructured) error {
			return unstructured.SetNestedField(find(t, objs, "ConfigMap").Object, "other", "data", "fixed.yaml")
		}, "ConfigMap/" + ns + "/fixed-config-a recreated (a field that differs is immutable)\n"},
		"data of an immutable Secret": {func(objs []*unstructured.Unstructured) error {
			return unstructured.SetNestedField(find(t, objs, "Secret").Object, "b3RoZXI=", "data", "tls.key")
		}, "Secret/" + ns + "/fixed-credentials-a recreated (a field that differs is immutable)\n"},
		"role of a binding": {func(objs []*unstructured.Unstructured) error {
			return unstructured.SetNestedField(find(t, objs, "ClusterRoleBinding").Object, "system:volume-scheduler", "roleRef",
				"name")
		}, "ClusterRoleBinding/fixed-as-kube-scheduler recreated (a field that differs is immutable)\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objs := objects(t, "fixed", ns, "a")
			if err := tc.change(objs); err != nil {
				t.Fatal(err)
			}
			changes, err := client.Apply(ctx, objs)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(changes.String(), tc.want) {
				t.Errorf("changes\n%s do not hold %q", changes, tc.want)
			}
			if strings.Contains(changes.Diff(), "b3RoZXI=") {
				t.Errorf("the diff shows Secret data:\n%s", changes.Diff())
			}
			again, err := client.Plan(ctx, objs)
			if err != nil || again.Changed() {
				t.Errorf("after it: %v\n%s", err, again)
			}
		})
	}
	t.Run("selector of a Deployment", func(t *testing.T) {
		objs := objects(t, "fixed", ns, "b")
		deployment := find(t, objs, "Deployment").Object
		labels := map[string]any{"app.kubernetes.io/instance": "other"}
		if err := errors.Join(
			unstructured.SetNestedMap(deployment, labels, "spec", "selector", "matchLabels"),
			unstructured.SetNestedMap(deployment, labels, "spec", "template", "metadata", "labels"),
		); err != nil {
			t.Fatal(err)
		}
		changes, err := client.Apply(ctx, objs)
		want := "an immutable field of Deployment/" + ns + "/fixed differs: "
		if err == nil || !strings.HasPrefix(err.Error(), want) || len(problem.Hints(err)) == 0 {
			t.Errorf("error is %v", err)
		}
		if _, err := server.Client(t).CoreV1().ConfigMaps(ns).Get(ctx, "fixed-config-b", metav1.GetOptions{}); err == nil ||
			len(changes) > 0 {
			t.Errorf("something was applied before all was accepted: %v", changes)
		}
	})
}

func TestApplyRefusesWhatIsNotOurs(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "foreign-config-a",
		Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}}}
	if _, err := server.Client(t).CoreV1().ConfigMaps(ns).Create(ctx, foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	objs := objects(t, "foreign", ns, "a")
	_, err := client.Apply(ctx, objs)
	refused := "ConfigMap/" + ns +
		"/foreign-config-a already exists and is not managed by pmk-sched for this scheduler, but by Helm"
	if err == nil || err.Error() != refused {
		t.Fatalf("error is %v", err)
	}
	if _, err := server.Client(t).CoreV1().ServiceAccounts(ns).Get(ctx, "foreign", metav1.GetOptions{}); err == nil {
		t.Error("the service account was made all the same")
	}
	changes, err := client.Delete(ctx, objs)
	if err != nil {
		t.Fatal(err)
	}
	if want := "ConfigMap/" + ns +
		"/foreign-config-a skipped (not managed by pmk-sched for this scheduler)\n"; !strings.Contains(changes.String(),
		want) {
		t.Errorf("changes\n%s do not hold %q", changes, want)
	}
}

func TestApplyInANamespaceThatItMakes(t *testing.T) {
	ctx, client := testContext(t), newClient(t, server.Config())
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{
			"name": "made-by-apply", "labels": map[string]any{ownership.LabelManagedBy: ownership.Manager,
				ownership.LabelInstance: "own"},
		}}}
	objs := append(objects(t, "own", "made-by-apply", "a"), ns)
	for _, action := range []string{"created", "unchanged"} {
		changes, err := client.Apply(ctx, objs)
		if err != nil {
			t.Fatal(err)
		}
		if want := "Namespace/made-by-apply " + action + "\n"; !strings.HasPrefix(changes.String(), want) ||
			strings.Count(changes.String(), action) != 8 {
			t.Errorf("changes are not all %s, the namespace first:\n%s", action, changes)
		}
	}
}

func TestNoPermissionNamesWhoMayNotDoWhat(t *testing.T) {
	ctx, ns := testContext(t), server.Namespace(t)
	reader := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader-jane"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}},
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}}}
	if _, err := server.Client(t).RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Client(t).RbacV1().ClusterRoleBindings().Create(ctx, reader, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := server.AwaitAccess(ctx, "jane", authorizationv1.ResourceAttributes{Verb: "list", Group: rbacv1.GroupName,
		Resource: "clusterrolebindings"}); err != nil {
		t.Fatal(err)
	}
	_, err := newClient(t, server.ConfigFor("jane")).Apply(ctx, objects(t, "jane", ns, "a"))
	var forbidden *kubeapi.ForbiddenError
	if !errors.As(err, &forbidden) {
		t.Fatalf("error is %v", err)
	}
	want := "apply ClusterRoleBinding/jane-as-kube-scheduler: no permission: user jane cannot patch " +
		"clusterrolebindings.rbac.authorization.k8s.io at cluster scope"
	if err.Error() != want {
		t.Errorf("error (-want +got):\n%s", cmp.Diff(want, err.Error()))
	}
	if want := "kubectl auth can-i patch clusterrolebindings.rbac.authorization.k8s.io/jane-as-kube-scheduler"; !strings.Contains(forbidden.Hint(), want) {
		t.Errorf("hint %q does not hold %q", forbidden.Hint(), want)
	}
}

func TestNoClusterIsOneClearErrorAtOnce(t *testing.T) {
	other := server.Config()
	other.CAFile, other.CAData = "", nil
	unknown := server.Config()
	unknown.BearerToken = "nobody"
	cases := map[string]struct {
		cfg  *rest.Config
		want kubeapi.Cause
	}{
		"nothing listens":      {&rest.Config{Host: "https://127.0.0.1:1"}, kubeapi.CauseRefused},
		"no such host":         {&rest.Config{Host: "https://no-such-host.invalid:6443"}, kubeapi.CauseNoSuchHost},
		"certificate of other": {other, kubeapi.CauseCertificate},
		"unknown token":        {unknown, kubeapi.CauseIdentity},
		"plain HTTP":           {&rest.Config{Host: strings.Replace(server.Config().Host, "https", "http", 1)}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newClient(t, tc.cfg).Plan(testContext(t), objects(t, "nowhere", "default", "a"))
			var unreachable *kubeapi.UnreachableError
			if err == nil || errors.As(err, &unreachable) != (tc.want != "") {
				t.Fatalf("error is %v", err)
			}
			if tc.want != "" && (unreachable.Cause != tc.want || unreachable.Hint() == "") {
				t.Errorf("cause is %q, want %q: %v", unreachable.Cause, tc.want, err)
			}
		})
	}
}
