//go:build linux

package lab

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// direct is the proxy function for "none".
func direct(*http.Request) (*url.URL, error) { return nil, nil }

// register waits for the Node object of a control-plane node and sets labels and taints as the
// layout does. The API server does not let a kubelet set these labels itself. The name of a node
// may depend on its address, which is known when the network is made.
func (u *bringUp) register(ctx context.Context, hostName string) error {
	n, err := u.lab.Node(hostName)
	if err != nil {
		return err
	}
	objects := u.client.CoreV1().Nodes()
	if err := n.waitFor(ctx, "the Node object", "kubelet", func(ctx context.Context) error {
		_, err := objects.Get(ctx, n.name, metav1.GetOptions{})
		return err
	}); err != nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := objects.Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		markNode(object, u.layout.labels, u.layout.taints)
		_, err = objects.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("label and taint node %s: %w", n.name, err)
	}
	if err := n.startDaemon(proxyDaemon(n.binary("kube-proxy")), u.machine.path); err != nil {
		return err
	}
	return n.waitReady(ctx, u.client)
}

func (n *Node) waitReady(ctx context.Context, client kubernetes.Interface) error {
	return n.waitFor(ctx, "node "+n.name, "kubelet", func(ctx context.Context) error {
		object, err := client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return checkNodeReady(object)
	})
}

func markNode(n *corev1.Node, labels map[string]string, taints []corev1.Taint) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	for key, value := range labels {
		n.Labels[key] = value
	}
	for _, t := range taints {
		found := false
		for _, have := range n.Spec.Taints {
			found = found || have.MatchTaint(&t)
		}
		if !found {
			n.Spec.Taints = append(n.Spec.Taints, t)
		}
	}
}

// checkNodeReady returns an error with the reason if a node is not ready.
func checkNodeReady(n *corev1.Node) error {
	switch c := kubeapi.ReadyCondition(n); {
	case c == nil:
		return fmt.Errorf("node %s has no Ready condition", n.Name)
	case c.Status != corev1.ConditionTrue:
		return fmt.Errorf("node %s is not ready: %s", n.Name, c.Message)
	}
	return nil
}

// waitControlPlane waits until the static pods are running, the controllers have created the
// objects that every pod needs, the scheduler leads, and Services work on every node.
func (u *bringUp) waitControlPlane(ctx context.Context) error {
	for _, n := range u.lab.masters() {
		if err := n.waitStaticPods(ctx, u.client, u.staticPods(), checkPodReady); err != nil {
			return err
		}
	}
	first := u.lab.first()
	if err := first.waitFor(ctx, "the default service account", "kubelet",
		func(ctx context.Context) error { return checkDefaultAccount(ctx, u.client) }); err != nil {
		return err
	}
	if err := first.waitFor(ctx, "the scheduler", "kubelet",
		func(ctx context.Context) error { return checkSchedulerLeads(ctx, u.client) }); err != nil {
		return err
	}
	for _, n := range u.lab.Nodes() {
		if err := n.waitFor(ctx, "services", "kube-proxy", n.checkServices); err != nil {
			return err
		}
	}
	return nil
}

// staticPods returns the names of a control-plane node's static pods, without the node name.
func (u *bringUp) staticPods() []string {
	if u.lab.byKubeadm() {
		return kubeadm.Components()
	}
	return u.layout.controlPlane
}

// waitStaticPods waits until check returns no error for each of the node's static pods.
func (n *Node) waitStaticPods(
	ctx context.Context, client kubernetes.Interface, names []string, check func(*corev1.Pod) error,
) error {
	for _, name := range names {
		pod := name + "-" + n.name
		if err := n.waitFor(ctx, "pod "+pod, "kubelet",
			func(ctx context.Context) error { return checkPod(ctx, client, pod, check) }); err != nil {
			return err
		}
	}
	return nil
}

// checkPod applies check to a pod in kube-system and returns its error.
func checkPod(ctx context.Context, client kubernetes.Interface, name string, check func(*corev1.Pod) error) error {
	pod, err := client.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return check(pod)
}

// checkServices returns an error until kube-proxy has written the rules of Services
// (pkg/proxy/healthcheck/proxier_health.go).
func (n *Node) checkServices(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:10256/healthz", n.address),
		nil)
	if err != nil {
		return err
	}
	// The user's proxy cannot reach the node, which is on this machine.
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := direct.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("kube-proxy is not healthy: %s", answer.Status)
	}
	return nil
}

// checkDefaultAccount returns an error until the ServiceAccount exists that every pod needs.
func checkDefaultAccount(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

func checkSchedulerLeads(ctx context.Context, client kubernetes.Interface) error {
	lease, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "kube-scheduler", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return fmt.Errorf("lease kube-scheduler has no holder")
	}
	return nil
}

// checkPodReady returns an error with the reason if a pod is not ready.
func checkPodReady(p *corev1.Pod) error {
	if why := podstatus.WhyNotReady(p); why != "" {
		return fmt.Errorf("pod %s: %s", p.Name, why)
	}
	return nil
}
