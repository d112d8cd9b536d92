//go:build linux && labs

package churn

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/test/internal/audit"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	scheduler = "churn"
	namespace = "churn"
	// perWorker is how many pods are created for each worker, which has 16 CPUs and room for 110 pods.
	// A pod requests 150m on average.
	perWorker = 90
	// pace is how often a pod is created.
	pace = 40 * time.Millisecond
	// patience is how long creating one pod may fail.
	patience = 2 * time.Minute
)

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

// PODS (10,000 by default) are created during five rolling deploys, one that fails, and a failure
// of the leader's node. Every pod is bound exactly once, by the leader, none is lost, and no node
// has more than fits.
func TestEveryPodIsBoundOnceDuringRolloutsAndFailures(t *testing.T) {
	pods, err := strconv.Atoi(os.Getenv("PODS"))
	if err != nil {
		pods = 10_000
	}
	n := labs.Start(t, labs.Options{Release: labs.Release, Layout: "kubeadm", Masters: 3, Workers: pods/perWorker + 1})
	c := newChurn(t, n)
	operations := c.operations()
	for i, o := range operations {
		share := pods / len(operations)
		if i == 0 {
			share += pods % len(operations)
		}
		c.during(t, o, share)
	}
	c.check(t, pods)
}

// churn is a scheduler that is deployed again and again, and its pods.
type churn struct {
	*labs.Node
	image, faulty string
	created       int
}

func newChurn(t *testing.T, n *labs.Node) *churn {
	t.Helper()
	c := &churn{Node: n}
	for _, m := range n.Masters(t) {
		c.image, c.faulty = m.Image(t), m.Faulty(t, "crash", labs.Release)
	}
	c.deploy(t, c.image, 0).OK(t)
	n.Kubectl(t, "create", "namespace", namespace)
	return c
}

// deploy deploys the scheduler with a configuration that depends on number, so that all replicas
// are replaced.
func (c *churn) deploy(t *testing.T, image string, number int) run.Result {
	t.Helper()
	config := run.WriteFile(t, "config.yaml",
		fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nparallelism: %d\n",
			number+8))
	return c.PMKSched(t, "deploy", "--name", scheduler, "--image", image, "--config", config)
}

// operation is an operation that runs while pods are created.
type operation struct {
	name string
	// begin starts it and, unless end is set, waits for its end. end is called when the pods of the
	// operation exist.
	begin, end func(t *testing.T, leader *labs.Node)
}

func (c *churn) operations() (operations []operation) {
	rollout := func(number int) operation {
		return operation{name: fmt.Sprintf("rolling deploy %d", number),
			begin: func(t *testing.T, _ *labs.Node) { c.deploy(t, c.image, number).OK(t) }}
	}
	failed := operation{name: "failed deploy", begin: func(t *testing.T, _ *labs.Node) {
		c.deploy(t, c.faulty, 0).Fails(t, 1, "this scheduler ends at once")
	}}
	failure := operation{
		name: "node failure",
		begin: func(t *testing.T, leader *labs.Node) {
			if err := c.Lab.StopNode(run.Context(t), leader.NodeName); err != nil {
				t.Fatal(err)
			}
		},
		end: func(t *testing.T, leader *labs.Node) {
			if err := c.Lab.StartNode(run.Context(t), leader.NodeName); err != nil {
				t.Fatal(err)
			}
		},
	}
	return []operation{rollout(1), rollout(2), failed, rollout(3), failure, rollout(4), rollout(5)}
}

// during creates pods from the beginning of an operation on. It begins with a cluster in which
// nothing is missing.
func (c *churn) during(t *testing.T, o operation, count int) {
	t.Helper()
	c.AwaitWhole(t, scheduler, "kube-scheduler")
	leader := c.Leader(t, scheduler)
	kube := leader.Another(t).Direct(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	created, first, start := make(chan error, 1), c.created, time.Now()
	go func() { created <- create(ctx, kube, first, count) }()
	o.begin(t, leader)
	began := time.Since(start)
	if err := <-created; err != nil {
		t.Fatalf("%s: %v", o.name, err)
	}
	if o.end != nil {
		o.end(t, leader)
	}
	c.created += count
	t.Logf("%s, leader on %s: %.0f s, %d pods in %.0f s", o.name, leader.NodeName, began.Seconds(), count,
		time.Since(start).Seconds())
}

// create creates pods with numbers from first on.
func create(ctx context.Context, kube kubernetes.Interface, first, count int) error {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for i := first; i < first+count; i++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if err := createOne(ctx, kube, newPod(i)); err != nil {
			return fmt.Errorf("create pod %d: %w", i, err)
		}
	}
	return nil
}

// createOne tries until the pod exists: the API server may have lost its etcd, or its response may
// have been lost.
func createOne(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		_, err := kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		if clock.Sleep(ctx, 200*time.Millisecond) != nil {
			return err
		}
	}
}

func newPod(number int) *corev1.Pod {
	no := false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%05d", number)},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler,
			NodeSelector:  map[string]string{"type": "kwok"},
			// A failure may keep kwok from renewing the leases of its nodes in time.
			Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			AutomountServiceAccountToken: &no,
			Containers: []corev1.Container{{Name: "main", Image: "localhost/none:v1", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(100+100*(number%2)),
					resource.DecimalSI)},
			}}},
		},
	}
}

// check compares the pods with the audit logs of the API servers. No pod is deleted, so pods that
// fit on their nodes in the end fitted at any time.
func (c *churn) check(t *testing.T, want int) {
	t.Helper()
	c.AwaitWhole(t, scheduler, "kube-scheduler")
	kube := c.Direct(t)
	run.Eventually(t, "every pod has a node", func(ctx context.Context) (bool, string) {
		pending, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=", Limit: 1})
		if err != nil {
			return false, err.Error()
		}
		return len(pending.Items) == 0, fmt.Sprint(pending.Items)
	})
	pods, nodes := state(t, kube)
	placed := map[string]string{}
	for i := range pods {
		if pods[i].Namespace == namespace {
			placed[namespace+"/"+pods[i].Name] = pods[i].Spec.NodeName
		}
	}
	if len(placed) != want || c.created != want {
		t.Errorf("%d of %d pods were created, and %d exist", c.created, want, len(placed))
	}
	log := c.Audit(t).Of(namespace + "/")
	for _, problem := range slices.Concat(log.NotOnce(placed), log.NotByLeader(scheduler),
		audit.Overcommitted(nodes, pods)) {
		t.Error(problem)
	}
	refused, unknown := log.Count()
	t.Logf("%d pods on %d nodes, %d bindings, %d of them refused, %d of unknown outcome", len(placed), len(nodes),
		len(log.Bindings), refused, unknown)
	if t.Failed() {
		c.logFailed(t, log)
	}
}

// logFailed logs the bindings that failed.
func (c *churn) logFailed(t *testing.T, log audit.Log) {
	t.Helper()
	for _, b := range log.Bindings {
		if b.Code != 201 {
			t.Logf("%+v", b)
		}
	}
}

// state returns all pods, and the nodes.
func state(t *testing.T, kube kubernetes.Interface) (pods []corev1.Pod, nodes []corev1.Node) {
	t.Helper()
	ctx, page := run.Context(t), metav1.ListOptions{Limit: 500}
	for {
		list, err := kube.CoreV1().Pods("").List(ctx, page)
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, list.Items...)
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
	}
	list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pods, list.Items
}
