package inspect

import (
	"context"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// hostPod is a pod that uses ports of its node.
type hostPod struct {
	name  string // namespace/name
	ports []int
	// ours is set for pods of the scheduler Options.Name.
	ours bool
}

// pods finds the default scheduler among the pods of the control-plane nodes, and
// the ports that they use.
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
			d.warnUnread(err, "list pods of all namespaces",
				"the ports of pods outside of kube-system on control-plane nodes are unknown")
			namespace = kubeSystem
			err = d.podsOf(ctx, namespace, node.Name)
		}
		if err != nil {
			d.warnUnread(err, "list pods on node "+node.Name, "the default scheduler's pod and the ports of pods are unknown")
			break
		}
	}
	d.ownPods(ctx)
	slices.SortFunc(d.info.Scheduler.Pods, func(a, b SchedulerPod) int {
		return strings.Compare(a.Node+"/"+a.Name, b.Node+"/"+b.Name)
	})
}

// podsOf inspects the pods of one node.
func (d *detector) podsOf(ctx context.Context, namespace, node string) error {
	options := metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}
	return d.addPods(ctx, namespace, options)
}

// podsByLabel finds the default scheduler if its node is unknown. kubeadm and RKE2
// label its pod; PMK does not.
func (d *detector) podsByLabel(ctx context.Context) {
	options := metav1.ListOptions{LabelSelector: "component=kube-scheduler"}
	err := d.addPods(ctx, kubeSystem, options)
	if err != nil {
		d.warnUnread(err, "list pods in kube-system", "the default scheduler's pod is unknown")
	}
}

// ownPods adds the pods of the scheduler to deploy, on any node.
func (d *detector) ownPods(ctx context.Context) {
	if d.o.Name == "" {
		return
	}
	selector := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: ownership.Labels(d.o.Name)})
	err := d.addPods(ctx, d.o.SchedulerNamespace, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		d.warnUnread(err, "list pods of scheduler "+d.o.Name, "the port that it already uses, if any, is unknown")
	}
}

// addPods inspects the pods of a list, page by page.
func (d *detector) addPods(ctx context.Context, namespace string, options metav1.ListOptions) error {
	options.Limit = objectPage
	for page, err := range kubeapi.Pages(ctx, d.core.Pods(namespace).List, options) {
		if err != nil {
			return err
		}
		for i := range page.Items {
			d.addPod(ctx, &page.Items[i])
		}
	}
	return nil
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
		d.traits.addStaticPod(static)
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
		if isStatic && container.Name == "kube-apiserver" {
			d.addAPIServer(pod.Spec.NodeName, container)
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

// staticPodName returns the name of a mirror pod in its manifest, to which the
// kubelet appends the name of the node.
func staticPodName(pod *corev1.Pod) (string, bool) {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		return "", false
	}
	return strings.TrimSuffix(pod.Name, "-"+pod.Spec.NodeName), true
}

// runsScheduler reports whether a container runs kube-scheduler, by its name or command.
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
	if c := podstatus.StatusOf(pod, container.Name); c != nil {
		described.Ready = c.Ready
	}
	return described
}
