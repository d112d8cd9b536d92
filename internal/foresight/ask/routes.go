package ask

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Routes reads the routes of the cluster. route returns the scheduler that one of them gives a new
// pod, or "". Its error says that this cannot be told about the pod.
type Routes func(ctx context.Context) (route func(*corev1.Pod) (string, error), err error)

// nameIt is what to do about pods whose route cannot be told.
const nameIt = "name the scheduler with --scheduler"

// apply gives the pods of a question that name no scheduler the one of a route, and notes it.
func (r Routes) apply(ctx context.Context, asked *scenario.Scenario) error {
	if !slices.ContainsFunc(asked.Workloads, func(w scenario.Workload) bool { return namesNone(&w) }) {
		return nil
	}
	route, err := r(ctx)
	if err != nil {
		return problem.WithHint(err, nameIt)
	}
	for i := range asked.Workloads {
		w := &asked.Workloads[i]
		if !namesNone(w) {
			continue
		}
		pod := &corev1.Pod{}
		if err := snapshot.Convert(w.Template(), pod); err != nil {
			return problem.Invalidf("", "%s %s/%s: %w", w.Kind, w.Namespace, w.Name, err)
		}
		for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for j := range containers {
				setRequests(&containers[j].Resources) // the API server does before it routes
			}
		}
		scheduler, err := route(pod)
		if err != nil {
			return problem.WithHint(fmt.Errorf("%s %s/%s: %w", w.Kind, w.Namespace, w.Name, err), nameIt)
		}
		if scheduler != "" {
			w.SetScheduler(scheduler)
			asked.Notes = append(asked.Notes, fmt.Sprintf("%s %s/%s: a route gives its pods the scheduler %s", w.Kind,
				w.Namespace, w.Name, scheduler))
		}
	}
	return nil
}

func namesNone(w *scenario.Workload) bool { return w.Scheduler() == corev1.DefaultSchedulerName }
