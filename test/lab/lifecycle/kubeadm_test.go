//go:build linux && labs

package lifecycle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// A cluster of three control-plane nodes and a worker, made by kubeadm, survives the loss of any
// one node, and leaves nothing behind.
func TestThreeControlPlaneNodesOfKubeadm(t *testing.T) {
	m := watchMachine(t)
	stateDir, cacheDir := directories(t)
	o := options(t, stateDir, cacheDir, "three")
	o.Layout, o.Masters, o.Workers, o.Nodes = lab.LayoutKubeadm, 3, 1, 2
	l, err := lab.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	nodes := l.Nodes()
	if len(nodes) != 4 {
		t.Fatalf("it has %d nodes", len(nodes))
	}
	t.Run("is what kubeadm makes", func(t *testing.T) { isMadeByKubeadm(t, l) })
	t.Run("runs pods on the worker", func(t *testing.T) {
		kubectl(t, l, "label", "node", nodes[3].Name(), "lab-test=worker")
		runPodOn(t, l, "lab-test", "worker")
		if got := kubectl(t, l, "logs", "shell"); got != "here I am" {
			t.Errorf("its log is %q", got)
		}
		run.Eventually(t, "a pod reaches the API server by its service", func(context.Context) (bool, string) {
			out, _ := on(t, l, "kubectl", "exec", "shell", "--", "sh", "-c", "echo | nc -w 5 10.96.0.1 443 && echo connected")
			return strings.HasSuffix(strings.TrimSpace(out), "connected"), out
		})
	})
	t.Run("survives a node that is stopped", func(t *testing.T) {
		for _, n := range nodes[:2] { // the cluster was created on the first one
			changeNode(t, l, stateDir, "stop", n)
			answersWithout(t, l, n)
			if _, err := l.Exec(t.Context(), lab.Command{Node: n.Name(), Argv: []string{"true"},
				Env: os.Environ()}); err == nil || !strings.Contains(err.Error(), "is not running") {
				t.Errorf("a command on the stopped node: %v", err)
			}
			changeNode(t, l, stateDir, "start", n)
			isReady(t, l, n)
		}
	})
	t.Run("survives a node whose network is cut", func(t *testing.T) {
		n := nodes[2]
		changeNode(t, l, stateDir, "cut", n)
		answersWithout(t, l, n)
		if status, err := l.Exec(t.Context(),
			lab.Command{Node: n.Name(), Argv: []string{"pgrep", "kubelet"}, Env: os.Environ()}); err != nil || status != 0 {
			t.Errorf("the kubelet of a node without network is gone: %d, %v", status, err)
		}
		changeNode(t, l, stateDir, "heal", n)
		isReady(t, l, n)
	})
	if err := lab.Down(t.Context(), stateDir, l.Name(), nil); err != nil {
		t.Fatal(err)
	}
	m.unchanged(t)
}

// changeNode runs `pmk-lab node`.
func changeNode(t *testing.T, l *lab.Lab, labDir, change string, n *lab.Node) {
	t.Helper()
	run.PMKLab(t, "node", change, "--lab-dir", labDir, "--name", l.Name(), n.Name()).OK(t).
		Prints(t, "✓ "+change+" node "+n.Name())
}

// runPodOn starts the pod shell on a node with a label.
func runPodOn(t *testing.T, l *lab.Lab, label, value string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pod.json")
	text := strings.Replace(fmt.Sprintf(pod, "shell", label), `"`+label+`": ""`, `"`+label+`": "`+value+`"`, 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	kubectl(t, l, "apply", "-f", file)
	kubectl(t, l, "wait", "--for=condition=Ready", "--timeout=5m", "pod/shell")
}

// isMadeByKubeadm checks objects and files that only kubeadm creates, and the shape of upstream's
// images.
func isMadeByKubeadm(t *testing.T, l *lab.Lab) {
	for _, n := range l.Nodes()[:3] {
		if got := kubectl(t, l, "get", "pods", "-n", "kube-system", "--field-selector", "spec.nodeName="+n.Name(), "-o",
			"jsonpath={.items[*].metadata.labels.component}"); got != "etcd kube-apiserver kube-controller-manager kube-scheduler" {
			t.Errorf("the control plane of %s is %q", n.Name(), got)
		}
		kubeconfig, err := os.ReadFile(filepath.Join(n.Root(), "etc/kubernetes/scheduler.conf"))
		if err != nil || !strings.Contains(string(kubeconfig), fmt.Sprintf("https://%s:6443", n.Address())) {
			t.Errorf("the scheduler of %s does not use its own API server: %v", n.Name(), err)
		}
	}
	if got := kubectl(t, l, "get", "configmap", "-n", "kube-system", "kubeadm-config", "-o",
		"jsonpath={.data.ClusterConfiguration}"); !strings.Contains(got, "controlPlaneEndpoint") {
		t.Errorf("kubeadm's configuration: %s", got)
	}
	image := kubectl(t, l, "get", "pod", "-n", "kube-system", "kube-scheduler-"+l.Name(), "-o",
		"jsonpath={.spec.containers[0].image}")
	if image != "k8s.gcr.io/kube-scheduler:v1.24.3" {
		t.Errorf("the image of the scheduler is %s", image)
	}
	if _, status := on(t, l, "sh", "-c",
		"mkdir /run/image && ctr -n k8s.io images mount "+image+
			" /run/image >/dev/null && test -x /run/image/go-runner && test -x /run/image/usr/local/bin/kube-scheduler && ! "+
			"test -e /run/image/bin/sh; s=$?; ctr -n k8s.io images unmount /run/image >/dev/null; exit $s"); status != 0 {
		t.Error("the image of the scheduler does not have upstream's shape")
	}
}

func client(t *testing.T, l *lab.Lab) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// answersWithout fails the test unless the cluster notices that a node is lost, and binds a new
// pod.
func answersWithout(t *testing.T, l *lab.Lab, lost *lab.Node) {
	t.Helper()
	kube := client(t, l)
	run.Eventually(t, lost.Name()+" is not ready", func(ctx context.Context) (bool, string) {
		ready, seen := readiness(ctx, kube, lost)
		return ready == corev1.ConditionUnknown, seen
	})
	// The lease of the scheduler may have been held on the lost node.
	name := "bound-without-" + lost.Name()
	exec := lab.Command{Node: l.Nodes()[2].Name(), Env: os.Environ()}
	if lost.Name() == exec.Node {
		exec.Node = l.Nodes()[1].Name()
	}
	exec.Argv = []string{"kubectl", "run", name, "--image=none", "--kubeconfig=" + l.Kubeconfig()}
	if status, err := l.Exec(t.Context(), exec); err != nil || status != 0 {
		t.Fatalf("create a pod: exit status %d, %v", status, err)
	}
	run.Eventually(t, "a new pod is bound", func(ctx context.Context) (bool, string) {
		pods, err := kube.CoreV1().Pods("default").List(ctx,
			metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
		if err != nil || len(pods.Items) != 1 {
			return false, fmt.Sprintf("%d pods, %v", len(pods.Items), err)
		}
		return pods.Items[0].Spec.NodeName != "", pods.Items[0].String()
	})
}

func isReady(t *testing.T, l *lab.Lab, n *lab.Node) {
	t.Helper()
	kube := client(t, l)
	run.Eventually(t, n.Name()+" is ready again", func(ctx context.Context) (bool, string) {
		ready, seen := readiness(ctx, kube, n)
		return ready == corev1.ConditionTrue, seen
	})
}

func readiness(ctx context.Context, kube kubernetes.Interface,
	n *lab.Node) (status corev1.ConditionStatus, seen string) {
	node, err := kube.CoreV1().Nodes().Get(ctx, n.Name(), metav1.GetOptions{})
	if err != nil {
		return "", err.Error()
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status, c.Message
		}
	}
	return "", "no condition Ready"
}
