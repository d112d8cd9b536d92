//go:build linux

package apply_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// rollout plays the deployment controller and the kubelet for one Deployment.
type rollout struct {
	t    *testing.T
	kube kubernetes.Interface
	ns   string
	name string
	pod  *corev1.Pod
}

// kubelet serves container logs for the node of that name, which it makes: the lines of the present
// run, or of the one before.
func kubelet(ctx context.Context, t *testing.T, node string, present, previous string) {
	t.Helper()
	listener := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/containerLogs/") {
			http.NotFound(w, r)
			return
		}
		text := present
		if r.URL.Query().Get("previous") == "true" {
			text = previous
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(listener.Close)
	_, portText, err := net.SplitHostPort(listener.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(portText, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	nodes := server.Client(t).CoreV1().Nodes()
	n, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	if _, err := nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// startRollout makes the ReplicaSet and the pod that the controllers would make of a Deployment
// that has been applied.
func startRollout(ctx context.Context, t *testing.T, ns, name, node string) *rollout {
	t.Helper()
	r := &rollout{t: t, kube: server.Client(t), ns: ns, name: name}
	d, err := r.kube.AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1"}
	if d, err = r.kube.AppsV1().Deployments(ns).Update(ctx, d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-1", Namespace: ns, Labels: d.Spec.Template.Labels, Annotations: d.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d,
				appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template},
	}
	if set, err = r.kube.AppsV1().ReplicaSets(ns).Create(ctx, set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-1-x", Namespace: ns, Labels: d.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set,
				appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: d.Spec.Template.Spec,
	}
	pod.Spec.NodeName = node
	if r.pod, err = r.kube.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return r
}

// status updates the status of the pod and of the Deployment, as the kubelet and the controller do.
func (r *rollout) status(ctx context.Context, ready bool, container corev1.ContainerStatus) error {
	container.Name, container.Image = "kube-scheduler", "localhost/scheduler:1"
	pod := r.pod.DeepCopy()
	pod.ResourceVersion = ""
	pod.Status = corev1.PodStatus{
		Phase:             corev1.PodRunning,
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: conditionStatus(ready)}},
		ContainerStatuses: []corev1.ContainerStatus{container},
	}
	if _, err := r.kube.CoreV1().Pods(r.ns).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return err
	}
	d, err := r.kube.AppsV1().Deployments(r.ns).Get(ctx, r.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: conditionStatus(ready), Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated"},
		},
	}
	if ready {
		d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = 1, 1, 0
		d.Status.Conditions[1].Reason = "NewReplicaSetAvailable"
	}
	_, err = r.kube.AppsV1().Deployments(r.ns).UpdateStatus(ctx, d, metav1.UpdateOptions{})
	return err
}

// event makes a warning about the pod, as the kubelet would.
func (r *rollout) event(ctx context.Context, reason, message string) error {
	_, err := r.kube.CoreV1().Events(r.ns).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "event-", Namespace: r.ns},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: r.ns, Name: r.pod.Name, UID: r.pod.UID},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, Count: 3,
	}, metav1.CreateOptions{})
	return err
}

func conditionStatus(is bool) corev1.ConditionStatus {
	if is {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// Container states.
var (
	running = corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	crashed = corev1.ContainerStatus{
		RestartCount: 1,
		State:        corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1,
			Reason: "Error"}},
	}
	notPulled = corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason: "ErrImagePull", Message: "manifest unknown",
	}}}
)
