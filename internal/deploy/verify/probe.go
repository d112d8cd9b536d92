package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

const (
	// nodePage is the number of nodes that are read at once.
	nodePage = 250
	// missingImage is an image that no node has: the pod has to be bound, not to run.
	missingImage = "localhost/pause"
)

func (r *verifier) labels() map[string]string {
	labels := ownership.Labels(r.Name)
	labels[ownership.LabelComponent] = ownership.ComponentVerify
	return labels
}

// createPod creates the namespace and the pod, which requests one unit of each resource.
func (r *verifier) createPod(ctx context.Context, resources ...string) (*corev1.Pod, error) {
	pod := r.podSpec()
	requestResources(&pod.Spec.Containers[0], resources)
	if r.Image == "" {
		r.useSchedulerImage(ctx, &pod.Spec.Containers[0])
	}
	tolerate, err := r.onlyControlPlane(ctx)
	if err != nil {
		return nil, err
	}
	if r.result.ToleratesControlPlane = tolerate; tolerate {
		pod.Spec.Tolerations = tolerateControlPlane()
	}
	r.created = true
	if r.In != "" {
		return r.create(ctx, pod)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.result.Namespace, Labels: r.labels()}}
	if _, err = kubeapi.Create(ctx, r.retry, "create Namespace/"+ns.Name, r.kube.CoreV1().Namespaces().Create,
		ns); err != nil {
		var forbidden *kubeapi.ForbiddenError
		r.created = !errors.As(err, &forbidden)
		return nil, err
	}
	return r.create(ctx, pod)
}

// create creates the pod. It waits while the API server rejects the pod because the namespace has
// no service account yet, for as long as the pod itself may stay Pending: a kube-controller-manager
// that starts again waits for its lease before it creates service accounts.
func (r *verifier) create(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	until := time.Now().Add(r.Timeout)
	doing := "create Pod/" + r.result.Namespace + "/" + pod.Name
	for {
		var created *corev1.Pod
		err := r.retry.Do(ctx, doing, func(ctx context.Context) (err error) {
			created, err = r.kube.CoreV1().Pods(r.result.Namespace).Create(ctx, pod, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				created, err = r.kube.CoreV1().Pods(r.result.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
			}
			return err
		})
		if err == nil {
			return created, nil
		}
		if !missingAccount(err) {
			return nil, err
		}
		if time.Now().After(until) {
			return nil, problem.Errorf("kube-controller-manager creates it: check that it is running and holds its lease",
				"%s: the namespace has no service account `default` after %s", doing, r.Timeout)
		}
		if err := clock.Sleep(ctx, pollInterval); err != nil {
			return nil, fmt.Errorf("%s: %w", doing, err)
		}
	}
}

// missingAccount reports whether a pod was rejected because its service account does not exist
// (k8s.io/kubernetes/plugin/pkg/admission/serviceaccount/admission.go).
func missingAccount(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "service account") &&
		strings.Contains(err.Error(), "not found")
}

// podSpec returns a pod that requests next to nothing and that the restricted pod security level
// accepts.
func (r *verifier) podSpec() *corev1.Pod {
	no, grace := false, int64(0)
	name := r.Name
	if name == corev1.DefaultSchedulerName {
		name = "" // the default must apply to a pod that names no scheduler
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: r.result.Pod, Namespace: r.result.Namespace, Labels: r.labels()},
		Spec: corev1.PodSpec{
			SchedulerName:                 name,
			AutomountServiceAccountToken:  &no,
			TerminationGracePeriodSeconds: &grace,
			RestartPolicy:                 corev1.RestartPolicyNever,
			SecurityContext:               ownership.ConfinedAs(65532),
			Containers: []corev1.Container{{
				Name: "pause", Image: r.Image, ImagePullPolicy: corev1.PullIfNotPresent,
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"),
						corev1.ResourceMemory: resource.MustParse("1Mi")},
				},
				SecurityContext: ownership.Confined(),
			}},
		},
	}
}

// useSchedulerImage sets the image from the scheduler's Deployment. Without a Deployment the pod
// stays Pending with any image, and explainPending reports the reason.
func (r *verifier) useSchedulerImage(ctx context.Context, container *corev1.Container) {
	container.Image = missingImage
	d, err := kubeapi.Get(ctx, r.retry, r.kube.AppsV1().Deployments(r.Namespace).Get, "Deployment", r.Namespace,
		r.Deployment)
	if err == nil && len(d.Spec.Template.Spec.Containers) > 0 {
		container.Image = d.Spec.Template.Spec.Containers[0].Image
		container.Command = []string{"kube-scheduler", "--version"}
	}
}

// onlyControlPlane reports whether no node accepts a pod without tolerations, while a control-plane
// node accepts one that tolerates its taints. It reads nodes by pages and stops at the first one
// that accepts the pod.
func (r *verifier) onlyControlPlane(ctx context.Context) (bool, error) {
	controlPlane := ""
	options := metav1.ListOptions{Limit: nodePage}
	for list, err := range kubeapi.Pages(ctx, kubeapi.Retrying(r.retry, "list nodes", r.kube.CoreV1().Nodes().List),
		options) {
		var forbidden *kubeapi.ForbiddenError
		if errors.As(err, &forbidden) {
			r.note("no permission to list nodes: the pod tolerates the taints of control-plane nodes")
			return true, nil
		}
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			node := &list.Items[i]
			switch {
			case kubeapi.NodeRejection(node, nil) == "":
				return false, nil
			case controlPlane == "" && kubeapi.NodeRejection(node, tolerateControlPlane()) == "":
				controlPlane = node.Name
			}
		}
	}
	if controlPlane == "" {
		return false, nil
	}
	r.note("the pod tolerates the taints of control-plane nodes, because no other node accepts it (node %s)", controlPlane)
	return true, nil
}

func tolerateControlPlane() []corev1.Toleration {
	var tolerations []corev1.Toleration
	for _, key := range kubeapi.ControlPlaneLabels() {
		tolerations = append(tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	return tolerations
}

// waitBound returns the pod when it is bound, and the watch event's local time. If the watch fails,
// it polls the pod, and the time is zero.
func (r *verifier) waitBound(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, time.Time, error) {
	for {
		if bound, at := r.watchBound(ctx, pod); bound != nil {
			return bound, at, nil
		}
		if err := clock.Sleep(ctx, pollInterval); err != nil {
			return nil, time.Time{}, err
		}
		now, err := kubeapi.Get(ctx, r.retry, r.kube.CoreV1().Pods(pod.Namespace).Get, "Pod", pod.Namespace, pod.Name)
		if err != nil || now.Spec.NodeName != "" {
			return now, time.Time{}, err
		}
		pod = now
	}
}

// watchBound watches the pod. It returns nil if the watch fails or ends before the pod is bound.
func (r *verifier) watchBound(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, time.Time) {
	w, err := r.kube.CoreV1().Pods(pod.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + pod.Name, ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		return nil, time.Time{}
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, time.Time{}
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error {
				return nil, time.Time{}
			}
			if now, ok := event.Object.(*corev1.Pod); ok && now.Spec.NodeName != "" {
				return now, time.Now()
			}
		}
	}
}

// cleanUp deletes the pod and the namespace. It does not wait until the namespace is gone: the
// namespace controller begins no earlier than 5 seconds after the request
// (namespaceDeletionGracePeriod in pkg/controller/namespace/namespace_controller.go).
func (r *verifier) cleanUp(ctx context.Context) error {
	now := int64(0)
	err := r.retry.Do(ctx, "delete Namespace/"+r.result.Namespace, func(ctx context.Context) error {
		// Otherwise the namespace waits for the kubelet, which may be broken.
		podErr := r.kube.CoreV1().Pods(r.result.Namespace).Delete(ctx, r.result.Pod,
			metav1.DeleteOptions{GracePeriodSeconds: &now})
		if r.In != "" {
			return client.IgnoreNotFound(podErr)
		}
		nsErr := r.kube.CoreV1().Namespaces().Delete(ctx, r.result.Namespace, metav1.DeleteOptions{})
		return errors.Join(client.IgnoreNotFound(podErr), client.IgnoreNotFound(nsErr))
	})
	if err != nil {
		return fmt.Errorf("%w (delete it with `kubectl delete namespace %s`)", err, r.result.Namespace)
	}
	return nil
}
