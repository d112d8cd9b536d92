package preflight

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
