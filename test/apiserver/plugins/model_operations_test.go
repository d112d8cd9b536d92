//go:build linux

package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// inFlight is how many operations run at the same time.
	inFlight = 12
	// mostPods and mostUntried limit the pods that exist, and those that the scheduler has not tried.
	mostPods, mostUntried = 150, 12
	// fewestNodes and mostNodes limit the nodes.
	fewestNodes, mostNodes = 9, 14
)

// operate does operations, some of them at the same time.
func (w *world) operate(ctx context.Context, t *testing.T, operations int) {
	t.Helper()
	var all errgroup.Group
	all.SetLimit(inFlight)
	for last := w.count + operations; w.count < last; {
		w.awaitTried(ctx)
		w.mu.Lock()
		violated, running, restart := w.violation != "", w.down == 0, w.down == 1
		w.down = max(0, w.down-1)
		w.count++
		var do func()
		if !violated && !restart {
			do = w.choose(ctx)
		}
		stop := running && w.down > 0
		if do == nil && !stop && !restart {
			w.count-- // there is nothing to operate on
		}
		w.mu.Unlock()
		switch {
		case violated:
			_ = all.Wait()
			w.check(t)
		case restart:
			w.restart(ctx, t)
		case stop:
			w.stop(t)
		case do != nil:
			all.Go(func() error { do(); return nil })
		}
	}
	_ = all.Wait()
	if w.down > 0 {
		w.restart(ctx, t)
	}
	w.check(t)
}

// awaitTried waits until the scheduler, if it runs, has tried most pods.
func (w *world) awaitTried(ctx context.Context) {
	untried := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.down == 0 && w.violation == "" && len(w.sorted(func(r *record) bool {
			return r.pending() && len(r.pod.Status.Conditions) == 0
		})) > mostUntried
	}
	for untried() {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
	}
}

// choose returns the next operation, or nil if it is one of the scheduler's process or if there is
// nothing to operate on. The caller holds w.mu.
func (w *world) choose(ctx context.Context) (do func()) {
	if w.down == 0 && w.chance(500) {
		w.down = int(w.between(1, 30))
		return nil
	}
	if len(w.pods) > mostPods {
		return w.chooseEnd(ctx)
	}
	switch i := w.random.IntN(100); {
	case i < 35:
		return w.createPods(ctx, 1, w.newPod(w.anyNamespace()))
	case i < 43:
		pods, size, labelled := w.newGang()
		return w.createGang(ctx, pods, size, labelled)
	case i < 45:
		return w.createNode(ctx)
	case i < 47:
		return w.drain(ctx)
	case i < 50:
		return w.changeQuota(ctx)
	case i < 58:
		return w.resize(ctx)
	case i < 60:
		return w.createAgain(ctx)
	}
	return w.chooseEnd(ctx)
}

// chooseEnd returns an operation that ends pods.
func (w *world) chooseEnd(ctx context.Context) (do func()) {
	switch i := w.random.IntN(10); {
	case i < 4:
		return w.complete(ctx)
	case i < 6:
		return w.deleteOne(ctx, func(r *record) bool { return r.ended > 0 })
	case i < 7:
		if r := w.some(func(r *record) bool { return r.gang() != "" }); r != nil {
			return w.deletePods(ctx, "delete gang", w.sorted(func(o *record) bool { return o.gang() == r.gang() })...)
		}
		return nil
	}
	return w.deleteOne(ctx, func(*record) bool { return true })
}

// deleteOne deletes one of the pods for which selected is true.
func (w *world) deleteOne(ctx context.Context, selected func(*record) bool) func() {
	if r := w.some(selected); r != nil {
		return w.deletePods(ctx, "delete", r)
	}
	return nil
}

// some returns one of the pods for which selected is true, nil if there is none.
func (w *world) some(selected func(*record) bool) *record {
	if all := w.sorted(selected); len(all) > 0 {
		return all[w.random.IntN(len(all))]
	}
	return nil
}

// createPods creates pods.
func (w *world) createPods(ctx context.Context, size int, pods ...*corev1.Pod) func() {
	for _, pod := range pods {
		w.note(fmt.Sprintf("create %s of gang %q of %d, needs %v", keyOf(pod), pod.Labels[groupLabel], size,
			requestOf(pod)), keyOf(pod), gangOf(pod), pod.Namespace)
	}
	return func() {
		for _, pod := range pods {
			_, err := w.Kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
			w.tolerate(ctx, err, "create pod "+keyOf(pod))
		}
	}
}

// createGang creates a gang, and its PodGroup before or after the pods.
func (w *world) createGang(ctx context.Context, pods []*corev1.Pod, size int, labelled bool) func() {
	key := gangOf(pods[0])
	w.gangs[key] = &gangRecord{key: key, size: size, everBound: map[types.UID]bool{}}
	createAll, first := w.createPods(ctx, size, pods...), w.chance(2)
	return func() {
		if !labelled && first {
			w.createPodGroup(ctx, pods[0], size)
		}
		createAll()
		if !labelled && !first {
			w.createPodGroup(ctx, pods[0], size)
		}
	}
}

// createPodGroup creates the PodGroup of a pod.
func (w *world) createPodGroup(ctx context.Context, pod *corev1.Pod, size int) {
	name := pod.Labels[groupLabel]
	_, err := w.podGroups.Namespace(pod.Namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"name": name, "namespace": pod.Namespace},
		"spec":     map[string]any{"minMember": int64(size)},
	}}, metav1.CreateOptions{})
	w.tolerate(ctx, err, "create PodGroup "+name)
}

// deletePods deletes pods one after the other.
func (w *world) deletePods(ctx context.Context, what string, records ...*record) func() {
	var pods []*corev1.Pod
	for _, r := range records {
		w.note(what+" "+r.key(), r.key(), r.gang(), r.pod.Namespace, r.pod.Spec.NodeName)
		pods = append(pods, r.pod)
	}
	return func() {
		for _, pod := range pods {
			w.remove(ctx, pod)
		}
	}
}

// createAgain deletes a pod and creates one with the same name and the same requests. Up to 1.22
// the API server does not compare the UID of a binding with the pod's (BindingREST in
// pkg/registry/core/pod/storage/storage.go), so that the new pod can be bound by the decision about
// a pending one.
func (w *world) createAgain(ctx context.Context) func() {
	r := w.some(func(r *record) bool {
		return (r.gang() == "" || r.ended == 0) && (w.Release.Minor > 22 || !r.pending())
	})
	if r == nil {
		return nil
	}
	pod := r.pod
	again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels},
		Spec: *pod.Spec.DeepCopy()}
	again.Spec.NodeName = ""
	remove, createOne := w.deletePods(ctx, "delete, to create it again", r), w.createPods(ctx, 0, again)
	return func() {
		remove()
		createOne()
	}
}

// complete has a running pod succeed or fail.
func (w *world) complete(ctx context.Context) func() {
	r := w.some(mayComplete)
	if r == nil {
		return nil
	}
	phase := corev1.PodSucceeded
	if w.chance(3) {
		phase = corev1.PodFailed
	}
	pod := r.pod
	w.note(fmt.Sprintf("%s becomes %s", r.key(), phase), r.key(), r.gang(), pod.Namespace, pod.Spec.NodeName)
	return func() { w.patch(ctx, pod, "status", map[string]any{"status": map[string]any{"phase": phase}}) }
}

// resize changes the requests of a running pod in place, by the subresource that is enabled from
// 1.33 on: more or less memory, of which nodes have enough, and less CPU. Whether a kubelet has
// room for more CPU is a race with the scheduler in every cluster.
func (w *world) resize(ctx context.Context) func() {
	r := w.some(mayResize)
	if r == nil || w.Release.Minor < 33 {
		return nil
	}
	pod := r.pod
	cpu := pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
	requests := amountsOf(w.between(1, cpu.MilliValue()/250)*250, w.between(1, 16)*256)
	w.note(fmt.Sprintf("resize %s to %v", r.key(), sumsOf(requests)), r.key(), pod.Namespace, pod.Spec.NodeName)
	container := map[string]any{"name": pod.Spec.Containers[0].Name, "resources": map[string]any{"requests": requests}}
	return func() {
		w.patch(ctx, pod, "resize", map[string]any{"spec": map[string]any{"containers": []any{container}}})
	}
}

// patch patches a subresource of a pod.
func (w *world) patch(ctx context.Context, pod *corev1.Pod, subresource string, patch map[string]any) {
	patch["metadata"] = map[string]any{"uid": pod.UID}
	text, err := json.Marshal(patch)
	if err != nil {
		panic(err)
	}
	_, err = w.Kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, text,
		metav1.PatchOptions{}, subresource)
	if subresource == "resize" && apierrors.IsInvalid(err) || isOfAnotherPod(err) {
		return // the pod has finished, or was created again
	}
	w.tolerate(ctx, err, subresource+" of pod "+keyOf(pod))
}

// isOfAnotherPod reports whether a patch was refused because the pod of that name has another UID.
func isOfAnotherPod(err error) bool {
	isUID := func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" }
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil &&
		slices.ContainsFunc(status.Status().Details.Causes, isUID)
}

// alive returns the nodes that are not being drained, by name. The caller holds w.mu.
func (w *world) alive() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		if !w.machines[name].gone {
			names = append(names, name)
		}
	}
	return names
}
