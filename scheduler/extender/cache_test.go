package extender

import (
	"context"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Metrics include the load of pods that exist when the extender starts. The load of a pod that is
// bound later is expected, once.
func TestLoadIsExpectedOfPodsThatAreBoundFromNowOn(t *testing.T) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "127.0.0.1:1"}) // it is not called
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCache(informers.NewSharedInformerFactory(client, 0), zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	var bound []string
	c.onBound(func(_ context.Context, pod *corev1.Pod, node string) {
		bound = append(bound, string(pod.UID)+" on "+node)
	})
	pod := func(uid types.UID, node string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p-" + string(uid), UID: uid},
			Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	c.setPod(pod("before", "a", corev1.PodRunning), true)
	c.setPod(pod("waits", "", corev1.PodPending), true)
	c.updatePod(pod("waits", "", corev1.PodPending), pod("waits", "b", corev1.PodPending))
	c.updatePod(pod("waits", "b", corev1.PodPending), pod("waits", "b", corev1.PodRunning))
	c.setPod(pod("new", "a", corev1.PodPending), false)
	// A watch had a gap: the pod was created again under its name.
	c.updatePod(pod("new", "a", corev1.PodRunning), pod("again", "a", corev1.PodPending))
	if want := []string{"waits on b", "new on a", "again on a"}; !slices.Equal(bound, want) {
		t.Errorf("bound %q, expected %q", bound, want)
	}
	if _, pods := c.Counts(); pods != 3 {
		t.Errorf("%d pods count, expected before, waits and again", pods)
	}
	c.updatePod(pod("again", "a", corev1.PodRunning), pod("again", "a", corev1.PodSucceeded))
	c.removePod(pod("before", "a", corev1.PodRunning))
	if _, pods := c.Counts(); pods != 1 {
		t.Errorf("%d pods count, expected waits", pods)
	}
}
