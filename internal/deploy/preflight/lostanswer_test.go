package preflight

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/test/kubeapitest"
)

// TestPermissionsAreAskedForAgainWhenAnAnswerIsLost asks a server that rejects an empty review, as
// an API server does (k8s.io/kubernetes/pkg/apis/authorization/validation/validation.go).
func TestPermissionsAreAskedForAgainWhenAnAnswerIsLost(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if review.Spec.ResourceAttributes == nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonInvalid, Message: "the review is empty", Code: http.StatusUnprocessableEntity,
			})
			return
		}
		asked = append(asked, review.Spec.ResourceAttributes.Verb)
		review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
		review.Status.Allowed = true
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	asJSON := rest.ContentConfig{ContentType: runtime.ContentTypeJSON}
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: asJSON,
		WrapTransport: kubeapitest.LoseAnswer(2)})
	if err != nil {
		t.Fatal(err)
	}
	p := &preflight{kube: kube, retry: &kubeapi.Retrier{}}
	pods := permission{on: authorizationv1.ResourceAttributes{Resource: "pods"}, verbs: []string{"get", "list", "create"}}
	if err := p.checkPermission(t.Context(), pods); err != nil {
		t.Errorf("a permission that is granted: %v", err)
	}
	if diff := cmp.Diff([]string{"get", "list", "list", "create"}, asked); diff != "" {
		t.Errorf("verbs that were asked for (-want +got):\n%s", diff)
	}
}
