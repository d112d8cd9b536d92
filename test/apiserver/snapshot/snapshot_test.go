//go:build linux

package snapshot

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func uncompress(t *testing.T, file []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// hidden is in every value that must not leave the cluster.
const hidden = "DO-NOT-LEAVE"

// makeSecrets creates objects with values that must not leave the cluster.
func makeSecrets(t *testing.T, ns string) {
	t.Helper()
	kube, ctx := server.Client(t), t.Context()
	annotations := map[string]string{"note": hidden, "kubectl.kubernetes.io/last-applied-configuration": hidden}
	meta := metav1.ObjectMeta{Name: "shop", Namespace: ns, Annotations: annotations,
		Labels: map[string]string{"app": "shop"}}
	_, podErr := kube.CoreV1().Pods(ns).Create(ctx, &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "main", Image: "localhost/none:v1", Command: []string{hidden}, Args: []string{hidden},
			Env:          []corev1.EnvVar{{Name: "PASSWORD", Value: hidden}},
			VolumeMounts: []corev1.VolumeMount{{Name: "keys", MountPath: "/" + hidden}},
		}},
		Volumes: []corev1.Volume{
			{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "do-not-leave"}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		},
	}}, metav1.CreateOptions{})
	_, secretErr := kube.CoreV1().Secrets(ns).Create(ctx,
		&corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"key": hidden}}, metav1.CreateOptions{})
	_, configErr := kube.CoreV1().ConfigMaps(ns).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": hidden}}, metav1.CreateOptions{})
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &intstr.IntOrString{IntVal: 1}, Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
	}}
	_, budgetErr := kube.PolicyV1().PodDisruptionBudgets(ns).Create(ctx, budget, metav1.CreateOptions{})
	if err := errors.Join(podErr, secretErr, configErr, budgetErr); err != nil {
		t.Fatal(err)
	}
}

// The permissions that `snapshot --rbac` prints are sufficient for a snapshot and grant nothing
// else. The snapshot contains no secrets.
func TestSnapshotHasNoSecrets(t *testing.T) {
	kube := server.Client(t)
	user := grant(t, kube, nil)
	ns := strings.ToLower(t.Name())
	makeSecrets(t, ns)
	ctx := run.Context(t)
	if err := server.AwaitAccess(ctx, user,
		authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}); err != nil {
		t.Fatal(err)
	}
	got := take(t, "--as", user)
	if bytes.Contains(got.Text, []byte(hidden)) || bytes.Contains(bytes.ToLower(got.Text), []byte("do-not-leave")) {
		t.Error("the snapshot has what must not leave the cluster")
	}
	for _, s := range got.Header.Skipped {
		if s.Reason != snapshot.NotServed {
			t.Errorf("%s skipped: %s", s.Resource, s.Reason)
		}
	}
	if pods := names(t, got.Objects["Pod"], ns); !slices.Equal(pods, []string{"shop"}) {
		t.Errorf("pods %q", pods)
	}
	if budgets := names(t, got.Objects["PodDisruptionBudget"], ns); len(budgets) != 1 {
		t.Errorf("budgets %q", budgets)
	}
	if !strings.Contains(strings.Join(got.Objects["Pod"], ""), `"claimName":"data"`) {
		t.Error("the claim of the pod is missing")
	}
	refused(t, user)
}

// refused checks that a user has only the permissions of a snapshot.
func refused(t *testing.T, user string) {
	t.Helper()
	for _, verb := range []string{"get", "watch", "create", "update", "patch", "delete"} {
		for _, resource := range []string{"pods", "nodes", "secrets"} {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: resource,
					Namespace: "default"},
			}}
			answer, err := server.Client(t).AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review,
				metav1.CreateOptions{})
			if err != nil || answer.Status.Allowed {
				t.Errorf("%s %s: allowed %t, %v", verb, resource, answer.Status.Allowed, err)
			}
		}
	}
}

func TestKindsWithoutPermissionAreSkippedUnlessRequired(t *testing.T) {
	without := func(resource string) func(*rbacv1.ClusterRole) {
		return func(role *rbacv1.ClusterRole) {
			for i := range role.Rules {
				role.Rules[i].Resources = slices.DeleteFunc(role.Rules[i].Resources, func(r string) bool { return r == resource })
			}
		}
	}
	await := authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"}
	t.Run("services", func(t *testing.T) {
		user := grant(t, server.Client(t), without("services"))
		if err := server.AwaitAccess(run.Context(t), user, await); err != nil {
			t.Fatal(err)
		}
		got := take(t, "--as", user)
		if !slices.Contains(got.Header.Skipped, snapshot.Skipped{Resource: "services", Reason: snapshot.NotPermitted}) {
			t.Errorf("skipped %v", got.Header.Skipped)
		}
	})
	t.Run("pods", func(t *testing.T) {
		user := grant(t, server.Client(t), without("pods"))
		if err := server.AwaitAccess(run.Context(t), user, await); err != nil {
			t.Fatal(err)
		}
		command(t, "--as", user, "--to-file", t.TempDir()+"/x").Fails(t, 1, "cannot list pods", "snapshot --rbac")
	})
}

func TestSnapshotsOfOneStateAreTheSame(t *testing.T) {
	ns := namespace(t, server.Client(t))
	createPods(t.Context(), t, server.Client(t), ns, 0, 30)
	first, second := take(t), take(t)
	if diff := cmp.Diff(first.Objects, second.Objects); diff != "" {
		t.Errorf("objects (-first +second):\n%s", diff)
	}
	hiddenNames := take(t, "--anonymize")
	again := take(t, "--anonymize")
	if diff := cmp.Diff(hiddenNames.Objects, again.Objects); diff != "" {
		t.Errorf("without names (-first +second):\n%s", diff)
	}
	if bytes.Contains(hiddenNames.Text, []byte(ns)) {
		t.Error("the name of the namespace is left")
	}
}

// Every kind that schedulers read is in the snapshot or skipped with a reason.
func TestKindsThatTheReleaseDoesNotServeAreSkipped(t *testing.T) {
	got := take(t)
	seen := map[string]string{}
	for _, r := range got.Header.Resources {
		kind := snapshot.Kind{Group: r.Group, Resource: r.Resource}
		seen[kind.GroupResource()] = "read"
	}
	for _, s := range got.Header.Skipped {
		seen[s.Resource] = s.Reason
	}
	for _, kind := range snapshot.Kinds() {
		want := "read"
		if kind.Group == "resource.k8s.io" || kind.Group == "scheduling.k8s.io" && kind.Resource != "priorityclasses" {
			want = snapshot.NotServed // at v1.24.3
		}
		if kind.External {
			want = "" // nothing defines it
		}
		if seen[kind.GroupResource()] != want {
			t.Errorf("%s: %q, want %q", kind.GroupResource(), seen[kind.GroupResource()], want)
		}
	}
}
