package kubeapi

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// defaultScheduler is the name of its program and its lease, and is in its static pod's name:
	// kube-scheduler-NODE, openshift-kube-scheduler-NODE.
	defaultScheduler = "kube-scheduler"
	// masterPod names PMK's static pod, which runs the whole control plane.
	masterPod = "k8s-master"
	// podPage is the page size for a node's pods.
	podPage = 50
)

// ControlPlaneLabels returns the labels on control-plane nodes in order of preference: kubeadm's,
// the older one (which PMK keeps), RKE1's, microk8s'. They are these nodes' taint keys too.
func ControlPlaneLabels() []string {
	return []string{
		"node-role.kubernetes.io/control-plane",
		"node-role.kubernetes.io/master",
		"node-role.kubernetes.io/controlplane",
		"node.kubernetes.io/microk8s-controlplane",
	}
}

// StaticPodName returns a mirror pod's name in its manifest, to which the kubelet appends the
// node's name.
func StaticPodName(pod *corev1.Pod) (string, bool) {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		return "", false
	}
	return strings.TrimSuffix(pod.Name, "-"+pod.Spec.NodeName), true
}

// RunsScheduler reports whether a container runs kube-scheduler: by its name, or because its
// command names the program, also after a wrapper.
func RunsScheduler(container *corev1.Container) bool {
	return container.Name == defaultScheduler || path.Base(Program(container)) == defaultScheduler
}

// Program returns the program that a container's command names: the first word or, after a wrapper
// (hyperkube, or k8s.io/component-base/logs/kube-log-runner), the next one that is not a flag. It
// is empty if the image names the program.
func Program(container *corev1.Container) string {
	if len(container.Command) == 0 {
		return ""
	}
	words := slices.DeleteFunc(slices.Concat(container.Command, container.Args),
		func(word string) bool { return strings.HasPrefix(word, "-") })
	switch path.Base(words[0]) {
	case "hyperkube", "go-runner", "kube-log-runner":
		if len(words) > 1 {
			return words[1]
		}
	}
	return words[0]
}

// DefaultScheduler returns the default scheduler's container in its static pod, or nil if the pod
// is another one. A static pod with another lease is another scheduler.
func DefaultScheduler(pod *corev1.Pod) *corev1.Container {
	name, static := StaticPodName(pod)
	if !static || name != masterPod && !strings.HasSuffix(name, defaultScheduler) {
		return nil
	}
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return RunsScheduler(&c) })
	if at < 0 || cmp.Or(flagOf(&pod.Spec.Containers[at], "leader-elect-resource-name"), defaultScheduler) !=
		defaultScheduler {
		return nil
	}
	return &pod.Spec.Containers[at]
}

// flagOf returns a flag's value in a container's command, or "".
func flagOf(container *corev1.Container, name string) string {
	flag, _ := versions.FindFlag(slices.Concat(container.Command, container.Args), name)
	return flag.Value
}

// DefaultSchedulerPods returns the default scheduler's mirror pods. They are in kube-system or, as
// on OpenShift, in another namespace: then the pods on the control-plane nodes are read.
func DefaultSchedulerPods(ctx context.Context, client corev1client.CoreV1Interface) ([]corev1.Pod, error) {
	found, err := SystemSchedulers(ctx, client, nil)
	if err != nil || len(found) > 0 {
		return found, err
	}
	for _, label := range ControlPlaneLabels() {
		nodes := metav1.ListOptions{LabelSelector: label, Limit: podPage}
		for page, err := range Pages(ctx, client.Nodes().List, nodes) {
			if apierrors.IsForbidden(err) {
				return found, nil
			}
			if err != nil {
				return nil, err
			}
			for i := range page.Items {
				if found, err = addSchedulersOn(ctx, client, page.Items[i].Name, found); err != nil {
					return nil, err
				}
			}
		}
	}
	return found, nil
}

// addSchedulersOn adds the default scheduler's mirror pods on a node, each once.
func addSchedulersOn(ctx context.Context, client corev1client.CoreV1Interface, node string,
	found []corev1.Pod) ([]corev1.Pod, error) {
	on := metav1.ListOptions{FieldSelector: "spec.nodeName=" + node, Limit: podPage}
	for page, err := range Pages(ctx, client.Pods(metav1.NamespaceAll).List, on) {
		if apierrors.IsForbidden(err) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			pod := &page.Items[i]
			if DefaultScheduler(pod) != nil && !slices.ContainsFunc(found,
				func(p corev1.Pod) bool { return p.Namespace == pod.Namespace && p.Name == pod.Name }) {
				found = append(found, *pod)
			}
		}
	}
	return found, nil
}

// SystemSchedulers returns the default scheduler's mirror pods in kube-system, except those on some
// nodes. kube-system may have a pod from each DaemonSet on thousands of nodes, so that only names
// are listed. Labels do not select these pods: PMK sets none.
func SystemSchedulers(ctx context.Context, client corev1client.CoreV1Interface, except []string) ([]corev1.Pod, error) {
	names, err := schedulerNames(ctx, client)
	if apierrors.IsResourceExpired(err) { // the list expired between two pages
		names, err = schedulerNames(ctx, client)
	}
	if err != nil {
		return nil, err
	}
	var found []corev1.Pod
	for _, name := range names {
		if slices.ContainsFunc(except,
			func(node string) bool { return name == defaultScheduler+"-"+node || name == masterPod+"-"+node }) {
			continue
		}
		pod, err := client.Pods(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) { // deleted since
			continue
		}
		if err != nil {
			return nil, err
		}
		if DefaultScheduler(pod) != nil {
			found = append(found, *pod)
		}
	}
	return found, nil
}

// schedulerNames lists the pods in kube-system that are named like a static pod with a default
// scheduler.
func schedulerNames(ctx context.Context, client corev1client.CoreV1Interface) ([]string, error) {
	var names []string
	err := ReadTable(ctx, client.RESTClient(), metav1.NamespaceSystem, "pods", []string{"Name"}, func(cells []string) {
		if name := cells[0]; strings.Contains(name, defaultScheduler+"-") || strings.HasPrefix(name, masterPod) {
			names = append(names, name)
		}
	})
	return names, err
}

// DefaultLease returns the default schedulers' lease in some static pods, or nil if there is none.
// It is in kube-system, or in the pods' namespace, and their configuration may name it. With
// --leader-elect=false there is none, and a lease is left from an earlier process.
func DefaultLease(ctx context.Context, client coordinationv1client.LeasesGetter,
	pods []corev1.Pod) (*coordinationv1.Lease, error) {
	var namespaces []string
	if len(pods) == 0 {
		namespaces = append(namespaces, metav1.NamespaceSystem)
	}
	for i := range pods {
		container := DefaultScheduler(&pods[i])
		if container == nil {
			continue
		}
		if elects, err := strconv.ParseBool(flagOf(container, "leader-elect")); elects || err != nil { // true by default
			named := cmp.Or(flagOf(container, "leader-elect-resource-namespace"), metav1.NamespaceSystem)
			namespaces = append(namespaces, named, pods[i].Namespace)
		}
	}
	for i, namespace := range namespaces {
		if slices.Contains(namespaces[:i], namespace) {
			continue
		}
		lease, err := client.Leases(namespace).Get(ctx, defaultScheduler, metav1.GetOptions{})
		if err == nil || !apierrors.IsNotFound(err) {
			return lease, err
		}
	}
	return nil, nil
}
