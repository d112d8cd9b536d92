package lifecycle

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

func TestTheHintForAMissingNameListsTheSchedulers(t *testing.T) {
	deployment := func(kind, name, ns string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetName(name)
		o.SetNamespace(ns)
		o.SetLabels(map[string]string{ownership.LabelName: kind, ownership.LabelInstance: name})
		return o
	}
	many := []*unstructured.Unstructured{deployment(ownership.Extender, "policies", "kube-system")}
	for i := range 7 {
		many = append(many, deployment(ownership.Scheduler, fmt.Sprint("s", i), "kube-system"))
	}
	for want, list := range map[string][]*unstructured.Unstructured{
		"pmk-sched has deployed no scheduler in this cluster":                                              many[:1],
		"deployed: --name s0, -n gpu --name packer":                                                        {many[0], deployment(ownership.Scheduler, "packer", "gpu"), many[1]},
		"deployed: --name s0, --name s1, --name s2, --name s3, --name s4, …; `pmk-sched status` lists all": many,
	} {
		if got := deployedHint(list); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A typing error in a name is another scheduler's name, which gets default settings.
func TestDeployWarnsOfANewNameThatIsSimilarToADeployedOne(t *testing.T) {
	deployed := &unstructured.Unstructured{}
	deployed.SetName("my-scheduler")
	deployed.SetNamespace("gpu")
	deployed.SetLabels(map[string]string{ownership.LabelName: ownership.Scheduler,
		ownership.LabelInstance: "my-scheduler"})
	const warning = "scheduler my-schduler is new and gets default settings: did you mean -n gpu --name my-scheduler, " +
		"which is deployed?"
	for name, c := range map[string]struct {
		flags spec.Flags
		want  string
	}{
		"a similar name":        {spec.Flags{Name: "my-schduler"}, warning},
		"another name":          {spec.Flags{Name: "packer"}, ""},
		"its own configuration": {spec.Flags{Name: "my-schduler", Preset: "binpack"}, ""},
	} {
		c.flags.Image = "i:1"
		sp, err := spec.Read(c.flags)
		if err != nil {
			t.Fatal(err)
		}
		var warned string
		s := &session.Session{Warn: func(text string) { warned += text }}
		d := deploy.Deps{Cluster: recordedLedger{deployed: []*unstructured.Unstructured{deployed}}}
		if kept, err := keepDeployed(t.Context(), s, d, sp); err != nil || kept != sp || warned != c.want {
			t.Errorf("%s: warned %q, %v", name, warned, err)
		}
	}
}

func TestUninstallDescribesADeploymentThatIsNotManaged(t *testing.T) {
	deployment := func(command string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
		o.SetName("s")
		o.SetNamespace("kube-system")
		_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"name": "c", "command": []any{command}}},
			"spec", "template", "spec", "containers")
		return o
	}
	const text = "Deployment/kube-system/s exists, and pmk-sched does not manage it: "
	const remove = "`kubectl delete deployment s -n kube-system`"
	for command, want := range map[string]string{
		"/usr/local/bin/kube-scheduler": "take it over with `pmk-sched migrate --live s -n kube-system --apply`, or " + remove,
		"/bin/web":                      "it is not the Deployment of a kube-scheduler; " + remove + " deletes it",
	} {
		if got := unmanagedHint(deployment(command)); got != text+want {
			t.Errorf("%s: got %q", command, got)
		}
	}
}

func TestPodsThatNameARemovedSchedulerAreCounted(t *testing.T) {
	pod := func(name, node string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node},
			Status: corev1.PodStatus{Phase: phase}}
	}
	deleted := pod("deleted", "", corev1.PodPending)
	deleted.DeletionTimestamp = &metav1.Time{}
	ended := []corev1.Pod{pod("done", "n1", corev1.PodSucceeded), pod("failed", "n1", corev1.PodFailed), deleted}
	bound, waiting := pod("web-0", "n1", corev1.PodRunning), pod("web-1", "", corev1.PodPending)
	for want, pods := range map[string][]corev1.Pod{
		"": ended,
		"1 pod names scheduler s: 1 is on a node and stays there; what replaces them stays pending without it": {bound},
		"2 pods name scheduler s: 1 is on a node and stays there, 1 stays pending without it (shop/web-1)":     {bound, waiting},
		"6 pods name scheduler s: 6 stay pending without it (shop/web-1, shop/web-1, shop/web-1, shop/web-1, shop/web-1, …)": {
			waiting, waiting, waiting, waiting, waiting, waiting},
	} {
		counted := podsThatName{name: "s"}
		counted.add(pods)
		if got := counted.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
