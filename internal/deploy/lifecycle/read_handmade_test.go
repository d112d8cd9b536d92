package lifecycle

import (
	"net/http"
	"net/http/httptest"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// A wrong name is no dead end: the hint lists the schedulers that can be taken over.
func TestHintForADeploymentThatDoesNotExist(t *testing.T) {
	deployment := func(namespace, name, command string, labels map[string]string) any {
		return map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": namespace, "name": name, "labels": labels},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "c", "command": []any{command}}}}}}}
	}
	web := deployment("kube-system", "web", "/bin/web", nil)
	managed := deployment("kube-system", "managed", "kube-scheduler", ownership.Labels("managed"))
	for want, items := range map[string][]any{
		"no Deployment on the cluster runs a kube-scheduler that pmk-sched does not manage": {web, managed},
		"Deployments of schedulers: --live my-scheduler, -n gpu --live packer": {web, managed,
			deployment("gpu", "packer", "kube-scheduler", nil),
			deployment("kube-system", "my-scheduler", "/usr/local/bin/kube-scheduler", nil)},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			write(w, map[string]any{"apiVersion": "apps/v1", "kind": "DeploymentList", "items": items})
		}))
		defer server.Close()
		h, err := newHandmadeObjects(&session.Session{}, &rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		if got := h.others(t.Context()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A role that another ServiceAccount has too stays on the cluster.
func TestTakeOverKeepsTheRolesThatOthersUse(t *testing.T) {
	object := func(kind, name, role string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": rbacVersion, "kind": kind}}
		o.SetName(name)
		if role != "" {
			o.Object["roleRef"] = map[string]any{"kind": "ClusterRole", "name": role}
		}
		return o
	}
	own, other := object("ClusterRoleBinding", "own", "alone"), object("ClusterRoleBinding", "other", "shared")
	mine := object("ClusterRoleBinding", "mine", "shared")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		items := []any{}
		if path.Base(r.URL.Path) == "clusterrolebindings" {
			items = []any{own.Object, mine.Object, other.Object}
		}
		write(w, map[string]any{"apiVersion": rbacVersion, "kind": "List", "items": items})
	}))
	defer server.Close()
	h, err := newHandmadeObjects(&session.Session{}, &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	left, err := h.withoutSharedRoles(t.Context(),
		objectList{own, mine, object("ClusterRole", "alone", ""), object("ClusterRole", "shared", "")})
	var names []string
	for _, o := range left {
		names = append(names, o.GetName())
	}
	if diff := cmp.Diff([]string{"own", "mine", "alone"}, names); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
