package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// offered returns the pods that the scheduler decides about now, in its queue's order: those that
// arrive and, if they may fit now, those that wait.
func (d *replayer) offered(arrivals []*replayed) []*replayed {
	offered := slices.Clone(arrivals)
	for _, p := range d.waiting {
		if !slices.Contains(arrivals, p) && (d.freed || p.follows && (d.placed || len(arrivals) > 0)) {
			offered = append(offered, p)
		}
	}
	queue := make([]scenario.Waiting, 0, len(offered))
	for _, p := range offered {
		queue = append(queue, p.queued)
	}
	scenario.Sort(queue)
	place := make(map[string]int, len(queue))
	for i, w := range queue {
		place[w.Key] = i
	}
	slices.SortFunc(offered, func(a, b *replayed) int { return cmp.Compare(place[a.key], place[b.key]) })
	return offered
}

// offer creates pods, waits for the decisions about them, and removes the pods that still wait.
func (d *replayer) offer(ctx context.Context, offered []*replayed) error {
	for _, p := range offered {
		pod, err := snapshot.Decode(p.queued.Pod)
		if err == nil {
			err = d.r.AppendPod(ctx, pod)
		}
		if err != nil {
			return fmt.Errorf("create pod %s: %w", p.key, err)
		}
	}
	if err := d.r.Loader.Send(ctx); err != nil {
		return err
	}
	undecided := slices.Clone(offered)
	gone := map[string]string{}
	err := d.watch.await(ctx, d.r.Scheduler, func(idle bool) bool {
		maps.Copy(gone, d.watch.removed())
		undecided = slices.DeleteFunc(undecided, func(p *replayed) bool {
			state, there := d.watch.get(p.key)
			_, evicted := gone[p.key]
			return there && (state.node != "" || state.refused && state.nominated == "" || idle) || !there && evicted
		})
		return len(undecided) == 0
	})
	if err != nil {
		return fmt.Errorf("wait for decisions about %s: %w", plural.Count(len(undecided), "pod"), err)
	}
	for _, p := range offered {
		at := d.now
		if p.Arrived > d.now-d.step {
			at = p.Arrived // it came in this group
		}
		state, there := d.watch.get(p.key)
		switch node := cmp.Or(state.node, gone[p.key]); {
		case node != "":
			d.place(p, node, at, true)
		case there:
			p.reason = cmp.Or(state.reason, "the scheduler waits for something that does not happen here")
		}
	}
	for key, node := range gone {
		d.evict(key, node)
	}
	d.evictions()
	return d.withdraw(ctx)
}

// evictions records the pods that the scheduler has evicted.
func (d *replayer) evictions() {
	for key, node := range d.watch.removed() {
		d.evict(key, node)
	}
}

func (d *replayer) evict(key, node string) {
	p := d.running[key]
	if p == nil || p.node != node {
		return
	}
	d.leave(p)
	d.result.Evicted = append(d.result.Evicted, evictedAt(p, d.now))
}

func evictedAt(p *replayed, at time.Duration) Evicted {
	return Evicted{Seconds: at.Seconds(),
		Placement: report.Placement{Namespace: p.Namespace, Name: p.Name, Node: p.node}}
}

// withdraw removes the waiting pods from the API server.
func (d *replayer) withdraw(ctx context.Context) error {
	var keys []string
	for key := range d.waiting {
		if _, there := d.watch.get(key); there {
			keys = append(keys, key)
		}
	}
	return d.remove(ctx, keys)
}

// remove removes pods from the API server, and waits until that is known.
func (d *replayer) remove(ctx context.Context, pods []string) error {
	if len(pods) == 0 {
		return nil
	}
	if err := d.r.RemovePods(ctx, pods); err != nil {
		return err
	}
	others := map[string]string{}
	err := d.watch.await(ctx, d.r.Scheduler, func(bool) bool {
		left := slices.ContainsFunc(pods, func(key string) bool {
			_, there := d.watch.get(key)
			return there
		})
		maps.Copy(others, d.watch.removed()) // now, so that none is taken for the end of a pod that comes again
		return !left
	})
	for key, node := range others {
		d.evict(key, node) // the removed ones do not run any more
	}
	return err
}
