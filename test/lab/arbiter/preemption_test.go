//go:build linux && labs

package arbiter

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// mostEvictions is how often the pods of a ReplicaSet may be evicted for one pod.
const mostEvictions = 3

// slow is a scheduler that tries a pod again later than the default scheduler tries a new one, as
// each scheduler does with a pod that it has tried several times.
const (
	slow              = "slow"
	slowConfiguration = `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 10
profiles: [{schedulerName: slow}]
`
)

// kubernetes#130429: a scheduler evicts a pod of another one, and that one gives the room to the
// pod that replaces it, again and again.
func preemptionEnds(t *testing.T, n *labs.Node, image string) {
	n.Deploy(t, slow, image, "--config", run.WriteFile(t, "slow.yaml", slowConfiguration))
	n.Kubectl(t, "create", "priorityclass", "urgent", "--value=1000")
	unregister(t, n)
	without := newContest(t, n, "without")
	run.Eventually(t, "pods are evicted in turn without the arbiter", func(ctx context.Context) (bool, string) {
		evicted, err := without.evicted(ctx)
		return len(evicted) > mostEvictions, fmt.Sprint(len(evicted), " evictions, ", err)
	})
	if node := without.node(t); node != "" {
		t.Errorf("the evictions prove nothing: the urgent pod got node %s without the arbiter", node)
	}
	n.Kubectl(t, "delete", "namespace", without.namespace)

	register(t, n)
	with := newContest(t, n, "with")
	run.Eventually(t, "the urgent pod gets the node with the arbiter", func(context.Context) (bool, string) {
		return with.node(t) != "", ""
	})
	evicted, err := with.evicted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d evictions with the arbiter", len(evicted))
	if len(evicted) == 0 || len(evicted) > mostEvictions {
		t.Errorf("%d pods were evicted with the arbiter, want 1 to %d", len(evicted), mostEvictions)
	}
}

// contest is a ReplicaSet of the default scheduler whose pod fills a worker, and an urgent pod of
// another scheduler for the same worker.
type contest struct {
	*labs.Node
	namespace string
}

// newContest starts a contest.
func newContest(t *testing.T, n *labs.Node, namespace string) contest {
	t.Helper()
	c := contest{n, namespace}
	n.Kubectl(t, "create", "namespace", namespace)
	pod := large(corev1.DefaultSchedulerName)
	pod.Name, pod.Labels = "", map[string]string{"app": "replica"}
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: n.Workers()[0]}
	one := int32(1)
	if _, err := n.Kube.AppsV1().ReplicaSets(namespace).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "replica"},
		Spec: appsv1.ReplicaSetSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, "the pod of the ReplicaSet runs", func(ctx context.Context) (bool, string) {
		rs, err := n.Kube.AppsV1().ReplicaSets(namespace).Get(ctx, "replica", metav1.GetOptions{})
		return err == nil && rs.Status.ReadyReplicas == 1, fmt.Sprint(err)
	})
	urgent := large(slow)
	urgent.Name, urgent.Spec.PriorityClassName = "urgent", "urgent"
	urgent.Spec.NodeSelector = pod.Spec.NodeSelector
	if _, err := n.Kube.CoreV1().Pods(namespace).Create(t.Context(), urgent, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// node returns the node of the urgent pod.
func (c contest) node(t *testing.T) string {
	t.Helper()
	pod, err := c.Kube.CoreV1().Pods(c.namespace).Get(t.Context(), "urgent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod.Spec.NodeName
}

// evicted returns the pods of the ReplicaSet that were evicted.
func (c contest) evicted(ctx context.Context) (map[types.UID]bool, error) {
	events, err := c.Kube.CoreV1().Events(c.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Preempted"})
	if err != nil {
		return nil, err
	}
	evicted := map[types.UID]bool{}
	for i := range events.Items {
		evicted[events.Items[i].InvolvedObject.UID] = true
	}
	return evicted, nil
}
