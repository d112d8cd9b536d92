//go:build linux && (cases || faults || labs)

package plugins

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// stampedPods is how many pods are stamped while another client updates each of them as fast as it
// can.
const stampedPods = 200

// stamps is the metric that counts stamps.
const stamps = "pmk_sched_timestamp_stamps_total"

// writers are the goroutines of the other client.
const writers = 8

// stampsWhileOthersUpdate has pods wait for a label of the nodes, so that each of them is being
// updated when it is scheduled.
func (n *node) stampsWhileOthersUpdate(t *testing.T) {
	t.Helper()
	namespace := n.namespace(t, "stamped")
	var pods []*corev1.Pod
	for i := range stampedPods {
		pod := newPod(fmt.Sprintf("pod-%03d", i))
		pod.Spec.NodeSelector = map[string]string{"stamp": "now"}
		pods = append(pods, pod)
	}
	n.create(t, namespace, pods...)
	before := n.metrics(t).By(t, stamps, "result")

	var rounds, updates, lost atomic.Int64
	ctx, cancel := context.WithCancel(run.Context(t))
	defer cancel()
	var other errgroup.Group
	for w := range writers {
		other.Go(func() error {
			for round := 0; ctx.Err() == nil; round++ {
				for i := w; i < stampedPods; i += writers {
					err := n.update(run.Context(t), namespace, pods[i].Name, strconv.Itoa(round))
					switch {
					case apierrors.IsConflict(err): // the stamp was in the client's way, never the other way round
						lost.Add(1)
					case err != nil:
						return err
					default:
						updates.Add(1)
					}
				}
				rounds.Add(1)
			}
			return nil
		})
	}
	run.Eventually(t, "every pod was updated", func(context.Context) (bool, string) {
		done := rounds.Load()
		return done >= 2*writers, fmt.Sprint(done)
	})
	early, began := updates.Load(), time.Now()
	for _, node := range []string{one, two, three} {
		patch := []byte(`{"metadata": {"labels": {"stamp": "now"}}}`)
		if _, err := n.Kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	bound := n.awaitBound(t, namespace, stampedPods)
	during := updates.Load() - early
	cancel()
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
	n.isStamped(t, bound, began)
	after := n.metrics(t).By(t, stamps, "result")
	if failed := after["error"]; failed > 0 {
		t.Errorf("%v stamps failed", failed)
	}
	if made := after["ok"] - before["ok"]; made < stampedPods {
		t.Errorf("%v stamps for %d pods", made, stampedPods)
	}
	if during == 0 {
		t.Error("the other client updated nothing while the pods were stamped")
	}
	t.Logf(
		"Timestamp stamped %d pods while another client made %d updates of them, and %d before; %d of its updates met a "+
			"stamp", stampedPods, during, early, lost.Load())
	n.remove(t, namespace)
}

// update changes a label of a pod as clients do that read and write.
func (n *node) update(ctx context.Context, namespace, name, value string) error {
	pod, err := n.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod.Labels = map[string]string{"written": value}
	_, err = n.Kube.CoreV1().Pods(namespace).Update(ctx, pod, metav1.UpdateOptions{})
	return err
}

// isStamped fails the test unless each pod has a stamp that is not older than began.
func (n *node) isStamped(t *testing.T, pods []corev1.Pod, began time.Time) {
	t.Helper()
	stamped := 0
	for _, pod := range pods {
		nanoseconds, err := strconv.ParseInt(pod.Annotations["Scheduler-Timestamp"], 10, 64)
		if err == nil && nanoseconds >= began.UnixNano() && nanoseconds <= time.Now().UnixNano() {
			stamped++
		}
	}
	if stamped != len(pods) {
		t.Errorf("%d pods of %d are stamped", stamped, len(pods))
	}
}
