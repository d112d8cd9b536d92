//go:build linux

package plugins

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/timestamp"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

// As many pods as are stamped, while other clients change each of them as fast as they can.
const stampedPods = 200

func TestTimestampNeverConflicts(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	rules, err := timestamp.Rules(scheduler.Arguments{})
	if err != nil {
		t.Fatal(err)
	}
	config := user(ctx, t, "stamper", rules)
	if err := server.AwaitAccess(ctx, "stamper",
		authorizationv1.ResourceAttributes{Verb: "patch", Resource: "pods", Namespace: "stamped"}); err != nil {
		t.Fatal(err)
	}
	h := newHandle(t, config)
	plugin, err := timestamp.New(ctx, scheduler.Arguments{}, h)
	if err != nil {
		t.Fatal(err)
	}
	kube := server.Client(t)
	pods := createPods(ctx, t, kube, "stamped", stampedPods)
	began := time.Now()
	var updates atomic.Int64
	var group errgroup.Group
	group.SetLimit(8)
	for _, pod := range pods {
		group.Go(func() error {
			return whileUpdated(ctx, kube, pod, &updates, func() error {
				return plugin.PreBind(ctx, nil, pod, "node-1").Err()
			})
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d updates while %d pods were stamped", updates.Load(), stampedPods)
	list, err := kube.CoreV1().Pods("stamped").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stamped := 0
	for _, pod := range list.Items {
		nanoseconds, err := strconv.ParseInt(pod.Annotations["Scheduler-Timestamp"], 10, 64)
		if err == nil && nanoseconds >= began.UnixNano() && nanoseconds <= time.Now().UnixNano() {
			stamped++
		}
	}
	if stamped != stampedPods || h.metric(t, "pmk_sched_timestamp_stamps_total", `"ok"`) != stampedPods ||
		h.metric(t, "pmk_sched_timestamp_stamps_total", `"error"`) != 0 {
		t.Errorf("%d pods of %d are stamped", stamped, stampedPods)
	}
}

func TestTimestampLeavesANewPodOfTheSameNameAlone(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	kube := server.Client(t)
	old := createPods(ctx, t, kube, "recreated", 1)[0]
	now := int64(0)
	if err := kube.CoreV1().Pods("recreated").Delete(ctx, old.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoreV1().Pods("recreated").Create(ctx, newPod(0), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	plugin, err := timestamp.New(ctx, scheduler.Arguments{}, newHandle(t, server.Config()))
	if err != nil {
		t.Fatal(err)
	}
	if status := plugin.PreBind(ctx, nil, old, "node-1"); status.Code() != scheduler.CodeError {
		t.Errorf("the stamp of the old pod did not fail: %s", status)
	}
	current, err := kube.CoreV1().Pods("recreated").Get(ctx, old.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if stamp, stamped := current.Annotations["Scheduler-Timestamp"]; stamped {
		t.Errorf("the new pod has the stamp of the old one: %s", stamp)
	}
}

func newPod(i int) *corev1.Pod {
	return controlplane.Pod("none", "none", fmt.Sprintf("pod-%03d", i))
}

func createPods(ctx context.Context, t *testing.T, kube kubernetes.Interface, namespace string, n int) []*corev1.Pod {
	t.Helper()
	(&controlplane.Plane{Kube: kube}).Namespace(ctx, t, namespace)
	pods := make([]*corev1.Pod, n)
	var group errgroup.Group
	group.SetLimit(16)
	for i := range pods {
		group.Go(func() (err error) {
			pods[i], err = kube.CoreV1().Pods(namespace).Create(ctx, newPod(i), metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return pods
}

// whileUpdated calls do while a client keeps changing the pod.
func whileUpdated(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod, updates *atomic.Int64,
	do func() error) error {
	begun, over := make(chan struct{}), make(chan struct{})
	var client errgroup.Group
	client.Go(func() error {
		for round := 0; ; round++ {
			err := update(ctx, kube, pod, strconv.Itoa(round))
			if round == 0 {
				close(begun)
			}
			if err == nil {
				updates.Add(1)
			} else if !apierrors.IsConflict(err) || round == 0 { // the stamp is in the client's way, never the other way round
				return err
			}
			select {
			case <-over:
				return nil
			default:
			}
		}
	})
	<-begun
	err := do()
	close(over)
	return errors.Join(err, client.Wait())
}

func update(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod, value string) error {
	client := kube.CoreV1().Pods(pod.Namespace)
	pod, err := client.Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod.Labels = map[string]string{"written": value}
	if pod, err = client.Update(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return err
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Message: value}}
	_, err = client.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}
