package simulate

import (
	"context"
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// createWaiting creates the pods to schedule in their order, each followed by the objects that
// refer to it.
func (r *Run) createWaiting(ctx context.Context) error {
	others := 0
	for _, w := range r.Waiting {
		pod, err := snapshot.Decode(w.Pod)
		if err != nil {
			return fmt.Errorf("read pod %s: %w", w.Key, err)
		}
		if r.UseProfile(pod) {
			others++
		}
		owned, err := r.Owned(w)
		if err != nil {
			return err
		}
		if err := r.AppendPod(ctx, pod); err != nil {
			return err
		}
		if len(owned) == 0 {
			continue
		}
		if err := r.Loader.Wait(ctx); err != nil {
			return err
		}
		for _, o := range owned {
			if err := r.createOther(ctx, o.Kind, o.Version, o.Fields); err != nil {
				return err
			}
		}
	}
	if others > 0 {
		r.note("%s", r.NoProfile(others))
	}
	return r.Loader.Wait(ctx)
}

// UseProfile makes a pod one for the scheduler, and reports whether it names a scheduler that the
// configuration has no profile for.
func (r *Run) UseProfile(pod map[string]any) bool {
	return scenario.UseProfile(pod, r.Scheduler.Profiles, r.Options.Scheduler.Request.Name)
}

// NoProfile is the note about pods that name another scheduler.
func (r *Run) NoProfile(pods int) string {
	them := "them"
	if pods == 1 {
		them = "it"
	}
	return fmt.Sprintf("%s a scheduler that the configuration has no profile for: %s schedules %s",
		plural.Phrase(pods, "pod names", "pods name"), r.Options.Scheduler.Request.Name, them)
}

// Owned returns the objects that refer to a waiting pod, and are created after it.
func (r *Run) Owned(w scenario.Waiting) (all []scenario.Object, err error) {
	for _, d := range r.deferred[w.UID] {
		o := scenario.Object{Kind: d.kind, Version: d.version}
		if o.Fields, err = snapshot.Decode(d.object); err != nil {
			return nil, fmt.Errorf("read an object of pod %s: %w", w.Key, err)
		}
		all = append(all, o)
	}
	return all, nil
}

// AppendPod creates a pod after the pods before, at the latest when the loader is waited for.
func (r *Run) AppendPod(ctx context.Context, pod map[string]any) error {
	pods, version := snapshot.Find(snapshot.Kinds(), "v1", "Pod")
	return r.Loader.Append(ctx, pods, version, pod)
}

// CreatePod creates a pod.
func (r *Run) CreatePod(ctx context.Context, pod map[string]any) error {
	pods, version := snapshot.Find(snapshot.Kinds(), "v1", "Pod")
	return r.Loader.Create(ctx, pods, version, pod)
}

// DeletePod deletes a pod.
func (r *Run) DeletePod(ctx context.Context, pod map[string]any) error {
	pods, version := snapshot.Find(snapshot.Kinds(), "v1", "Pod")
	return r.Loader.Delete(ctx, pods, version, pod)
}

// RemovePods removes pods, by namespace and name, from the API server's storage. They do not end.
func (r *Run) RemovePods(ctx context.Context, keys []string) error {
	stored := make([]string, 0, len(keys))
	for _, key := range keys {
		stored = append(stored, "pods/"+key)
	}
	if err := r.server.Remove(ctx, stored); err != nil {
		return fmt.Errorf("remove %s: %w", plural.Count(len(keys), "pod"), err)
	}
	return nil
}
