package apply

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// threeReplicas is a Deployment of three replicas, all of the current template, of which some are
// available.
func threeReplicas(available int32) *appsv1.Deployment {
	d := progressingDeployment()
	three := int32(3)
	d.Spec.Replicas, d.Spec.Template.Spec.HostNetwork = &three, true
	d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 3, 3, available,
		available
	return d
}

// onNode is a pod of the current revision on a node.
func onNode(name, node string, ready bool) corev1.Pod {
	pod := podOf("2", ready,
		corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	pod.Name, pod.UID, pod.Spec.NodeName = name, types.UID(name), node
	return pod
}

// pending is a pod of the current revision that no node accepts.
func pending(name string) corev1.Pod {
	pod := unschedulable()
	pod.Name, pod.UID = name, types.UID(name)
	return pod
}

func TestRolloutIsCompleteWithoutNodesThatAreAway(t *testing.T) {
	away := map[string]bool{"c": true}
	old := onNode("old", "b", true)
	old.OwnerReferences = controlledBy("ReplicaSet", "rs1")
	mixed, exceeded := threeReplicas(2), threeReplicas(2)
	mixed.Status.UpdatedReplicas = 2
	exceeded.Status.Conditions[1] = appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing,
		Reason: ReasonProgressDeadlineExceeded}
	crashing := onNode("b", "b", false)
	crashing.Status.ContainerStatuses[0] = ended(3, 1)
	for name, tc := range map[string]struct {
		deployment *appsv1.Deployment
		pods       []corev1.Pod
		away       map[string]bool
		state      rolloutState
		reason     string
	}{
		"one pod pending": {threeReplicas(2),
			[]corev1.Pod{onNode("a", "a", true), onNode("b", "b", true), pending("p")}, away, rolloutAvailable, ""},
		"one pod on the node": {threeReplicas(2),
			[]corev1.Pod{onNode("a", "a", true), onNode("b", "b", true), onNode("p", "c", false)}, away, rolloutAvailable, ""},
		"deadline exceeded meanwhile": {exceeded, []corev1.Pod{onNode("a", "a", true), onNode("b", "b", true), pending("p")},
			away, rolloutAvailable, ""},
		"the node is ready": {threeReplicas(2), []corev1.Pod{onNode("a", "a", true), onNode("b", "b", true),
			pending("p")}, nil, rolloutFailed, ReasonUnschedulable},
		"more pods pending than nodes": {threeReplicas(1), []corev1.Pod{onNode("a", "a", true), pending("p"), pending("q")},
			away, rolloutFailed, ReasonUnschedulable},
		"another pod not ready": {threeReplicas(1),
			[]corev1.Pod{onNode("a", "a", true), onNode("b", "b", false), pending("p")}, away, rolloutProgressing, ""},
		"another pod crashes": {threeReplicas(1), []corev1.Pod{onNode("a", "a", true), crashing, pending("p")}, away,
			rolloutFailed, ReasonCrash},
		"an old pod runs": {mixed, []corev1.Pod{onNode("a", "a", true), old, pending("p")}, away,
			rolloutProgressing, ""},
		"the third does not exist yet": {threeReplicas(1), []corev1.Pod{onNode("a", "a", true), pending("p")}, away,
			rolloutProgressing, ""},
		"every pod waits for a node": {threeReplicas(0), []corev1.Pod{pending("p"), pending("q"), pending("r")},
			map[string]bool{"a": true, "b": true, "c": true}, rolloutFailed, ReasonUnschedulable},
	} {
		t.Run(name, func(t *testing.T) {
			s := observation{
				now: start, deployment: tc.deployment, replicaSets: []appsv1.ReplicaSet{replicaSet("1"),
					replicaSet("2")}, pods: tc.pods, away: tc.away,
			}
			o := WaitOptions{}.withDefaults()
			s.firstSeen = map[string]time.Time{}
			for _, key := range evaluate(s, o).failures {
				s.firstSeen[key] = start.Add(-time.Hour)
			}
			got := evaluate(s, o)
			if got.state != tc.state || got.reason != tc.reason {
				t.Errorf("got %s %s: %s", got.state, got.reason, got.message)
			}
			if got.missing != (tc.state == rolloutAvailable) {
				t.Errorf("missing: %v", got.missing)
			}
			if want := "2 of 3 replicas are available: the others wait for nodes that are not ready or cordoned: c"; got.missing && got.message != want {
				t.Errorf("got %q, want %q", got.message, want)
			}
		})
	}
}

// nodePages lists nodes in pages, or fails.
type nodePages struct {
	client.Client
	pages [][]corev1.Node
	err   error
}

func (n nodePages) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	page, _ := strconv.Atoi(o.Continue)
	nodes := list.(*corev1.NodeList)
	if n.err == nil && page < len(n.pages) {
		nodes.Items = n.pages[page]
	}
	if page+1 < len(n.pages) {
		nodes.Continue = strconv.Itoa(page + 1)
	}
	return n.err
}

// Replicas on the host network need a node each.
func TestReplicasLackTheNodesThatAreAway(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus, cordoned bool) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: cordoned},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	ready, lost := node("a", corev1.ConditionTrue, false), node("b", corev1.ConditionUnknown, false)
	cordoned := node("c", corev1.ConditionTrue, true)
	forbidden, unavailable := &kubeapi.ForbiddenError{}, errors.New("unavailable")
	three, podNetwork := threeReplicas(3), threeReplicas(3)
	podNetwork.Spec.Template.Spec.HostNetwork = false
	one, any := threeReplicas(3), threeReplicas(3)
	*one.Spec.Replicas, any.Spec.Replicas = 1, nil
	for name, c := range map[string]struct {
		deployment *appsv1.Deployment
		nodes      nodePages
		want       int
		err        error
	}{
		"one of three":              {three, nodePages{pages: [][]corev1.Node{{ready, ready, lost}}}, 1, nil},
		"on another page":           {three, nodePages{pages: [][]corev1.Node{{ready}, {ready, cordoned}}}, 1, nil},
		"two of three":              {three, nodePages{pages: [][]corev1.Node{{lost, cordoned}, {ready}}}, 2, nil},
		"enough others":             {three, nodePages{pages: [][]corev1.Node{{ready, ready, ready, lost}}}, 0, nil},
		"fewer nodes than replicas": {three, nodePages{pages: [][]corev1.Node{{ready, lost}}}, 1, nil},
		"one replica":               {one, nodePages{pages: [][]corev1.Node{{ready, lost}}}, 0, nil},
		"in the pod network":        {podNetwork, nodePages{pages: [][]corev1.Node{{lost}}}, 0, nil},
		"any number of replicas":    {any, nodePages{pages: [][]corev1.Node{{lost}}}, 0, nil},
		"without permission":        {three, nodePages{err: forbidden}, 0, nil},
		"unavailable":               {three, nodePages{err: unavailable}, 0, unavailable},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.deployment)
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&Client{api: c.nodes}).Shortage(t.Context(), &unstructured.Unstructured{Object: content})
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: got %d, %v, want %d, %v", name, got, err, c.want, c.err)
		}
	}
}

func TestNodesAreReadOnlyForPodsThatMayWaitForThem(t *testing.T) {
	lost := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	c := &Client{api: nodePages{pages: [][]corev1.Node{{lost}}}}
	podNetwork := threeReplicas(1)
	podNetwork.Spec.Template.Spec.HostNetwork = false
	for name, tc := range map[string]struct {
		deployment *appsv1.Deployment
		pods       []corev1.Pod
		want       bool
	}{
		"a pod is not ready": {threeReplicas(1), []corev1.Pod{onNode("a", "a", true), pending("p")}, true},
		"all are ready":      {threeReplicas(1), []corev1.Pod{onNode("a", "a", true)}, false},
		"in the pod network": {podNetwork, []corev1.Pod{pending("p")}, false},
	} {
		away, err := c.awayFor(t.Context(), tc.deployment, tc.pods)
		if err != nil || away["b"] != tc.want {
			t.Errorf("%s: got %v, %v", name, away, err)
		}
	}
}
