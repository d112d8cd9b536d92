package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

func TestPermissionsFollowFromTheObjects(t *testing.T) {
	object := func(apiVersion, kind, ns string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetAPIVersion(apiVersion)
		obj.SetKind(kind)
		obj.SetNamespace(ns)
		return obj
	}
	binding := object("rbac.authorization.k8s.io/v1", "RoleBinding", "kube-system")
	binding.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
	objs := []*unstructured.Unstructured{
		object("apps/v1", "Deployment", "a"), object("v1", "ConfigMap", "a"), object("v1", "ConfigMap", "a"), object("v1",
			"Secret", "a"),
		binding, object("policy/v1", "PodDisruptionBudget", "a"),
	}
	var got []string
	for _, p := range permissions(objs, "a") {
		line := fmt.Sprintf("%s %s", strings.Join(p.verbs, ","), p)
		if p.warning {
			line += " (warning)"
		}
		got = append(got, line)
	}
	want := []string{
		"get,list,create,patch,delete configmaps in namespace a",
		"list events in namespace a (warning)",
		"list pods in namespace a",
		"get pods/log in namespace a (warning)",
		"get,list,create,patch,delete secrets in namespace a",
		"get,list,create,patch,delete deployments.apps in namespace a",
		"list replicasets.apps in namespace a",
		"get,create,update,delete leases.coordination.k8s.io in namespace a",
		"get,list,create,patch,delete poddisruptionbudgets.policy in namespace a",
		"get,list,create,patch,delete rolebindings.rbac.authorization.k8s.io in namespace kube-system",
		"bind roles.rbac.authorization.k8s.io reader in namespace kube-system (warning)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}

func TestPermissionsThatTheUserLacksAreNamed(t *testing.T) {
	const hint = "use a kubeconfig of a cluster administrator (--kubeconfig/--context), or get the permission granted"
	for name, c := range map[string]struct {
		allowed        []string
		forbidden      bool
		hint           string
		want, wantHint string
	}{
		"all are granted":   {allowed: []string{"get", "list", "watch"}},
		"one is missing":    {allowed: []string{"get", "watch"}, want: "cannot list pods in namespace a", wantHint: hint},
		"two are missing":   {allowed: []string{"list"}, want: "cannot get, watch pods in namespace a", wantHint: hint},
		"a hint of its own": {hint: "not needed", want: "cannot get, list, watch pods in namespace a", wantHint: "not needed"},
		"may not be asked":  {forbidden: true, want: "could not be checked"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if c.forbidden {
					w.WriteHeader(http.StatusForbidden)
					_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
						Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden})
					return
				}
				var review authorizationv1.SelfSubjectAccessReview
				if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
					t.Error(err)
				}
				on := review.Spec.ResourceAttributes
				review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
				review.Status.Allowed = on.Resource == "pods" && on.Namespace == "a" && slices.Contains(c.allowed, on.Verb)
				_ = json.NewEncoder(w).Encode(review)
			}))
			t.Cleanup(server.Close)
			kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL,
				ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
			if err != nil {
				t.Fatal(err)
			}
			p := &preflight{kube: kube, retry: &kubeapi.Retrier{}}
			err = p.checkPermission(t.Context(), permission{hint: c.hint, verbs: []string{"get", "list", "watch"},
				on: authorizationv1.ResourceAttributes{Resource: "pods", Namespace: "a"}})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) ||
				errors.Is(err, ErrUnknown) != c.forbidden {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if !c.forbidden && strings.Join(problem.Hints(err), "") != c.wantHint {
				t.Errorf("hints %q, want %q", problem.Hints(err), c.wantHint)
			}
		})
	}
}
