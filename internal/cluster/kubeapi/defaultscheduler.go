package kubeapi

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// defaultScheduler is the name of its container, and of its static pod: kube-scheduler-NODE.
	defaultScheduler = "kube-scheduler"
	// masterPod begins the name of PMK's static pod, which runs the whole control plane.
	masterPod = "k8s-master"
)

// DefaultSchedulerPods returns the mirror pods with a default scheduler in them. kube-system may
// have a pod of each DaemonSet on thousands of nodes, so that only names are listed. Labels do not
// select these pods: PMK sets none.
func DefaultSchedulerPods(ctx context.Context, client corev1client.CoreV1Interface) ([]corev1.Pod, error) {
	names, err := schedulerNames(ctx, client)
	if apierrors.IsResourceExpired(err) { // the list expired between two pages
		names, err = schedulerNames(ctx, client)
	}
	if err != nil {
		return nil, err
	}
	var found []corev1.Pod
	for _, name := range names {
		pod, err := client.Pods(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) { // deleted since
			continue
		}
		if err != nil {
			return nil, err
		}
		_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		if mirror && slices.ContainsFunc(pod.Spec.Containers,
			func(c corev1.Container) bool { return c.Name == defaultScheduler }) {
			found = append(found, *pod)
		}
	}
	return found, nil
}

// schedulerNames lists the pods in kube-system that have the name of a static pod with a default
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
