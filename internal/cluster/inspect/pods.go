package inspect

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// hostPod is a pod that uses ports on its node.
type hostPod struct {
	name  string // namespace/name
	ports []int
	// ours is set for pods that belong to the scheduler Options.Name.
	ours bool
}

// pods finds the default scheduler among the pods on the control-plane nodes, and the ports that
// they use.
func (d *detector) pods(ctx context.Context) {
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
	for i := range d.unlabelled {
		d.addPod(ctx, &d.unlabelled[i])
	}
	d.ownPods(ctx)
	slices.SortFunc(d.info.Scheduler.Pods, func(a, b SchedulerPod) int {
		return strings.Compare(a.Node+"/"+a.Name, b.Node+"/"+b.Name)
	})
}

// podsOf inspects the pods on one node.
func (d *detector) podsOf(ctx context.Context, namespace, node string) error {
	options := metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}
	return d.addPods(ctx, namespace, options)
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

// addPods inspects the pods in a list, page by page.
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
	scheduler := kubeapi.DefaultScheduler(pod)
	static, isStatic := kubeapi.StaticPodName(pod)
	if isStatic {
		d.traits.addStaticPod(static)
	}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		ports := containerPorts(container)
		if kubeapi.RunsScheduler(container) {
			ports = sortedPorts(append(ports, d.schedulerPorts(ctx, pod, container)...))
		}
		if container == scheduler {
			d.traits.addScheduler(pod, container)
			d.info.Scheduler.Pods = append(d.info.Scheduler.Pods, describeScheduler(pod, container, ports))
			d.schedulers = append(d.schedulers, *pod)
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

func describeScheduler(pod *corev1.Pod, container *corev1.Container, ports []int) SchedulerPod {
	described := SchedulerPod{
		Namespace: pod.Namespace,
		Name:      pod.Name,
		Node:      pod.Spec.NodeName,
		Container: container.Name,
		Image:     container.Image,
		Command:   append(slices.Clone(container.Command), container.Args...),
		Ports:     ports,
		Replaced:  pod.Annotations[ownership.AnnotationReplacement] != "",
	}
	if c := podstatus.StatusOf(pod, container.Name); c != nil {
		described.Ready = c.Ready
	}
	return described
}
