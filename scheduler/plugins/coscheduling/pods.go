package coscheduling

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// labelJobSetUID is a label on the pods in all Jobs of a JobSet.
const labelJobSetUID = "jobset.sigs.k8s.io/jobset-uid"

type pods struct {
	name string
	// active contains the unfinished pods. It is the index of the scheduler's own informer, so it
	// contains every pod that the scheduler tries to place.
	active cache.Indexer
	// scan is set if active has no index. Older releases' informer cannot take one: a scheduler makes
	// it without an index map (pkg/scheduler/scheduler.go, newPodInformer, up to 1.24 at least), and
	// client-go writes to that map.
	scan func(pod *corev1.Pod) string
	// scanned are the pods by group if active has no index, nil until they are needed. The plugin's
	// lock guards them, and they are valid while it is held: many groups may be counted meanwhile.
	scanned map[string][]*corev1.Pod
	// succeeded contains the pods that have succeeded, so that a Job's other pods do not wait for
	// them.
	succeeded cache.Indexer
}

// watchPods adds an index to the scheduler's pods, and watches pods that have succeeded until ctx
// is done. It calls done for their groups.
func watchPods(ctx context.Context, h scheduler.Handle, s *settings, done func(group string)) (*pods, error) {
	p := &pods{name: s.index()}
	informer := h.SharedInformerFactory().Core().V1().Pods().Informer()
	p.active = informer.GetIndexer()
	if indexers := p.active.GetIndexers(); indexers == nil {
		p.scan = s.group
	} else if _, shared := indexers[p.name]; !shared { // another profile may have added it
		if err := informer.AddIndexers(s.indexers()); err != nil {
			return nil, fmt.Errorf("index pods by the label %s: %w", s.GroupLabel, err)
		}
	}
	finished := coreinformers.NewFilteredPodInformer(h.ClientSet(), metav1.NamespaceAll, 0, s.indexers(),
		func(o *metav1.ListOptions) {
			o.LabelSelector, o.FieldSelector = s.GroupLabel, "status.phase="+string(corev1.PodSucceeded)
		})
	p.succeeded = finished.GetIndexer()
	// The results differ between releases of client-go. They are not needed: the handler is never
	// removed.
	finished.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object interface{}) { //nolint:errcheck
		if pod, ok := object.(*corev1.Pod); ok {
			done(s.group(pod))
		}
	}})
	go finished.Run(ctx.Done())
	return p, nil
}

func (s *settings) index() string { return Name + "/" + s.GroupLabel }

func (s *settings) indexers() cache.Indexers {
	return cache.Indexers{s.index(): func(object interface{}) ([]string, error) {
		if pod, ok := object.(*corev1.Pod); ok && s.group(pod) != "" {
			return []string{s.group(pod)}, nil
		}
		return nil, nil
	}}
}

// of returns a group's pods that are neither finished nor being deleted. The caller holds the
// plugin's lock.
func (p *pods) of(group string) []*corev1.Pod {
	if p.scan == nil {
		return present(indexed(p.active, p.name, group))
	}
	if p.scanned == nil {
		p.scanned = map[string][]*corev1.Pod{}
		for _, pod := range present(p.active.List()) {
			if of := p.scan(pod); of != "" {
				p.scanned[of] = append(p.scanned[of], pod)
			}
		}
	}
	return p.scanned[group]
}

// present returns the pods that are not being deleted.
func present(objects []interface{}) []*corev1.Pod {
	var all []*corev1.Pod
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok && pod.DeletionTimestamp == nil {
			all = append(all, pod)
		}
	}
	return all
}

// finished returns the number of a group's pods that have succeeded in its other pods' run. Pods
// from an earlier run, such as a CronJob's last one, may have the same group.
func (p *pods) finished(group string, others []*corev1.Pod) (n int) {
	objects := indexed(p.succeeded, p.name, group)
	if len(objects) == 0 {
		return 0
	}
	runs := map[types.UID]bool{}
	for _, pod := range others {
		runs[runOf(pod)] = true
	}
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok && runs[runOf(pod)] {
			n++
		}
	}
	return n
}

// runOf returns the UID that a run's pods have in common: their JobSet's, which has several Jobs
// and replaces them when it restarts, or else their controller's. It is empty if a pod has no
// controller.
func runOf(pod *corev1.Pod) types.UID {
	if uid := pod.Labels[labelJobSetUID]; uid != "" {
		return types.UID(uid)
	}
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		return controller.UID
	}
	return ""
}

func indexed(indexer cache.Indexer, index, value string) []interface{} {
	objects, err := indexer.ByIndex(index, value)
	if err != nil {
		return nil // cannot happen: New has added the index
	}
	return objects
}

// group returns a pod's group, namespace/name, or "".
func (s *settings) group(pod *corev1.Pod) string {
	name := pod.Labels[s.GroupLabel]
	if name == "" {
		return ""
	}
	return pod.Namespace + "/" + name
}

// podHelps reports whether another pod's change may help a pod in a group: the other pod left its
// node, or the group counts differently because another scheduler bound one of its pods, or one of
// its pods has different labels or is being deleted.
func (c *Coscheduling) podHelps(pod *corev1.Pod, before, after interface{}) bool {
	if scheduler.LeftNode(after) {
		return true
	}
	key, updated := c.settings.group(pod), after.(*corev1.Pod)
	old, ok := before.(*corev1.Pod)
	switch {
	case !ok:
		return c.settings.group(updated) == key
	case c.settings.group(old) != key && c.settings.group(updated) != key:
		return false
	}
	return !reflect.DeepEqual(old.Labels, updated.Labels) ||
		(old.DeletionTimestamp == nil) != (updated.DeletionTimestamp == nil)
}

// gated reports whether a pod has scheduling gates, so that the scheduler does not try to place it.
// The field exists from 1.26 on; the API server also writes this condition.
func gated(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == "SchedulingGated"
		}
	}
	return false
}
