package cluster

import (
	"context"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/ownership"
)

// hostPod is a pod that takes ports of its node.
type hostPod struct {
	name  string // namespace/name
	ports []int
	// ours says that it belongs to the scheduler that Options.Name names.
	ours bool
}

// pods looks at the pods of the control-plane nodes: which of them is the
// default scheduler, and which ports they take.
func (d *detector) pods(ctx context.Context) {
	if d.info.ControlPlane.Count == 0 {
		d.podsByLabel(ctx)
		d.ownPods(ctx)
		return
	}
	namespace := metav1.NamespaceAll
	for _, node := range d.info.ControlPlane.Nodes {
		err := d.podsOf(ctx, namespace, node.Name)
		if apierrors.IsForbidden(err) && namespace == metav1.NamespaceAll {
			d.unread(err, "list pods of all namespaces", "ports that pods outside of kube-system take on control-plane nodes are unknown")
			namespace = kubeSystem
			err = d.podsOf(ctx, namespace, node.Name)
		}
		if err != nil {
			d.unread(err, "list pods on node "+node.Name, "the default scheduler's pod and the ports that pods take are unknown")
			break
		}
	}
	d.ownPods(ctx)
	slices.SortFunc(d.info.Scheduler.Pods, func(a, b SchedulerPod) int {
		return strings.Compare(a.Node+"/"+a.Name, b.Node+"/"+b.Name)
	})
}

// podsOf looks at the pods of one node.
func (d *detector) podsOf(ctx context.Context, namespace, node string) error {
	options := metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}
	return d.eachPod(ctx, namespace, options, func(pod *corev1.Pod) { d.addPod(ctx, pod) })
}

// podsByLabel looks for the default scheduler where its node is not known.
// kubeadm and RKE2 label its pod; PMK's has no label.
func (d *detector) podsByLabel(ctx context.Context) {
	options := metav1.ListOptions{LabelSelector: "component=kube-scheduler"}
	err := d.eachPod(ctx, kubeSystem, options, func(pod *corev1.Pod) { d.addPod(ctx, pod) })
	if err != nil {
		d.unread(err, "list pods in kube-system", "the default scheduler's pod is unknown")
	}
}

// ownPods adds the pods of the scheduler that is about to be deployed, wherever
// they run.
func (d *detector) ownPods(ctx context.Context) {
	if d.o.Name == "" {
		return
	}
	selector := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: ownership.Labels(d.o.Name)})
	err := d.eachPod(ctx, d.o.SchedulerNamespace, metav1.ListOptions{LabelSelector: selector}, func(pod *corev1.Pod) { d.addPod(ctx, pod) })
	if err != nil {
		d.unread(err, "list pods of scheduler "+d.o.Name, "the port it already has, if any, is unknown")
	}
}

// eachPod lists pods page by page.
func (d *detector) eachPod(ctx context.Context, namespace string, options metav1.ListOptions, visit func(*corev1.Pod)) error {
	options.Limit = objectPage
	for {
		page, err := d.core.Pods(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			visit(&page.Items[i])
		}
		if page.Continue == "" {
			return nil
		}
		options.Continue = page.Continue
	}
}

func (d *detector) addPod(ctx context.Context, pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	host := hostPod{
		name: pod.Namespace + "/" + pod.Name,
		ours: d.o.Name != "" && pod.Namespace == d.o.SchedulerNamespace && ownership.Owns(pod.Labels, d.o.Name),
	}
	if slices.ContainsFunc(d.hosts, func(h hostPod) bool { return h.name == host.name }) {
		return
	}
	static, isStatic := staticPodName(pod)
	if isStatic {
		d.signs.addStaticPod(static)
	}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		ports := containerPorts(container)
		if runsScheduler(container) {
			ports = sortedPorts(append(ports, d.schedulerPorts(ctx, pod, container)...))
			if isStatic && (static == "k8s-master" || strings.HasSuffix(static, "kube-scheduler")) {
				d.info.Scheduler.Pods = append(d.info.Scheduler.Pods, describeScheduler(pod, container, ports))
			}
		}
		if pod.Spec.HostNetwork || host.ours {
			host.ports = append(host.ports, ports...)
		} else {
			host.ports = append(host.ports, hostPorts(container)...)
		}
	}
	host.ports = sortedPorts(host.ports)
	d.hosts = append(d.hosts, host)
}

// staticPodName returns the name that a mirror pod has in its file, which the
// kubelet appends the node's name to.
func staticPodName(pod *corev1.Pod) (string, bool) {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		return "", false
	}
	return strings.TrimSuffix(pod.Name, "-"+pod.Spec.NodeName), true
}

// runsScheduler tells a container of kube-scheduler by its name or command.
func runsScheduler(container *corev1.Container) bool {
	if container.Name == "kube-scheduler" {
		return true
	}
	return len(container.Command) > 0 && path.Base(container.Command[0]) == "kube-scheduler"
}

func describeScheduler(pod *corev1.Pod, container *corev1.Container, ports []int) SchedulerPod {
	described := SchedulerPod{
		Namespace: pod.Namespace,
		Name:      pod.Name,
		Node:      pod.Spec.NodeName,
		Container: container.Name,
		Image:     container.Image,
		Command:   append(slices.Clone(container.Command), container.Args...),
		Ports:     ports,
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container.Name {
			described.Ready = status.Ready
		}
	}
	return described
}
