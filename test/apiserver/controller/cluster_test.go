//go:build linux

package controller

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// brokenImage is an image whose scheduler runs and binds no pod.
const brokenImage = "localhost/broken:v1"

// startCluster does the work of a cluster in a namespace until the test ends: each Deployment is
// available at once, and its scheduler binds the pods that name it to a node.
func startCluster(t *testing.T, s *apiserver.Server, ns string) {
	t.Helper()
	kube := s.Client(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1",
		Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}}
	node, err := kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
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
	for _, namespace := range []string{ns, metav1.NamespaceSystem} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		_, err := kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var done sync.WaitGroup
	t.Cleanup(func() { cancel(); done.Wait() })
	for _, work := range []func(context.Context, kubernetes.Interface, string) error{rollOut, bind} {
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
}

// rollOut makes the Deployments available.
func rollOut(ctx context.Context, kube kubernetes.Interface, ns string) error {
	list, err := kube.AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{
		LabelSelector: ownership.LabelManagedBy + "=" + ownership.Manager})
	if err != nil {
		return err
	}
	for _, d := range list.Items {
		n := *d.Spec.Replicas
		if d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == n {
			continue
		}
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
		_, err := kube.AppsV1().Deployments(ns).UpdateStatus(ctx, &d, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// bind binds the pods that name a scheduler whose Deployment exists.
func bind(ctx context.Context, kube kubernetes.Interface, ns string) error {
	pods, err := kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		name := pod.Spec.SchedulerName
		d, err := kube.AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(d.Spec.Template.Spec.Containers[0].Image, brokenImage) {
			continue
		}
		err = kube.CoreV1().Pods(ns).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-1"}},
			metav1.CreateOptions{})
		if err == nil {
			_, err = kube.CoreV1().Events(ns).Create(ctx, &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "event-"}, Reason: "Scheduled", Type: "Normal",
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: pod.Name, UID: pod.UID},
				Source:         corev1.EventSource{Component: name, Host: "host"}, LastTimestamp: metav1.Now(),
			}, metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
