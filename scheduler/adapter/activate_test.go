package adapter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// reluctant rejects every node, and sends each pod that it rejects.
type reluctant struct{ rejected chan *corev1.Pod }

func (*reluctant) Name() string { return "Reluctant" }

func (r *reluctant) Filter(ctx context.Context, _ scheduler.State, pod *corev1.Pod, _ scheduler.NodeInfo) *scheduler.Status {
	select {
	case r.rejected <- pod:
	case <-ctx.Done():
	}
	return scheduler.Unresolvable("not now")
}

// The scheduling queue of the release in go.mod, which has queueing hints, retries a pod when a plugin without events activates it. Releases
// without queueing hints, and API servers, are tested in test/.
func TestActivatedPodIsRetried(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	plugin, handle := &reluctant{rejected: make(chan *corev1.Pod)}, make(chan scheduler.Handle, 1)
	type bound struct {
		Base
		FilterPoint
	}
	registry := frameworkruntime.Registry{"Reluctant": Factory("Reluctant", func(_ context.Context, host *Host) (Plugin, error) {
		handle <- host
		return &bound{Base: host.Base(plugin), FilterPoint: FilterPoint{Host: host, Plugin: plugin}}, nil
	})}
	scheduled := startScheduler(ctx, t, registry)
	pod := scheduled.awaitRejected(ctx, t, plugin)
	if err := (<-handle).Activate(ctx, pod); err != nil {
		t.Fatal(err)
	}
	if again := scheduled.awaitRejected(ctx, t, plugin); again.UID != pod.UID || again.Annotations[scheduler.AnnotationActivated] == "" {
		t.Errorf("retried: %s, annotations %v", again.Name, again.Annotations)
	}
}

// schedulerInTest is a scheduler with one pod and one node.
type schedulerInTest struct{ *kubescheduler.Scheduler }

func startScheduler(ctx context.Context, t *testing.T, registry frameworkruntime.Registry) schedulerInTest {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u-1"}, Spec: corev1.PodSpec{SchedulerName: "test"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}
	client := fake.NewClientset(pod, node)
	// The scheduler ignores updates with the same resource version, which the fake does not set. Its own patches of the status are dropped:
	// they would be updates of the pod, too.
	client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch, updated := action.(clienttesting.PatchAction).GetPatch(), pod.DeepCopy()
		if !bytes.Contains(patch, []byte(scheduler.AnnotationActivated)) {
			return true, pod, nil
		}
		updated.ResourceVersion = "2"
		err := errors.Join(json.Unmarshal(patch, updated), client.Tracker().Update(action.GetResource(), updated, updated.Namespace))
		return true, updated, err
	})
	informers := kubescheduler.NewInformerFactory(client, 0)
	enabled := func(name string) config.PluginSet { return config.PluginSet{Enabled: []config.Plugin{{Name: name}}} }
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	t.Cleanup(broadcaster.Shutdown)
	s, err := kubescheduler.New(ctx, client, informers, nil, profile.NewRecorderFactory(broadcaster),
		kubescheduler.WithFrameworkOutOfTreeRegistry(registry),
		kubescheduler.WithProfiles(config.KubeSchedulerProfile{SchedulerName: "test", Plugins: &config.Plugins{
			QueueSort: enabled("PrioritySort"), Filter: enabled("Reluctant"), Bind: enabled("DefaultBinder"),
		}}))
	if err != nil {
		t.Fatal(err)
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := s.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return schedulerInTest{s}
}

// awaitRejected waits until the plugin has rejected the pod, and the pod is in the queue of unschedulable pods.
func (s schedulerInTest) awaitRejected(ctx context.Context, t *testing.T, plugin *reluctant) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	select {
	case pod = <-plugin.rejected:
	case <-ctx.Done():
		t.Fatal("the plugin is not called: ", s.pending())
	}
	for len(s.SchedulingQueue.UnschedulablePods()) == 0 {
		select {
		case <-ctx.Done():
			t.Fatal("the pod is not unschedulable: ", s.pending())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return pod
}

func (s schedulerInTest) pending() string {
	_, summary := s.SchedulingQueue.PendingPods()
	return fmt.Sprint(summary)
}
