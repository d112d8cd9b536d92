//go:build linux

package commands

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/helm"
	pmksched "github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestChartInstallsUpgradesRollsBackAndUninstalls(t *testing.T) {
	empty(t)
	kube := server.Client(t)
	config := kubeconfig(t)
	run := func(args ...string) { helm.Run(t, append(args, "--kubeconfig", config, "-n", "kube-system")...) }
	replicas := func(name string) int32 {
		t.Helper()
		deployment, err := kube.AppsV1().Deployments("kube-system").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return *deployment.Spec.Replicas
	}
	chart := helm.Chart(t)

	run("install", "one", chart)
	run("install", "two", chart, "--set", "name=other")
	if got := []int32{replicas("my-scheduler"), replicas("other")}; !slices.Equal(got, []int32{1, 1}) {
		t.Errorf("replicas after install: %v", got)
	}
	// Without controllers they have no pods. A Helm release has no revisions, and so no drift.
	said := pmksched.PMKSched(t, "--kubeconfig", config, "status")
	said.Fails(t, 3, "scheduler my-scheduler in namespace ", "scheduler other in namespace ",
		"0 of 1 replica exists [replica-missing]")
	if strings.Contains(said.String(), "[drift]") || strings.Contains(said.String(), "no deployed revision") {
		t.Errorf("status compares what Helm installed with a revision:\n%s", said)
	}
	run("upgrade", "one", chart, "--set", "replicas=2")
	if got := replicas("my-scheduler"); got != 2 {
		t.Errorf("%d replicas after upgrade, want 2", got)
	}
	run("rollback", "one", "1")
	if got := replicas("my-scheduler"); got != 1 {
		t.Errorf("%d replicas after rollback, want 1", got)
	}
	run("uninstall", "one")
	run("uninstall", "two")

	deployments, err := kube.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(deployments.Items) > 0 {
		t.Errorf("after uninstall: %d Deployments, %v", len(deployments.Items), err)
	}
	managed := metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=kube-scheduler"}
	bindings, err := kube.RbacV1().ClusterRoleBindings().List(t.Context(), managed)
	if err != nil || len(bindings.Items) > 0 {
		t.Errorf("after uninstall: %d ClusterRoleBindings, %v", len(bindings.Items), err)
	}
	configMaps, err := kube.CoreV1().ConfigMaps("").List(t.Context(), managed)
	if err != nil || len(configMaps.Items) > 0 {
		t.Errorf("after uninstall: %d ConfigMaps, %v", len(configMaps.Items), err)
	}
}

// diff compares a scheduler that Helm installed with the chart of its description. It ignores the
// metadata that Helm adds to objects, and reports all other differences.
func TestDiffComparesAHelmReleaseWithItsChart(t *testing.T) {
	empty(t)
	kube := server.Client(t)
	node, err := kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "control-1",
			Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if _, err := kube.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	config, chart := kubeconfig(t), filepath.Join(t.TempDir(), "chart")
	command := func(verb string, more ...string) pmksched.Result {
		t.Helper()
		args := append([]string{"--kubeconfig", config}, strings.Fields(verb)...)
		args = append(args, "--name", "charted", "--image", "localhost/charted:v1",
			"--credentials", "serviceaccount")
		return pmksched.PMKSched(t, append(args, more...)...)
	}
	run := func(args ...string) { helm.Run(t, append(args, "--kubeconfig", config, "-n", "kube-system")...) }
	command("diff").Fails(t, 3, "Deployment/kube-system/charted")
	command("render chart", "--to-dir", chart).OK(t)
	run("install", "three", chart)
	t.Cleanup(func() { run("uninstall", "three") })

	command("diff").OK(t).Prints(t, "Helm installed scheduler charted", "no changes")
	run("upgrade", "three", chart, "--set", "replicas=2", "--set-json",
		`pluginRules=[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]`)
	changed := command("diff")
	changed.Fails(t, 3, "-  replicas: 2", "+  replicas: 1", "ClusterRole/charted-plugins",
		"ClusterRoleBinding/charted-plugins")
	for line := range strings.Lines(changed.Stdout) {
		if strings.HasPrefix(line, "+") && (strings.Contains(line, "meta.helm.sh") || strings.Contains(line, "managed-by")) {
			t.Errorf("what Helm adds is reported as a difference: %s", line)
		}
	}
	command("deploy", "--dry-run").Fails(t, 3, "is not managed by pmk-sched for charted")
}
