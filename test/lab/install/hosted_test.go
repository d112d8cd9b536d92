//go:build linux && (cases || faults || labs)

package install

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// spread fails the test unless a scheduler has two ready replicas, in different zones, as pods that
// managed clusters accept and that nothing evicts at once. After a rollout the pods of the former
// revision may still end.
func spread(t *testing.T, n *labs.Node, name string) {
	t.Helper()
	var pods *corev1.PodList
	run.Eventually(t, "two replicas exist", func(ctx context.Context) (bool, string) {
		var err error
		if pods, err = n.Kube.CoreV1().Pods("kube-system").List(ctx,
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + name}); err != nil {
			return false, err.Error()
		}
		return len(pods.Items) == 2, fmt.Sprint(len(pods.Items), " pods")
	})
	zones := map[string]bool{}
	for _, pod := range pods.Items {
		node, err := n.Kube.CoreV1().Nodes().Get(run.Context(t), pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		zones[node.Labels[corev1.LabelTopologyZone]] = true
		if pod.Spec.HostNetwork || pod.Spec.PriorityClassName != "system-cluster-critical" ||
			pod.Spec.ServiceAccountName != name {
			t.Errorf("pod %s: host network %t, priority class %s, account %s", pod.Name, pod.Spec.HostNetwork,
				pod.Spec.PriorityClassName, pod.Spec.ServiceAccountName)
		}
	}
	if !zones["zone-1"] || !zones["zone-2"] {
		t.Errorf("two replicas in zones %s", strings.Join(slices.Sorted(maps.Keys(zones)), ", "))
	}
	if budget := n.Kubectl(t, "get", "poddisruptionbudget", "-n", "kube-system", name, "-o",
		"jsonpath={.spec.minAvailable}"); budget != "1" {
		t.Errorf("the budget keeps %q pods", budget)
	}
}

// On a hosted control plane an administrator's kubeconfig is enough to detect, deploy without
// flags, verify and uninstall, and what needs a control-plane node is refused.
func TestHostedControlPlaneNeedsOnlyAKubeconfig(t *testing.T) {
	n := labs.Shared(t, lab.LayoutHosted)
	name, image := labs.SchedulerName(t), n.Image(t)
	info := run.Decode[inspect.Info](t, n.Laptop(t, "detect", "-o", "json").OK(t).Stdout)
	if info.Hosted == nil || info.Distribution != inspect.DistributionHosted || info.Layout != inspect.LayoutManaged ||
		info.Scheduler.Runs != inspect.RunsManaged {
		t.Errorf("detect: %s, layout %s, %+v", info.Distribution, info.Layout, info.Hosted)
	}

	deploy := []string{"deploy", "--name", name, "--image", image}
	t.Cleanup(func() { n.Uninstall(t, name) })
	n.Laptop(t, append(deploy, labs.Stable("1s")...)...).OK(t)
	spread(t, n, name)
	n.Laptop(t, "verify", "--name", name).OK(t).Prints(t, "bound by")
	n.Laptop(t, append([]string{"diff"}, deploy[1:]...)...).OK(t)
	n.CleanLog(t, name)

	const none = "has no nodes in the cluster"
	for _, mode := range []string{"node", "node-inline", "hostpath"} {
		n.Laptop(t, append(deploy, "--credentials", mode)...).Fails(t, 2, none, "use --credentials serviceaccount")
	}
	n.Laptop(t, "replace", "--yes", "--image", image).Fails(t, 2, none, "pmk-sched deploy")
	n.Laptop(t, "restore", "--all-nodes", "--yes").Fails(t, 2, none)
}

// What an administrator does with a scheduler later works from the laptop too.
func TestSchedulerOfAHostedControlPlaneIsOperatedFromALaptop(t *testing.T) {
	n := labs.Shared(t, lab.LayoutHosted)
	name, image := labs.SchedulerName(t), n.Image(t)
	n.UninstallLater(t, name)
	deploy := func(image string, more ...string) run.Result {
		args := slices.Concat([]string{"deploy", "--name", name, "--image", image}, labs.Stable("1s"), more)
		return n.Laptop(t, args...)
	}
	deploy(image, "--preset", "binpack").OK(t)
	deploy(image, "--preset", "spread").OK(t)
	deploy(n.Faulty(t, "crash", labs.Release)).Fails(t, 1, "this scheduler ends at once")
	rollback := append([]string{"rollback", "--name", name}, labs.Stable("1s")...)
	n.Laptop(t, rollback...).OK(t).Prints(t, "rollback to revision 1")
	n.Laptop(t, "diff", "--name", name, "--revision", "1").OK(t)
	n.Laptop(t, "history", "--name", name).OK(t).Prints(t, "failed", "rollback to revision 1")
	n.Laptop(t, "verify", "--name", name).OK(t)

	n.Laptop(t, "logs", "--name", name).OK(t).Prints(t, " leader] ", "successfully acquired lease")
	n.Laptop(t, "credentials", "show", "--name", name).OK(t).Prints(t, "serviceaccount")
	n.Laptop(t, "upgrade", "check", "--name", name).OK(t)
	n.Laptop(t, "status", "--name", name).OK(t).Prints(t, name)
	n.Kubectl(t, "scale", "deployment", name, "-n", "kube-system", "--replicas=0")
	run.Eventually(t, "the pods are gone", func(context.Context) (bool, string) {
		pods := n.Kubectl(t, "get", "pods", "-n", "kube-system", "-l", "app.kubernetes.io/instance="+name, "-o", "name")
		return pods == "", pods
	})
	n.Laptop(t, "status", "--name", name).Fails(t, 3, "[drift]", "[no-leader]")
}
