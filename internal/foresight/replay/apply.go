package replay

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
)

// apply applies a group's events except for pod ends, and returns whether an object has changed,
// and the pods that arrive. It adds the pods on removed nodes to removed.
func (d *replayer) apply(
	ctx context.Context, events []archive.Event, removed *[]string,
) (changed bool, arrivals []*replayed, err error) {
	last := map[string]int{} // of the events of an object
	for i, e := range events {
		key, err := e.Kind.Key(e.Object)
		if err != nil {
			return false, nil, err
		}
		last[e.Kind.GroupResource()+" "+key] = i
	}
	current := slices.Sorted(maps.Values(last))
	for i, e := range events {
		_, latest := slices.BinarySearch(current, i)
		switch {
		case e.Kind.Name == "Pod":
			p, err := d.arrive(ctx, e)
			if err != nil {
				return false, nil, err
			}
			if p != nil {
				arrivals = append(arrivals, p)
			}
		case latest && isReplayed(e.Kind):
			if err := d.change(ctx, e, removed); err != nil {
				return false, nil, err
			}
			changed = true
		}
	}
	if changed {
		d.freed = true
		err = d.r.Loader.Wait(ctx)
	}
	return changed, arrivals, err
}

// isReplayed reports whether a kind's changes are applied. Changes to volumes and devices follow
// from decisions that may differ.
func isReplayed(kind *snapshot.Kind) bool {
	switch kind.GroupResource() {
	case "nodes", "namespaces", "priorityclasses.scheduling.k8s.io", "poddisruptionbudgets.policy", "services",
		"replicationcontrollers", "replicasets.apps", "statefulsets.apps", "storageclasses.storage.k8s.io",
		"csinodes.storage.k8s.io", "persistentvolumeclaims":
		return true
	}
	return false
}

// change applies a change to an object that is not a pod.
func (d *replayer) change(ctx context.Context, e archive.Event, removed *[]string) error {
	if e.Kind.Name != "Node" {
		if e.Gone {
			return d.r.Loader.Delete(ctx, e.Kind, e.Version, e.Object)
		}
		if e.Kind.Name == "PersistentVolumeClaim" { // it is bound here for the pods of the replay
			delete(e.Object, "status")
			if spec, ok := e.Object["spec"].(map[string]any); ok {
				delete(spec, "volumeName")
			}
		}
		return d.r.Loader.Add(ctx, e.Kind, e.Version, e.Object)
	}
	node := &corev1.Node{}
	if err := snapshot.Convert(e.Object, node); err != nil {
		return err
	}
	if !e.Gone {
		d.tally.SetNode(node)
		return d.r.Loader.Add(ctx, e.Kind, e.Version, e.Object)
	}
	d.tally.RemoveNode(node.Name)
	for key, p := range d.running {
		if p.node == node.Name { // the garbage collector of pods removes them
			d.leave(p)
			d.result.Lost = append(d.result.Lost, evictedAt(p, d.now))
			*removed = append(*removed, key)
		}
	}
	return d.r.Loader.Delete(ctx, e.Kind, e.Version, e.Object)
}

// arrive returns the pod in an event if it has just come and is to be scheduled. A static pod is
// created.
func (d *replayer) arrive(ctx context.Context, e archive.Event) (*replayed, error) {
	pod := &corev1.Pod{}
	if err := snapshot.Convert(e.Object, pod); err != nil {
		return nil, err
	}
	id := ID(pod)
	l := d.history.Life(id)
	if e.Gone || l == nil || d.arrived[id] || IsGated(pod) || report.IsFinished(pod) {
		return nil, nil //nolint:nilnil // nothing arrives
	}
	d.arrived[id] = true
	p := &replayed{Life: l, key: Key(pod)}
	if affinity := pod.Spec.Affinity; affinity != nil {
		p.follows = affinity.PodAffinity != nil
	}
	o, action := scenario.Arriving(e.Object)
	if action == scenario.Keep {
		d.tally.Waiting++
		d.place(p, pod.Spec.NodeName, e.At, false)
		return nil, d.r.CreatePod(ctx, o)
	}
	if d.r.UseProfile(o) {
		d.others++
	}
	text, err := snapshot.Encode(o)
	p.queued = scenario.NewWaiting(p.key, o, text)
	p.queued.Created = d.nextPlace()
	return p, err
}
