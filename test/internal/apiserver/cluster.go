//go:build linux

package apiserver

import (
	"context"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// clusterNode is the node of a played cluster.
const clusterNode = "node-1"

// Behavior is how the pods of a scheduler's image behave in a played cluster.
type Behavior int

// Behaviors.
const (
	// Works is a scheduler that becomes ready and binds pods.
	Works Behavior = iota
	// NeverSchedules is a scheduler that becomes ready and binds no pods.
	NeverSchedules
	// NeverStarts is a scheduler that does not become ready.
	NeverStarts
	// ExceedsDeadline is a scheduler that does not become ready, and whose Deployment has reached its
	// progressDeadlineSeconds.
	ExceedsDeadline
)

// Behaviors returns the behavior of an image.
type Behaviors func(image string) Behavior

// Play does the work of the controller manager, the schedulers and the kubelets for a namespace
// until the test ends or stop is called: a Deployment is available as soon as its image starts, the
// scheduler of a Deployment binds the pods that name it to a node, pods that are not restarted end
// well, and what is deleted in the foreground is removed: see [Server.CollectGarbage].
func (s *Server) Play(t testing.TB, ns string, behaviors Behaviors) (stop func()) {
	t.Helper()
	kube := s.Client(t)
	addNode(t, kube)
	for _, namespace := range []string{ns, metav1.NamespaceSystem} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		_, err := kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var done sync.WaitGroup
	collecting := s.CollectGarbage(t, ns)
	stop = func() { cancel(); collecting(); done.Wait() }
	t.Cleanup(stop)
	for _, work := range []func(context.Context, kubernetes.Interface, string) error{behaviors.rollOut, behaviors.bind} {
		done.Go(func() {
			for ctx.Err() == nil {
				if err := work(ctx, kube, ns); err != nil && ctx.Err() == nil {
					t.Errorf("work of the cluster: %v", err)
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	return stop
}

// addNode creates a control-plane node that is ready, unless it exists.
func addNode(t testing.TB, kube kubernetes.Interface) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: clusterNode,
		Labels: map[string]string{"node-role.kubernetes.io/control-plane": "", corev1.LabelOSStable: "linux"}}}
	node, err := kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	node.Spec.Taints = nil // of the admission plugin TaintNodesByCondition
	if node, err = kube.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if _, err := kube.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// rollOut makes the Deployments available whose images start. The others keep the pods that they
// have, and one new pod is not ready.
func (b Behaviors) rollOut(ctx context.Context, kube kubernetes.Interface, ns string) error {
	list, err := kube.AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range list.Items {
		if d.Status.ObservedGeneration == d.Generation {
			continue
		}
		d.Status = b.status(&d)
		_, err := kube.AppsV1().Deployments(ns).UpdateStatus(ctx, &d, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (b Behaviors) status(d *appsv1.Deployment) appsv1.DeploymentStatus {
	n := *d.Spec.Replicas
	behavior := b.of(d)
	if behavior == NeverStarts || behavior == ExceedsDeadline {
		old := d.Status.AvailableReplicas
		status := appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: old + 1, UpdatedReplicas: 1, ReadyReplicas: old,
			AvailableReplicas: old, UnavailableReplicas: 1, Conditions: d.Status.Conditions,
		}
		if behavior == ExceedsDeadline {
			status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing,
				Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
		}
		return status
	}
	return appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
}

// bind binds the pods that name a scheduler whose Deployment exists.
func (b Behaviors) bind(ctx context.Context, kube kubernetes.Interface, ns string) error {
	pods, err := kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		d, err := kube.AppsV1().Deployments(ns).Get(ctx, pod.Spec.SchedulerName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if d.Status.AvailableReplicas == 0 || b.of(d) == NeverSchedules {
			continue
		}
		if err := runPod(ctx, kube, &pod); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// runPod binds a pod, creates the event of its binding, and ends it if it is not restarted.
func runPod(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod) error {
	pods := kube.CoreV1().Pods(pod.Namespace)
	if err := pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Target: corev1.ObjectReference{Kind: "Node", Name: clusterNode}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := kube.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "event-"}, Reason: "Scheduled", Type: "Normal",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Source:         corev1.EventSource{Component: pod.Spec.SchedulerName, Host: "host"}, LastTimestamp: metav1.Now(),
	}, metav1.CreateOptions{})
	if err != nil || pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return err
	}
	_, err = pods.Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`),
		metav1.PatchOptions{}, "status")
	return err
}

func (b Behaviors) of(d *appsv1.Deployment) Behavior {
	return b(d.Spec.Template.Spec.Containers[0].Image)
}
