package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

const (
	// cacheSettleTime is the time for a scheduler that has nothing else to do to process a change that
	// another watch has reported. Up to 1.34 it handles pods with a node in one goroutine and waiting
	// pods in another (pkg/scheduler/eventhandlers.go adds two handlers).
	cacheSettleTime = 50 * time.Millisecond
	// mostRounds limits the attempts at a group's pods: others may have been evicted or placed.
	mostRounds = 3
)

// replayer replays a recording. Waiting pods are on the API server only while the scheduler decides
// about them: otherwise it would wait, in real time, before it tries one again.
type replayer struct {
	simulate.Unobserved
	history   *History
	recording *capture.Recording
	// step is the part of the recording that is applied together.
	length, step time.Duration
	steps        *Steps[archive.Event]
	tally        *Tally
	series       *Series
	result       *Result
	now          time.Duration

	r     *simulate.Run
	watch *podWatch
	// arrived are the IDs of pods that have come, and running and waiting the pods by namespace and
	// name.
	arrived map[string]bool
	running map[string]*replayed
	waiting map[string]*replayed
	sorted  int
	// freed is set if a waiting pod may fit now, and placed if another pod was placed.
	freed, placed bool
	waits         []time.Duration
	ended         int
	others        int
}

// replayed is a pod in the replay.
type replayed struct {
	*Life
	key, node string
	// queued is the pod with its place in the queue.
	queued scenario.Waiting
	// follows is set if the pod may fit because another one was placed.
	follows bool
	reason  string
}

func newReplayer(
	history *History, recording *capture.Recording, length, step time.Duration, prices []report.Price,
) *replayer {
	tally := newTally(prices)
	return &replayer{
		history: history, recording: recording, length: length, step: step, tally: tally,
		series:  newSeries(tally, length),
		result:  &Result{Seconds: length.Seconds(), StepSeconds: step.Seconds(), Unknown: unknown()},
		arrived: map[string]bool{}, running: map[string]*replayed{}, waiting: map[string]*replayed{},
	}
}

// Scheduled replays the recording when its snapshot is loaded and its pending pods are scheduled.
func (d *replayer) Scheduled(ctx context.Context, r *simulate.Run) error {
	d.r = r
	ctx, cancel := r.Bounded(ctx)
	defer cancel()
	return r.Session.Step(fmt.Sprintf("replay %s", d.length.Round(time.Second)), func() error { return d.replay(ctx) })
}

func (d *replayer) replay(ctx context.Context) (err error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if d.watch, err = watchPods(watching, d.r.Config()); err != nil {
		return err
	}
	d.steps = newSteps(d.step, func(g Group[archive.Event]) error { return d.group(ctx, g) })
	if err := d.begin(ctx); err != nil {
		return err
	}
	err = d.recording.Events(func(e archive.Event) error { return d.steps.Event(e.At, e) })
	if err == nil {
		err = d.steps.Finish(d.length)
	}
	if err != nil {
		return err
	}
	d.series.Advance(d.length)
	return d.nameEvictors(ctx)
}

// begin takes over the nodes and pods in the snapshot.
func (d *replayer) begin(ctx context.Context) error {
	if err := d.r.EachNode(ctx, d.tally.SetNode); err != nil {
		return err
	}
	queued := map[string]scenario.Waiting{}
	for _, w := range d.r.Waiting {
		w.Created = d.nextPlace() // they are in order
		queued[w.Key] = w
	}
	pods := d.watch.all()
	for _, l := range d.history.Lives() {
		if !l.Before {
			continue
		}
		d.arrived[l.ID] = true
		p := &replayed{Life: l, key: l.Namespace + "/" + l.Name}
		w, pending := queued[p.key]
		p.queued = w
		state, there := pods[p.key]
		switch {
		case there && state.node != "":
			d.tally.Waiting++
			d.place(p, state.node, 0, pending)
		case pending && there:
			p.reason, p.follows = state.reason, true
			d.wait(p)
		case pending: // it was placed and evicted
			d.result.Evicted = append(d.result.Evicted, evictedAt(p, 0))
		}
	}
	for _, e := range d.r.Report.Evicted {
		if life := d.history.Current(e.Namespace + "/" + e.Name); life != nil {
			d.result.Evicted = append(d.result.Evicted, evictedAt(&replayed{Life: life, node: e.Node}, 0))
		}
	}
	return d.withdraw(ctx)
}

// nextPlace returns a pod's place among the pods with its priority, after the pods before.
func (d *replayer) nextPlace() string {
	d.sorted++
	return fmt.Sprintf("%020d", d.sorted)
}

// wait adds a waiting pod.
func (d *replayer) wait(p *replayed) {
	d.tally.Waiting++
	d.waiting[p.key] = p
	d.arrived[p.ID] = true
	if at, ok := p.IsDeleted(); ok {
		d.steps.End(at, p.ID)
	}
}

// place records that a waiting pod has a node. decided is set if the scheduler decided it here.
func (d *replayer) place(p *replayed, node string, at time.Duration, decided bool) {
	delete(d.waiting, p.key)
	d.tally.Waiting--
	d.tally.AddPod(node, p.Requests, p.Fixed)
	p.node, d.running[p.key] = node, p
	if end, ok := p.EndOf(at); ok {
		d.steps.End(end, p.ID)
	}
	if !decided {
		return
	}
	d.placed = true
	d.waits = append(d.waits, at-p.Arrived)
	switch p.Node {
	case "": // a trace does not know it
	case node:
		d.result.SameNode++
	default:
		d.result.OtherNode++
		d.result.Differences = append(d.result.Differences,
			Difference{Namespace: p.Namespace, Name: p.Name, Recorded: p.Node, Node: node})
	}
}

// leave records that a pod is on its node no more.
func (d *replayer) leave(p *replayed) {
	delete(d.running, p.key)
	d.tally.RemovePod(p.node, p.Requests, p.Fixed)
	d.freed = true
}

// group applies a group, and has the scheduler decide.
func (d *replayer) group(ctx context.Context, g Group[archive.Event]) error {
	d.series.Advance(g.At)
	d.progress(g.At)
	d.now = g.At
	d.result.Groups++
	d.evictions()
	removed := d.end(g.Ends)
	changed, arrivals, err := d.apply(ctx, g.Events, &removed)
	if err != nil {
		return err
	}
	if err := d.remove(ctx, removed); err != nil {
		return err
	}
	for _, p := range arrivals {
		d.wait(p)
	}
	for range mostRounds {
		offered := d.offered(arrivals)
		if len(offered) == 0 {
			break
		}
		if changed || len(removed) > 0 {
			if err := clock.Sleep(ctx, cacheSettleTime); err != nil {
				return err
			}
		}
		d.freed, d.placed, arrivals, changed = false, false, nil, true
		if err := d.offer(ctx, offered); err != nil {
			return err
		}
	}
	return nil
}

// progress reports each tenth of the recording.
func (d *replayer) progress(at time.Duration) {
	tenth := func(t time.Duration) int64 { return int64(t * 10 / max(d.length, 1)) }
	if tenth(at) > tenth(d.now) {
		d.r.Session.Note(fmt.Sprintf("replayed %s of %s", at.Round(time.Second), d.length.Round(time.Second)))
	}
}

// end removes pods from the state, and returns the keys of the pods that are on the API server.
func (d *replayer) end(ids []string) (removed []string) {
	for _, id := range ids {
		l := d.history.Life(id)
		key := l.Namespace + "/" + l.Name
		if p := d.running[key]; p != nil && p.Life == l {
			d.leave(p)
			d.ended++
			removed = append(removed, key)
		} else if p := d.waiting[key]; p != nil && p.Life == l {
			delete(d.waiting, key)
			d.tally.Waiting--
			d.ended++
		}
	}
	return removed
}

// finish returns the result.
func (d *replayer) finish() *Result {
	result := d.result
	result.Recorded = d.history.Outcome()
	result.Replayed = d.series.Outcome(d.waits)
	o := &result.Replayed
	o.Arrived, o.Placed, o.Ended, o.Evicted = result.Recorded.Arrived, len(d.waits), d.ended, len(result.Evicted)
	for _, p := range d.waiting {
		result.Unplaced = append(result.Unplaced, Unplaced{Since: p.Arrived.Seconds(),
			Unplaced: report.Unplaced{Namespace: p.Namespace, Name: p.Name, Reason: p.reason}})
	}
	if d.others > 0 {
		result.Notes = append(result.Notes, d.r.NoProfile(d.others))
	}
	if preempted := result.Recorded.Evicted; preempted > 0 {
		result.Notes = append(result.Notes, plural.Phrase(preempted,
			"pod was evicted by the scheduler in the recording: here it runs on unless it is evicted again",
			"pods were evicted by the scheduler in the recording: here they run on unless they are evicted again"))
	}
	result.Sort()
	return result
}
