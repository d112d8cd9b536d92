//go:build linux && (cases || releases)

package simulate

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/replay"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// urgent evicts everything that requests CPU from its node.
var urgent = `---
apiVersion: v1
kind: Pod
metadata: {name: urgent-1, namespace: shop}
spec:
  priorityClassName: urgent
  nodeSelector: {kubernetes.io/hostname: ` + shopNode(3) + `}
  containers: [{name: main, image: web, resources: {requests: {cpu: 14}}}]
`

const urgentClass = `---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
`

// recordWorld records a world until the returned function is called, which opens the recording. It
// waits until the removal of the last pod is recorded, and with it all changes of pods before.
func recordWorld(t *testing.T, w *world) (end func(last addedPod) *capture.Recording) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	began, done := make(chan struct{}), make(chan error, 1)
	core, log := observer.New(zap.DebugLevel)
	s := &session.Session{
		Connection: kubeapi.ConnectOptions{Kubeconfig: w.Kubeconfig}, Log: zap.New(core),
		OnStep: func(string) func(error) { return func(error) {} }, Warn: func(text string) { t.Error(text) },
		Note: func(string) { close(began) },
	}
	file := filepath.Join(t.TempDir(), "recording.tar.gz")
	go func() {
		_, err := capture.Record(ctx, s, capture.Request{}, time.Hour, file)
		done <- err
	}()
	select {
	case <-began:
	case err := <-done:
		t.Fatal(err)
	}
	return func(last addedPod) *capture.Recording {
		key := zap.String("object", "pods "+last.pod.GetNamespace()+"/"+last.pod.GetName())
		run.Eventually(t, "the removal of "+last.key+" is recorded", func(context.Context) (bool, string) {
			return log.FilterMessage("gone").FilterField(key).Len() > 0, fmt.Sprint(log.FilterField(key).All())
		})
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		recording, err := capture.OpenRecording(file)
		if err != nil {
			t.Fatal(err)
		}
		return recording
	}
}

// finish ends a pod, as its kubelet does, removes it, and waits until the scheduler knows.
func (w *world) finish(t *testing.T, scheduler *controlplane.Process, p addedPod) {
	t.Helper()
	_, err := w.Kube.CoreV1().Pods(p.pod.GetNamespace()).Patch(t.Context(), p.pod.GetName(), types.MergePatchType,
		[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	err = w.Kube.CoreV1().Pods(p.pod.GetNamespace()).Delete(t.Context(), p.pod.GetName(),
		metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil {
		t.Fatal(err)
	}
	w.awaitCache(t, scheduler)
}

// patchNode changes a node, and waits until the scheduler knows.
func (w *world) patchNode(t *testing.T, scheduler *controlplane.Process, name, patch string) {
	t.Helper()
	_, err := w.Kube.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.reportNodes(t, scheduler)
}

// The default scheduler, with ties that are always broken in the same way, runs on a changing
// cluster and is recorded. Its replay puts each pod on the same node, and evicts the same pods.
func TestReplayOfTheSchedulersOwnRecordingIsTheSame(t *testing.T) {
	atReleases(t, replayIsTheSame)
}

func replayIsTheSame(t *testing.T, release string) {
	t.Helper()
	f := tenShapes()
	w := newWorld(t, release, f.cluster+urgentClass)
	var nodes []string
	for i := range shopNodes {
		nodes = append(nodes, shopNode(i))
	}
	f.configuration = controlplane.WithoutTies(w.Release, append(nodes, "late"), "", "")
	f.ties = false
	pods := w.add(t, f.added)
	w.control(t)
	scheduler := f.scheduler(t, w)
	scheduler.Start()
	w.awaitCache(t, scheduler)
	w.reportNodes(t, scheduler)

	end := recordWorld(t, w)
	recording := end(w.live(t, scheduler, pods))

	var got *replay.Result
	withSimulator(t, release, func(sim *simulator) (err error) {
		o := sim.options(t, nil, pack.Scheduler{Configuration: profiles.Request{
			Source: []byte(configurationHead(w.Release) + f.configuration), SourceName: "scheduler.yaml"}})
		got, err = replay.On(t.Context(), sim.session, sim.server, o, recording, time.Millisecond, nil)
		return err
	})
	if len(got.Differences) > 0 || got.SameNode < 180 {
		t.Errorf("%d pods on the same node, others: %+v", got.SameNode, got.Differences)
	}
	evicted := []string{}
	for _, e := range got.Evicted {
		if e.By != "shop/urgent-1" {
			t.Errorf("%s evicted for %q", e.Name, e.By)
		}
		evicted = append(evicted, e.Name)
	}
	slices.Sort(evicted)
	equal(t, "evicted pods (recording, replay)", w.evicted(t), evicted)
	counts := func(o replay.Outcome) []int { return []int{o.Arrived, o.Placed, o.Ended, o.Evicted} }
	equal(t, "pods that arrived, were placed, ended, were evicted", counts(got.Recorded), counts(got.Replayed))
	if got.Replayed.Waiting.Max < 0.1 || got.Replayed.MostWaiting == 0 {
		t.Errorf("waiting %+v, at most %d", got.Replayed.Waiting, got.Replayed.MostWaiting)
	}
	for _, u := range got.Unplaced {
		if u.Reason == "" {
			t.Errorf("%s waits without a reason", u.Name)
		}
	}
	for resource, mean := range got.Recorded.Mean.Utilization {
		if difference := got.Replayed.Mean.Utilization[resource] - mean; difference < -0.02 || difference > 0.02 {
			t.Errorf("mean utilization of %s: recorded %f, replayed %f", resource, mean,
				got.Replayed.Mean.Utilization[resource])
		}
	}
}

// live creates the pods one after the other, ends some, changes nodes, and lets waiting pods wait
// until there is room. It returns the pod that it removes last.
func (w *world) live(t *testing.T, scheduler *controlplane.Process, pods []addedPod) (last addedPod) {
	t.Helper()
	var waiting, gpus []addedPod
	needsGPU := func(p addedPod) bool { return p.key[:3] == "gpu" }
	for i, p := range pods {
		if needsGPU(p) && slices.ContainsFunc(waiting, needsGPU) {
			continue // of two that wait for the same room, the back-off of the scheduler selects one
		}
		w.create(t.Context(), t, p.pod)
		switch node := w.await(t, p); {
		case node == "":
			waiting = append(waiting, p)
		case needsGPU(p):
			gpus = append(gpus, p)
		case i%15 == 0:
			w.finish(t, scheduler, p)
		case strings.HasPrefix(p.key, "none"): // it requests nothing: no pod waits for its room
			last = p
		}
		switch i {
		case 60:
			w.patchNode(t, scheduler, shopNode(1), `{"spec":{"unschedulable":true}}`)
		case 90:
			late := readyNode("late", zoneLabel+": a", "", `cpu: "9", memory: 18Gi, pods: "110"`, "")
			for _, o := range decodeManifests(t, late) {
				w.create(t.Context(), t, o)
			}
			w.reportNodes(t, scheduler)
		}
	}
	if len(waiting) == 0 {
		t.Fatal("no pod waits")
	}
	for i, p := range waiting {
		if !needsGPU(p) {
			continue
		}
		w.finish(t, scheduler, gpus[i])
		run.Eventually(t, p.key+" has the room of another pod", func(context.Context) (bool, string) {
			return w.await(t, p) != "", ""
		})
		break
	}
	for _, o := range decodeManifests(t, urgent) {
		w.create(t.Context(), t, o)
		run.Eventually(t, "the urgent pod has its node", func(context.Context) (bool, string) {
			return w.await(t, addedPod{"urgent-1", o}) != "", ""
		})
	}
	w.finish(t, scheduler, last)
	return last
}

// evicted returns the pods that the scheduler evicted, by its events.
func (w *world) evicted(t *testing.T) []string {
	t.Helper()
	list, err := w.Kube.CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Preempted"})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for i := range list.Items {
		names = append(names, list.Items[i].InvolvedObject.Name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		t.Error("no pod was evicted")
	}
	return names
}
