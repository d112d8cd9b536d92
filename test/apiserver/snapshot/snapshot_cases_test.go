//go:build linux && cases

package snapshot

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// Pods are created and deleted in their order while snapshots are taken: a snapshot of one moment
// has a window without gaps. With pages of 500 of different moments it has more or fewer, and the
// Services that are created before the pods do not match.
func TestSnapshotWhileObjectsChangeIsOfOneMoment(t *testing.T) {
	kube := server.Client(t)
	ns := namespace(t, kube)
	createPods(t.Context(), t, kube, ns, 0, window)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- slide(ctx, t, ns) }()
	for range 5 {
		got := take(t)
		if !got.Header.Consistent {
			t.Error("the snapshot is not consistent")
		}
		pods, services := names(t, got.Objects["Pod"], ns), names(t, got.Objects["Service"], ns)
		if len(pods) != window && len(pods) != window+1 {
			t.Errorf("%d pods, want %d or one more", len(pods), window)
		}
		checkWindow(t, pods, services)
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// etcd forgets the version of the snapshot between two pages of pods: they are read again, at a
// newer version, and that is reported.
func TestPodsAreReadAgainAfterACompaction(t *testing.T) {
	kube := server.Client(t)
	ns := namespace(t, kube)
	createPods(t.Context(), t, kube, ns, 0, 40)
	got := &sink{keys: map[string][]string{}, firstPod: func() {
		createPods(t.Context(), t, kube, ns, 40, 1)
		if err := server.Compact(t.Context()); err != nil {
			t.Error(err)
		}
	}}
	var pods snapshot.PodCounts
	result, err := capture.Cluster(t.Context(), server.Config(), snapshot.Kinds(), got,
		capture.Options{PageSize: 10, Pods: &pods})
	if err != nil {
		t.Fatal(err)
	}
	ours := slices.DeleteFunc(slices.Clone(got.keys["pods"]),
		func(key string) bool { return !strings.HasPrefix(key, ns+"/") })
	if len(ours) != 41 || len(slices.Compact(slices.Clone(ours))) != 41 {
		t.Errorf("%d pods, want 41, each once: %q", len(ours), ours)
	}
	if counted := pods.Pending + pods.Running + pods.Finished; counted != len(got.keys["pods"]) {
		t.Errorf("%d pods counted, %d read", counted, len(got.keys["pods"]))
	}
	if result.Consistent {
		t.Error("Consistent is set")
	}
}

// window is how many pods there are at any time while a test changes them.
const window = 1300

// slide creates a Service and a pod, and deletes the oldest pod, again and again.
func slide(ctx context.Context, t *testing.T, ns string) error {
	kube := server.Client(t)
	now := int64(0)
	for i := window; ctx.Err() == nil; i++ {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: podName(i)}, Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}},
		}}
		_, err := kube.CoreV1().Services(ns).Create(ctx, service, metav1.CreateOptions{})
		if err == nil {
			err = createPod(ctx, kube, ns, i)
		}
		if err == nil {
			err = kube.CoreV1().Pods(ns).Delete(ctx, podName(i-window), metav1.DeleteOptions{GracePeriodSeconds: &now})
		}
		if err != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return ctx.Err()
}

// checkWindow checks that the pods are consecutive, and that the number of the last Service is the
// number of the last pod or of the next one.
func checkWindow(t *testing.T, pods, services []string) {
	t.Helper()
	for i := 1; i < len(pods); i++ {
		if number(t, pods[i]) != number(t, pods[i-1])+1 {
			t.Errorf("%s follows %s", pods[i], pods[i-1])
		}
	}
	last := number(t, pods[len(pods)-1])
	newest := window - 1 // before the first change
	if len(services) > 0 {
		newest = number(t, services[len(services)-1])
	}
	if newest != last && newest != last+1 {
		t.Errorf("the last pod is %d, the last Service %d", last, newest)
	}
}

func number(t *testing.T, name string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(name, "pod-"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sink keeps the keys of the collected objects, and calls firstPod after the first pod.
type sink struct {
	keys     map[string][]string
	firstPod func()
}

func (s *sink) Add(resource, key string, _ []byte) error {
	s.keys[resource] = append(s.keys[resource], key)
	if resource == "pods" && s.firstPod != nil {
		s.firstPod()
		s.firstPod = nil
	}
	return nil
}

func (s *sink) Count(resource string) int { return len(s.keys[resource]) }

func (s *sink) Truncate(resource string, n int) { s.keys[resource] = s.keys[resource][:n] }
