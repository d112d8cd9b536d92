package preflight

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/rbac"
)

func TestKubeSystemIsClosedOnlyIfTheClusterRefusesTheBinding(t *testing.T) {
	const warden = `rolebindings.rbac.authorization.k8s.io is forbidden: User "admin" cannot create resource "rolebindings" ` +
		`in API group "rbac.authorization.k8s.io" in the namespace "kube-system": GKE Warden authz [denied by ` +
		`managed-namespaces-limitation]: the namespace "kube-system" is managed`
	for name, tc := range map[string]struct {
		exists  bool
		denied  []string // resources that the user may not create in kube-system
		message string   // of the refusal of the dry run
		want    string
	}{
		"open":                              {},
		"the binding exists":                {exists: true, message: warden},
		"closed by an authorizer":           {denied: []string{"rolebindings"}, want: "no rolebindings.rbac"},
		"closed, as only the request shows": {message: warden, want: "managed-namespaces-limitation"},
		"closed by a webhook":               {message: `admission webhook "w" denied the request: managed`, want: "managed"},
		"a user who may create no binding":  {denied: []string{"rolebindings", "clusterrolebindings"}},
		"a proxy that only reads":           {message: "read-only"},
		"a user who may not grant the role": {message: `rolebindings.rbac.authorization.k8s.io "a" is forbidden: user "x" ` +
			`is attempting to grant RBAC permissions not currently held`},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
					var review authorizationv1.SelfSubjectAccessReview
					_ = json.NewDecoder(r.Body).Decode(&review)
					review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
					on := review.Spec.ResourceAttributes
					review.Status.Allowed = !slices.Contains(tc.denied, on.Resource)
					_ = json.NewEncoder(w).Encode(review)
				case r.Method == http.MethodGet && tc.exists, r.Method == http.MethodPost && tc.message == "":
					_ = json.NewEncoder(w).Encode(rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{
						APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"}})
				default:
					code, reason, message := http.StatusNotFound, metav1.StatusReasonNotFound, "not found"
					if r.Method == http.MethodPost {
						code, reason, message = http.StatusForbidden, metav1.StatusReasonForbidden, tc.message
						if r.URL.Query().Get("dryRun") != "All" {
							t.Errorf("%s without a dry run", r.URL)
						}
					}
					w.WriteHeader(code)
					_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
						Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message})
				}
			}))
			t.Cleanup(server.Close)
			cfg := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
			got, err := SystemClosed(t.Context(), cfg, rbac.Options{Name: "a", Namespace: "sched"}, nil)
			if err != nil || (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
