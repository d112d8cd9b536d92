package simulate

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// mostCopies limits the copies that are tried at the same time.
const mostCopies = 128

// fill adds copies of the workloads until a pod does not fit. It creates several copies at once. If
// a pod does not fit although pods in later copies do, fill removes its copy and the later ones and
// continues with one copy at a time, so that the answer is the same as if the scheduler got one
// copy after the other.
func (r *Run) fill(ctx context.Context) error {
	f := filling{r: r, decided: len(r.Waiting)}
	c := &report.Capacity{}
	r.Report.Capacity = c
	for _, w := range r.Options.Scenario.Workloads {
		c.PodsPerCopy += w.Replicas
	}
	if incomplete := r.unplacedCopies(); len(incomplete) > 0 {
		c.Copies = r.Options.Scenario.Count - len(incomplete)
		first := slices.MinFunc(r.Report.Unplaced, func(a, b report.Unplaced) int {
			return r.copies[a.Namespace+"/"+a.Name] - r.copies[b.Namespace+"/"+b.Name]
		})
		c.Stop = &first
		return nil
	}
	c.Copies = r.Options.Scenario.Count
	for size := 1; c.More < r.Options.Scenario.Limit && c.Stop == nil; {
		size = min(size, mostCopies, r.Options.Scenario.Limit-c.More)
		fit, stop, certain, err := f.try(ctx, size)
		if errors.Is(err, context.DeadlineExceeded) {
			r.note("more copies may fit: the time of --timeout was over")
			break
		}
		if err != nil {
			return err
		}
		c.More += fit
		switch {
		case stop == nil:
			size *= 2
		case certain:
			c.Stop = stop
		default:
			size = 1
		}
	}
	c.Copies += c.More
	c.Limited = c.Stop == nil
	return nil
}

// unplacedCopies returns the copies that have a pod without a node.
func (r *Run) unplacedCopies() map[int]bool {
	incomplete := map[int]bool{}
	for _, u := range r.Report.Unplaced {
		if index, ok := r.copies[u.Namespace+"/"+u.Name]; ok {
			incomplete[index] = true
		}
	}
	return incomplete
}

// filling adds copies that do not evict others.
type filling struct {
	r       *Run
	decided int // pods that the scheduler counts as bound or refused
}

// try adds copies, and returns how many fit one after the other, and the first pod that did not.
// certain is set if no pod in a later copy has taken its room. Otherwise its copy and the later
// copies are removed.
func (f *filling) try(ctx context.Context, size int) (fit int, stop *report.Unplaced, certain bool, err error) {
	batch, starts := make([][]scenario.Replica, size), make([][]int, size)
	for i := range batch {
		starts[i], batch[i] = slices.Clone(f.r.next), f.r.nextCopy()
		for j := range batch[i] {
			replica := &batch[i][j]
			refused, err := f.create(ctx, replica)
			if err != nil {
				return 0, nil, false, err
			}
			if refused != "" {
				stop := refusal(replica.Pod, refused)
				return 0, &stop, true, nil // as any other copy
			}
		}
	}
	if err := f.r.Scheduler.AwaitDecisions(ctx, f.decided); err != nil {
		return 0, nil, false, err
	}
	for fit = range batch {
		if stop, err = f.firstUnplaced(ctx, batch[fit]); err != nil || stop != nil {
			break
		}
	}
	if err != nil || stop == nil {
		return size, nil, false, err
	}
	later := slices.Concat(batch[fit+1:]...)
	placed, err := f.anyPlaced(ctx, later)
	if err != nil || !placed {
		return fit, stop, true, err
	}
	f.r.next = starts[fit]
	for _, replica := range append(batch[fit], later...) {
		if err := f.remove(ctx, replica); err != nil {
			return 0, nil, false, err
		}
	}
	return fit, stop, false, nil
}

// anyPlaced reports whether one of the pods has a node.
func (f *filling) anyPlaced(ctx context.Context, replicas []scenario.Replica) (bool, error) {
	for _, replica := range replicas {
		pod, err := f.get(ctx, replica)
		if err != nil || pod.Spec.NodeName != "" {
			return err == nil, err
		}
	}
	return false, nil
}

// create creates a pod that waits for room instead of evicting others, with its claims. refused is
// the reason why the API server would not create it.
func (f *filling) create(ctx context.Context, replica *scenario.Replica) (refused string, err error) {
	if refused, err = f.r.prepare(ctx, replica); err != nil || refused != "" {
		return refused, err
	}
	scenario.NeverPreempt(replica.Pod)
	f.r.UseProfile(replica.Pod)
	if err := f.r.CreatePod(ctx, replica.Pod); err != nil {
		return "", err
	}
	for _, o := range replica.Owned {
		if err := f.r.createOther(ctx, o.Kind, o.Version, o.Fields); err != nil {
			return "", err
		}
	}
	f.decided++
	return "", nil
}

// get returns a pod.
func (f *filling) get(ctx context.Context, replica scenario.Replica) (*corev1.Pod, error) {
	namespace, name := replica.Name()
	return f.r.Pod(ctx, namespace, name)
}

// firstUnplaced returns the first pod in a copy that has no node.
func (f *filling) firstUnplaced(ctx context.Context, replicas []scenario.Replica) (*report.Unplaced, error) {
	for _, replica := range replicas {
		pod, err := f.get(ctx, replica)
		if err != nil {
			return nil, err
		}
		if pod.Spec.NodeName == "" {
			return &report.Unplaced{Namespace: pod.Namespace, Name: pod.Name, Reason: Reason(pod)}, nil
		}
	}
	return nil, nil
}

// remove removes a pod and its claims, so that they can be created again.
func (f *filling) remove(ctx context.Context, replica scenario.Replica) error {
	pod, err := f.get(ctx, replica)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName == "" {
		f.decided-- // the scheduler counts refused pods as long as they are there
	}
	if err := f.r.DeletePod(ctx, replica.Pod); err != nil {
		return err
	}
	for _, claim := range slices.Concat(replica.Claims, replica.Owned) {
		if err := f.r.Loader.Delete(ctx, claim.Kind, claim.Version, claim.Fields); err != nil {
			return err
		}
	}
	return nil
}
