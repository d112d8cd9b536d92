package verify

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/test/kubeapitest"
)

// TestPermissionsOfTheSchedulerAreAskedForAgainWhenAnAnswerIsLost asks a server that rejects an
// empty review, as an API server does
// (k8s.io/kubernetes/pkg/apis/authorization/validation/validation.go).
func TestPermissionsOfTheSchedulerAreAskedForAgainWhenAnAnswerIsLost(t *testing.T) {
	var asked int
	bindings := rbacv1.ClusterRoleBindingList{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBindingList"},
		Items: []rbacv1.ClusterRoleBinding{{
			RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: kubeSchedulerRole},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: kubeSchedulerRole}},
		}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_ = json.NewEncoder(w).Encode(bindings)
			return
		}
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		if review.Spec.ResourceAttributes == nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonInvalid, Message: "the review is empty", Code: http.StatusUnprocessableEntity,
			})
			return
		}
		asked++
		review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
		review.Status.Allowed = true
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	asJSON := rest.ContentConfig{ContentType: runtime.ContentTypeJSON}
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: asJSON,
		WrapTransport: kubeapitest.LoseAnswer(3)})
	if err != nil {
		t.Fatal(err)
	}
	r := &verifier{Options: Options{Name: "a", Namespace: "a"}, kube: kube, retry: &kubeapi.Retrier{},
		result: &Result{Namespace: "a"}}
	if missing, err := r.missingPermissions(t.Context()); err != nil || len(missing) > 0 {
		t.Errorf("missing permissions %q, %v", missing, err)
	}
	if lost := 1; asked != len(r.requiredPermissions())+lost {
		t.Errorf("%d reviews were complete, want %d and one that is asked for again", asked, len(r.requiredPermissions()))
	}
}
