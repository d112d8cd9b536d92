//go:build linux

package plugins

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/otherschedulers"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// rivals is a scheduler with the plugin, and two schedulers without it: stock and plain.
type rivals struct {
	*cluster
	ctx context.Context
	all *sync.WaitGroup
}

// kubernetes#130429: a scheduler evicts a pod of another one, which puts the pod that replaces it
// in the room that was made, for ever.
func preemptionInTurn(t *testing.T, s subject) {
	name := "rivals"
	ctx, cancel := context.WithCancel(t.Context())
	x := rivals{s.start(t, name, profiles.Plugin{Name: otherschedulers.Name}, otherschedulers.Rules), ctx,
		&sync.WaitGroup{}}
	s.start(t, name+"-free", profiles.Plugin{Name: otherschedulers.Name, Args: []byte(`{victimsOf: ["*"]}`)},
		otherschedulers.Rules)
	binary, ok := s.built.Binary(build.KubeScheduler, build.Host())
	if !ok {
		t.Fatal("no kube-scheduler was built for this machine")
	}
	for _, other := range []string{"-stock", "-plain"} {
		s.NewScheduler(t, controlplane.Scheduler{Name: name + other, Binary: binary.Path}).Start()
	}
	x.PriorityClass(t.Context(), t, name, 100)
	t.Cleanup(func() { cancel(); x.all.Wait() })

	without := x.compete(t, "without", "-stock", "-plain")
	spared := x.compete(t, "spared", "", "-stock")
	kept := x.compete(t, "kept", "-stock", "")
	free := x.compete(t, "free", "-free", "-stock")

	x.awaitBound(t, "kept")
	x.awaitRejected(t, "spared", "pods of other schedulers are not evicted")
	run.Eventually(t, "the pod free is held back", func(ctx context.Context) (bool, string) {
		events, err := x.Kube.CoreV1().Events(name).List(ctx, metav1.ListOptions{
			FieldSelector: "reason=PreemptionHeldBack,involvedObject.name=free"})
		if err != nil {
			return false, err.Error()
		}
		return len(events.Items) == 1 && strings.Contains(events.Items[0].Message, "pods of ReplicaSet free were evicted "+
			"3 times within 10 minutes"), fmt.Sprintf("%d evictions, events %v", free.Load(), events.Items)
	})
	run.Eventually(t, "pods are evicted in turn without the plugin", func(context.Context) (bool, string) {
		return without.Load() > 4, fmt.Sprint(without.Load())
	})
	for which, want := range map[string]*atomic.Int64{"1 kept": kept, "0 spared": spared, "3 free": free} {
		if got := want.Load(); !strings.HasPrefix(which, fmt.Sprint(got, " ")) {
			t.Errorf("%s: %d evictions", which, got)
		}
	}
	t.Logf("evictions: %d without the plugin, %d with it in the scheduler of the victims, %d in that of the other pod, "+
		"%d if it may evict them", without.Load(), kept.Load(), spared.Load(), free.Load())
}

// compete creates a node with one seat, a pod of a ReplicaSet that takes it, and a pod of a higher
// priority of another scheduler that needs it. A pod that is evicted is replaced as soon as it is
// gone. It returns the number of evicted pods.
func (x rivals) compete(t *testing.T, name, preemptor, victims string) *atomic.Int64 {
	t.Helper()
	seat := amounts{corev1.ResourceName("example.com/" + name): "1"}
	x.node(t, name, seat, nil)
	owner, err := x.Kube.AppsV1().ReplicaSets(x.name).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": name}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"of": name}},
				Spec: x.pod(name, seat).Spec}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	replica := func(i int64) *corev1.Pod {
		grace := int64(30)
		pod := x.pod(fmt.Sprint(name, "-", i), seat)
		pod.Spec.SchedulerName, pod.Spec.TerminationGracePeriodSeconds = x.name+victims, &grace
		pod.Labels = map[string]string{"of": name}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner,
			appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		return pod
	}
	x.create(t, replica(0))
	x.awaitBound(t, name+"-0")
	evictions := &atomic.Int64{}
	x.all.Go(func() {
		for x.ctx.Err() == nil {
			if err := x.replace(name, evictions, replica); err != nil && x.ctx.Err() == nil {
				t.Error(err)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	pod := x.pod(name, seat)
	pod.Spec.SchedulerName, pod.Spec.PriorityClassName = x.name+preemptor, x.name
	x.create(t, pod)
	return evictions
}

// replace removes a pod that terminates, as its kubelet does, and creates another one.
func (x rivals) replace(name string, evictions *atomic.Int64, replica func(i int64) *corev1.Pod) error {
	pods := x.Kube.CoreV1().Pods(x.name)
	list, err := pods.List(x.ctx, metav1.ListOptions{LabelSelector: "of=" + name})
	if err != nil {
		return err
	}
	none := int64(0)
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			continue
		}
		if err := pods.Delete(x.ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
			return err
		}
		if _, err := pods.Create(x.ctx, replica(evictions.Add(1)), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
