//go:build linux

package labs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/audit"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Masters returns the control-plane nodes.
func (n *Node) Masters(t testing.TB) (masters []*Node) {
	t.Helper()
	for _, l := range n.Lab.Nodes() {
		if l.Role() == lab.ControlPlane {
			masters = append(masters, n.On(t, l.Name()))
		}
	}
	return masters
}

// Another returns another control-plane node.
func (n *Node) Another(t testing.TB) *Node {
	t.Helper()
	for _, other := range n.Masters(t) {
		if other.NodeName != n.NodeName {
			return other
		}
	}
	t.Fatal("the lab has one control-plane node")
	return nil
}

// Direct returns a client of the node's own API server of a cluster that kubeadm made, without the
// load balancer, on new connections: one to a node that was stopped meanwhile answers nothing for
// most of a minute.
func (n *Node) Direct(t testing.TB) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(n.Config)
	config.Host, config.Timeout = "https://"+n.address(t, kubeadm.Port), 5*time.Second
	config.Dial = (&net.Dialer{Timeout: 3 * time.Second}).DialContext
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (n *Node) address(t testing.TB, port int) string {
	t.Helper()
	node, err := n.Lab.Node(n.NodeName)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(node.Address().String(), fmt.Sprint(port))
}

// Leader returns the node whose replica holds a lease in kube-system. The replicas are in the
// host's network.
func (n *Node) Leader(t testing.TB, lease string) *Node {
	t.Helper()
	l, err := n.Direct(t).CoordinationV1().Leases(metav1.NamespaceSystem).Get(run.Context(t), lease, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if l.Spec.HolderIdentity == nil {
		t.Fatalf("lease %s has no holder", lease)
	}
	host, _, _ := strings.Cut(*l.Spec.HolderIdentity, "_")
	return n.On(t, host)
}

// KillContainer kills the first process of a container of a pod on the node with SIGKILL.
func (n *Node) KillContainer(t testing.TB, pod, container string) {
	t.Helper()
	n.kill(t, n.container(t, pod, container)).OK(t)
}

// container returns the ID of a container.
func (n *Node) container(t testing.TB, pod, name string) string {
	t.Helper()
	p, err := n.Direct(t).CoreV1().Pods(metav1.NamespaceSystem).Get(run.Context(t), pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == name {
			return strings.TrimPrefix(c.ContainerID, "containerd://")
		}
	}
	t.Fatalf("pod %s has no container %s", pod, name)
	return ""
}

func (n *Node) kill(t testing.TB, container string) run.Result {
	t.Helper()
	return n.Exec(t, "ctr", "-n", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", container)
}

const manifests = "/etc/kubernetes/manifests/"

// StopStaticPod removes the manifest of a component of the node's control plane, kills the
// component, and waits until its port refuses connections. The rest of the node keeps running.
func (n *Node) StopStaticPod(t testing.TB, component string, port int) {
	t.Helper()
	container := n.container(t, component+"-"+n.NodeName, component)
	if err := os.Rename(n.Path(manifests+component+".yaml"), n.Path("/etc/kubernetes/"+component+".stopped")); err != nil {
		t.Fatal(err)
	}
	n.kill(t, container) // it fails if the kubelet was faster
	address := n.address(t, port)
	run.Eventually(t, component+" has stopped", func(ctx context.Context) (bool, string) {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return errors.Is(err, syscall.ECONNREFUSED), err.Error()
		}
		return false, errors.Join(errors.New("it accepts connections"), connection.Close()).Error()
	})
}

// StartStaticPod returns the manifest, if StopStaticPod removed it.
func (n *Node) StartStaticPod(t testing.TB, component string) {
	t.Helper()
	err := os.Rename(n.Path("/etc/kubernetes/"+component+".stopped"), n.Path(manifests+component+".yaml"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// AddFlags gives a component of a control plane that kubeadm made further flags, in the manifest of
// its static pod, as an administrator would.
func (n *Node) AddFlags(t testing.TB, component string, flags ...string) {
	t.Helper()
	file := n.Path(manifests + component + ".yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := "    - " + component + "\n"
	if strings.Count(string(text), line) != 1 {
		t.Fatalf("%s has another form than expected:\n%s", file, text)
	}
	changed := strings.Replace(string(text), line, line+"    - "+strings.Join(flags, "\n    - ")+"\n", 1)
	next := filepath.Join(n.Lab.Dir(), component+".yaml")
	if err := os.WriteFile(next, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	// The kubelet reads the directory at any time: the file is replaced atomically.
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
}

// AwaitWhole waits until nothing of a cluster that kubeadm made is missing for longer than a lease
// is valid unrenewed: the conditions of a node that has just failed, or come back, are old. A
// component that was killed often is restarted after up to 5 minutes.
func (n *Node) AwaitWhole(t testing.TB, leases ...string) {
	t.Helper()
	const settled, patience = 16 * time.Second, 20 * time.Minute
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	clients := map[string]kubernetes.Interface{}
	for _, m := range n.Masters(t) {
		clients[m.NodeName] = m.Direct(t)
	}
	var since time.Time
	for {
		missing := n.missing(ctx, clients, leases)
		switch {
		case missing != nil:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > settled:
			return
		}
		if err := clock.Sleep(ctx, time.Second); err != nil {
			t.Fatalf("the cluster is not whole after %s: %v", patience, missing)
		}
	}
}

// missing returns an error that names the first missing part of the cluster, and nil if the cluster
// is whole.
func (n *Node) missing(ctx context.Context, clients map[string]kubernetes.Interface, leases []string) error {
	var kube kubernetes.Interface
	for name, client := range clients {
		if err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
			return fmt.Errorf("API server of %s: %w", name, err)
		}
		kube = client
	}
	nodes, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if !isReady(node.Status.Conditions) {
			return fmt.Errorf("node %s is not ready", node.Name)
		}
	}
	if err := missingPods(ctx, kube, len(clients)); err != nil {
		return err
	}
	for _, name := range leases {
		lease, err := kube.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.RenewTime == nil || time.Since(lease.Spec.RenewTime.Time) > 5*time.Second {
			return fmt.Errorf("lease %s was last renewed at %v", name, lease.Spec.RenewTime)
		}
	}
	return nil
}

func isReady(conditions []corev1.NodeCondition) bool {
	for _, c := range conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// missingPods checks that every pod of kube-system is ready, and that all pods of the control plane
// and of the Deployments exist.
func missingPods(ctx context.Context, kube kubernetes.Interface, masters int) error {
	pods, err := kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	static := 0
	for _, pod := range pods.Items {
		if pod.Annotations[corev1.MirrorPodAnnotationKey] != "" {
			static++
		}
		ready := pod.DeletionTimestamp == nil
		for _, c := range pod.Status.Conditions {
			ready = ready && (c.Type != corev1.PodReady || c.Status == corev1.ConditionTrue)
		}
		if !ready || pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("pod %s is not ready", pod.Name)
		}
	}
	if want := len(kubeadm.Components()) * masters; static != want {
		return fmt.Errorf("%d of %d static pods exist", static, want)
	}
	deployments, err := kube.AppsV1().Deployments(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range deployments.Items {
		if d.Status.ReadyReplicas != *d.Spec.Replicas || d.Status.Replicas != *d.Spec.Replicas {
			return fmt.Errorf("deployment %s has %d of %d replicas", d.Name, d.Status.ReadyReplicas, *d.Spec.Replicas)
		}
	}
	return nil
}

// Audit reads the audit logs of the API servers of a cluster that kubeadm made.
func (n *Node) Audit(t testing.TB) audit.Log {
	t.Helper()
	var files []audit.File
	for _, m := range n.Masters(t) {
		found, err := filepath.Glob(m.Path(filepath.Join(kubeadm.AuditLogDir, "audit*.log")))
		if err != nil || len(found) == 0 {
			t.Fatalf("node %s has no audit log: %v", m.NodeName, err)
		}
		for _, file := range found {
			files = append(files, audit.File{Node: m.NodeName, Path: file})
		}
	}
	log, err := audit.Read(files...)
	if err != nil {
		t.Fatal(err)
	}
	return log
}
