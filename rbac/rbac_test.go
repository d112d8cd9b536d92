package rbac_test

import (
	"bytes"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/rbac"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

func TestObjectsMatchGoldenFiles(t *testing.T) {
	labels := map[string]string{"app.kubernetes.io/managed-by": "pmk-sched"}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"nodes"},
		Verbs: []string{"get", "list"}}}
	cases := map[string]rbac.Options{
		"serviceaccount": {Name: "my-scheduler", Namespace: "kube-system", Labels: labels},
		"user": {Name: "my-scheduler", Namespace: "kube-system", Subject: rbac.User("system:kube-scheduler"),
			Labels: labels},
		"other-namespaces": {
			Name: "gpu", Namespace: "scheduling", LeaseNamespace: "leases", PluginRules: rules,
			Subject: rbac.ServiceAccountSubject("scheduling", "gpu"),
		},
	}
	for name, o := range cases {
		t.Run(name, func(t *testing.T) {
			var docs [][]byte
			for _, object := range rbac.Objects(o) {
				doc, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				docs = append(docs, doc)
			}
			got := bytes.Join(docs, []byte("---\n"))
			golden.Equal(t, "testdata/"+name+".yaml", got)
		})
	}
}

func TestObjectsHaveOnlyOwnRoles(t *testing.T) {
	o := rbac.Options{Name: "my-scheduler", Namespace: "kube-system",
		PluginRules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}}
	for _, object := range rbac.Objects(o) {
		accessor, err := meta.Accessor(object)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(accessor.GetName(), "my-scheduler") {
			t.Errorf("%T %s: not an object of this scheduler", object, accessor.GetName())
		}
	}
}

func TestObjectsOmitPluginRoleWithoutRules(t *testing.T) {
	for _, object := range rbac.Objects(rbac.Options{Name: "a", Namespace: "b"}) {
		if role, ok := object.(*rbacv1.ClusterRole); ok {
			t.Errorf("unexpected ClusterRole %s", role.Name)
		}
	}
}

func TestObjectsCopyCallersMaps(t *testing.T) {
	o := rbac.Options{Name: "a", Namespace: "b", Labels: map[string]string{"k": "v"}}
	rbac.ServiceAccount(o).Labels["k"] = "changed"
	if o.Labels["k"] != "v" {
		t.Error("the caller's labels were changed")
	}
}
