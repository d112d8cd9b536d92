//go:build linux

package labs

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Node is the control-plane node of a lab, with an administrator's clients from outside of it. With
// the layout hosted, which has none, it is the first worker.
type Node struct {
	// Name is the lab's.
	Name, Layout, Release string
	// NodeName is the name of the Node object.
	NodeName string
	// Lab gives access to the node's files and processes.
	Lab    *lab.Lab
	Config *rest.Config
	Kube   kubernetes.Interface
}

func (n *Node) connect(t testing.TB) {
	t.Helper()
	var err error
	if n.Lab, err = lab.Get(Dir(), n.Name); err == nil {
		n.NodeName, err = n.Lab.NodeName()
	}
	if err == nil && n.Layout == lab.LayoutHosted {
		n.NodeName = n.Workers()[0]
	}
	if err == nil {
		n.Config, err = clientcmd.BuildConfigFromFlags("", n.Lab.Kubeconfig())
	}
	if err == nil {
		n.Config.QPS = -1 // no limit
		n.Kube, err = kubernetes.NewForConfig(n.Config)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Workers returns the names of the workers with a kubelet.
func (n *Node) Workers() (names []string) {
	for _, l := range n.Lab.Nodes() {
		if l.Role() == lab.Worker {
			names = append(names, l.Name())
		}
	}
	return names
}

// Laptop runs pmk-sched on this machine with nothing but an administrator's kubeconfig.
func (n *Node) Laptop(t testing.TB, args ...string) run.Result {
	t.Helper()
	return run.PMKSched(t, append([]string{"--kubeconfig", n.Lab.Kubeconfig(), "--node-root", "none"}, args...)...)
}

// AwaitReady waits until the node is ready and the controllers have noticed: a test before may have
// restarted its kubelet.
func (n *Node) AwaitReady(t testing.TB) {
	t.Helper()
	run.Eventually(t, "the node is ready", func(ctx context.Context) (bool, string) {
		node, err := n.Kube.CoreV1().Nodes().Get(ctx, n.NodeName, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, taint := range node.Spec.Taints {
			if strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
				return false, "taint " + taint.Key
			}
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue, c.Message
			}
		}
		return false, "no condition Ready"
	})
}

// SchedulerName returns a name for the scheduler of a test: no other test uses it.
func SchedulerName(t testing.TB) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(t.Name()))
	return fmt.Sprintf("sched-%08x", sum.Sum32())
}

// On returns another node of the same lab.
func (n *Node) On(t testing.TB, name string) *Node {
	t.Helper()
	if _, err := n.Lab.Node(name); err != nil {
		t.Fatal(err)
	}
	other := *n
	other.NodeName = name
	return &other
}

// Command is a command on the node: in its namespaces, with its kubeconfig.
func (n *Node) Command(ctx context.Context, t testing.TB, argv ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(ctx, run.Binary(t, run.Lab),
		append([]string{"exec", "--name", n.Name, "--node", n.NodeName, "--"}, argv...)...)
}

// Exec runs a command on the node.
func (n *Node) Exec(t testing.TB, argv ...string) run.Result {
	t.Helper()
	return run.Command(t, n.Command(run.Context(t), t, argv...))
}

// Shell runs a script on the node, which has to succeed, and returns its output.
func (n *Node) Shell(t testing.TB, script string) string {
	t.Helper()
	return n.Exec(t, "sh", "-ec", script).OK(t).Stdout
}

// PMKSched runs pmk-sched on the node, as its administrator would.
func (n *Node) PMKSched(t testing.TB, args ...string) run.Result {
	t.Helper()
	return n.Exec(t, append([]string{run.Program(t)}, args...)...)
}

// Kubectl runs kubectl on the node, which has to succeed, and returns its output.
func (n *Node) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return strings.TrimSpace(n.Exec(t, append([]string{"kubectl"}, args...)...).OK(t).Stdout)
}

// Apply applies a manifest.
func (n *Node) Apply(t testing.TB, manifest string) {
	t.Helper()
	n.Kubectl(t, "apply", "-f", run.WriteFile(t, "manifest.yaml", manifest))
}

// Path returns where a file of the node is on this machine.
func (n *Node) Path(path string) string {
	root := n.Lab.Root()
	if node, err := n.Lab.Node(n.NodeName); err == nil {
		root = node.Root()
	}
	return filepath.Join(root, path)
}

// Gateway returns the address of this machine as the node sees it.
func (n *Node) Gateway(t testing.TB) string {
	t.Helper()
	link, err := net.InterfaceByName(n.Lab.Link())
	if err != nil {
		t.Fatalf("find this machine's end of the lab's network: %v", err)
	}
	addresses, err := link.Addrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	t.Fatalf("link %s has no IPv4 address", n.Lab.Link())
	return ""
}

// ScheduledBy counts the Scheduled events of a Deployment's pods by the scheduler that reported
// them, when there are as many as pods: a scheduler reports an event some time after the binding.
func (n *Node) ScheduledBy(t testing.TB, namespace, deployment string, pods int) (count map[string]int) {
	t.Helper()
	run.Eventually(t, fmt.Sprintf("the %d pods of %s have Scheduled events", pods, deployment),
		func(ctx context.Context) (bool, string) {
			events, err := n.Kube.CoreV1().Events(namespace).List(ctx,
				metav1.ListOptions{FieldSelector: "reason=Scheduled"})
			if err != nil {
				return false, err.Error()
			}
			all := 0
			count = map[string]int{}
			for _, e := range events.Items {
				if strings.HasPrefix(e.InvolvedObject.Name, deployment+"-") {
					all++
					// Some releases fill in both fields, some one of them.
					count[cmp.Or(e.Source.Component, e.ReportingController)]++
				}
			}
			return all >= pods, fmt.Sprint(count)
		})
	return count
}

// refused matches the lines that a scheduler logs when a request is refused, or when it panics. The
// scheduler would retry some requests without an error.
var refused = regexp.MustCompile(`(?i)forbidden|failed to (list|watch)|conflict|the object has been modified|panic`)

// logPods logs the restarts and the last lines of the pods of a deployed scheduler.
func (n *Node) logPods(t testing.TB, name string) {
	t.Helper()
	for _, args := range [][]string{
		{"get", "pods", "-n", "kube-system", "-l", "app.kubernetes.io/instance=" + name, "-o", "wide"},
		{"logs", "-n", "kube-system", "-l", "app.kubernetes.io/instance=" + name, "-c", "kube-scheduler", "--timestamps",
			"--tail", "60"},
		{"logs", "-n", "kube-system", "-l", "app.kubernetes.io/instance=" + name, "-c", "kube-scheduler", "--timestamps",
			"--tail", "20", "--previous"},
	} {
		t.Log(n.Exec(t, append([]string{"kubectl"}, args...)...))
	}
}

// CleanLog fails the test unless the pods of a deployed scheduler logged that they serve, logged no
// trouble except for the expected texts, and were not restarted.
func (n *Node) CleanLog(t testing.TB, name string, expected ...string) {
	t.Helper()
	ctx := run.Context(t)
	pods, err := n.Kube.CoreV1().Pods("kube-system").List(ctx,
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + name, FieldSelector: "status.phase=Running"})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("scheduler %s has %d running pods: %v", name, len(pods.Items), err)
	}
	for _, pod := range pods.Items {
		log, err := n.Kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name,
			&corev1.PodLogOptions{Container: "kube-scheduler"}).DoRaw(ctx)
		if apierrors.IsNotFound(err) && len(pods.Items) > 1 {
			continue // a pod of the former revision is gone
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(log), "Serving securely") {
			t.Errorf("pod %s did not log that it serves:\n%s", pod.Name, log)
		}
		for line := range strings.Lines(string(log)) {
			if refused.MatchString(line) &&
				!slices.ContainsFunc(expected, func(text string) bool { return strings.Contains(line, text) }) {
				t.Errorf("pod %s had trouble: %s", pod.Name, line)
			}
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.RestartCount != 0 {
				t.Errorf("container %s of pod %s was restarted %d times", c.Name, pod.Name, c.RestartCount)
			}
		}
	}
}
