//go:build linux

package commands

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
	"github.com/pmk-sched/pmk-sched/rbac"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// account creates a ServiceAccount, as the controller manager of a cluster does.
func account(ctx context.Context, t *testing.T, ns, name string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := server.Client(t).CoreV1().ServiceAccounts(ns).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestPreflightShowsWhatRefusesThePodsOfADeployment has refusals of the API server's plugins and of
// a webhook. The API server admits the Deployment in each case.
func TestPreflightShowsWhatRefusesThePodsOfADeployment(t *testing.T) {
	ctx := testContext(t)
	kube := server.Client(t)
	node(ctx, t, "master-tried", masterLabel, masterTaint)
	for name, c := range map[string]struct {
		prepare func(t *testing.T, ns string, deployment *unstructured.Unstructured)
		want    string
	}{
		"quota": {func(t *testing.T, ns string, _ *unstructured.Unstructured) {
			none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"},
				Spec: corev1.ResourceQuotaSpec{Hard: none}}
			quota, err := kube.CoreV1().ResourceQuotas(ns).Create(ctx, quota, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // as the controller manager does
			if _, err := kube.CoreV1().ResourceQuotas(ns).UpdateStatus(ctx, quota, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0"},
		"Pod Security": {func(t *testing.T, ns string, _ *unstructured.Unstructured) {
			label(ctx, t, ns, "pod-security.kubernetes.io/enforce", "baseline")
		}, `violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`},
		"priority class": {func(t *testing.T, _ string, deployment *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(deployment.Object, "infra", "spec", "template", "spec",
				"priorityClassName"); err != nil {
				t.Fatal(err)
			}
		}, "no PriorityClass with name infra was found"},
		"webhook": {func(t *testing.T, ns string, _ *unstructured.Unstructured) { denyPods(ctx, t, ns) },
			`admission webhook "pods.example.com" denied the request: a Pod of ReplicaSet tried, created by ` +
				"system:serviceaccount:kube-system:replicaset-controller"},
	} {
		t.Run(name, func(t *testing.T) {
			ns := server.Namespace(t)
			account(ctx, t, ns, "default")
			o := options("tried", ns)
			c.prepare(t, ns, o.Objects[1])
			var problems string
			// The plugins read quotas and webhooks from caches.
			run.Eventually(t, "the pod is refused", func(ctx context.Context) (bool, string) {
				var err error
				problems, err = runPreflight(ctx, t, server.Config(), o)
				return err != nil, problems
			})
			if !strings.HasPrefix(problems, "failed pod-admitted: the API server refuses the pod: ") ||
				!strings.Contains(problems, c.want) || strings.Contains(problems, "\n") {
				t.Errorf("got %s\nwant %s", problems, c.want)
			}
			pods, err := kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
			if err != nil || len(pods.Items) > 0 {
				t.Errorf("%d pods were stored, %v", len(pods.Items), err)
			}
		})
	}
}

func label(ctx context.Context, t *testing.T, ns, key, value string) {
	t.Helper()
	namespace, err := server.Client(t).CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	namespace.Labels[key] = value
	if _, err := server.Client(t).CoreV1().Namespaces().Update(ctx, namespace, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// denyPods registers a webhook that denies every pod in a namespace, and names its controller and
// its creator.
func denyPods(ctx context.Context, t *testing.T, ns string) {
	t.Helper()
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		var pod corev1.Pod
		err := json.NewDecoder(r.Body).Decode(&review)
		if err == nil {
			err = json.Unmarshal(review.Request.Object.Raw, &pod)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		owner := metav1.GetControllerOf(&pod)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{
			Message: "a Pod of " + owner.Kind + " " + owner.Name + ", created by " + review.Request.UserInfo.Username}}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(webhook.Close)
	none, url := admissionregistrationv1.SideEffectClassNone, webhook.URL
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pods-"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "pods.example.com", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
					Resources: []string{"pods"}},
			}},
		}},
	}
	webhooks := server.Client(t).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	created, err := webhooks.Create(ctx, configuration, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := webhooks.Delete(context.WithoutCancel(ctx), created.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// TestKubeSystemIsClosedToAUserWhoMayBindElsewhere has a user as on GKE Autopilot, where an
// authorizer refuses every object in kube-system.
func TestKubeSystemIsClosedToAUserWhoMayBindElsewhere(t *testing.T) {
	ctx := testContext(t)
	kube := server.Client(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "autopilot"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterrolebindings"}, Verbs: []string{"*"}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"get"}}}}
	if _, err := kube.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "autopilot"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "autopilot"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "autopilot"}}}
	if _, err := kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := server.AwaitAccess(ctx, "autopilot", authorizationv1.ResourceAttributes{Verb: "create",
		Group: rbacv1.GroupName, Resource: "clusterrolebindings"}); err != nil {
		t.Fatal(err)
	}
	o := rbac.Options{Name: "closed", Namespace: server.Namespace(t)}
	for user, want := range map[string]string{
		"autopilot": "the user may create clusterrolebindings, and no rolebindings.rbac.authorization.k8s.io in namespace " +
			"kube-system",
		"nobody": "", // lacks the permissions for a scheduler, wherever it is
		"":       "",
	} {
		cfg := server.Config()
		if user != "" {
			cfg = server.ConfigFor(user)
		}
		if got, err := preflight.SystemClosed(ctx, cfg, o, nil); got != want || err != nil {
			t.Errorf("user %q: got %q, %v, want %q", user, got, err, want)
		}
	}
	left, err := kube.RbacV1().RoleBindings("kube-system").Get(ctx, rbac.AuthenticationReader(o).Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the dry run left %v, %v", left, err)
	}
}
