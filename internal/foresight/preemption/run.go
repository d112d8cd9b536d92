package preemption

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// Request describes the scheduler and the objects.
type Request struct {
	simulate.Input
	// Requests of the pods that are tried. If it is empty, these are typical for each class's pods.
	Requests corev1.ResourceList
}

// Run returns who can evict whom, and has the scheduler place a pod in each class. The cluster is
// only read, and not at all with a file.
func Run(ctx context.Context, s *session.Session, r Request) (result *Result, err error) {
	in, err := r.Open(ctx, s, "preemptions")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	o := simulate.Options{Snapshot: in.Snapshot, Timeout: r.Timeout}
	server, err := in.Servers.Prepare(ctx, in.Programs, &o)
	if err != nil {
		return nil, err
	}
	if result, err = runOn(ctx, server, o, r.Requests); err != nil {
		return nil, err
	}
	result.Programs = in.Programs.Origins
	for _, skipped := range in.Snapshot.Header.Skipped {
		switch skipped.Resource {
		case "priorityclasses.scheduling.k8s.io", "poddisruptionbudgets.policy", "replicasets.apps":
			result.Unknown = append(result.Unknown, "the snapshot has no "+skipped.Resource+": "+skipped.Reason)
		}
	}
	result.Notes = append(result.Notes, simulate.ConsistencyNotes(in.Snapshot.Header)...)
	return result, nil
}

// runOn runs the scheduler in the options on their objects, and has it place a pod in each class,
// each in the snapshot's state. Pods have the given requests or, if there are none, those of a
// typical pod in the class.
func runOn(
	ctx context.Context, server *simulate.Server, o simulate.Options, requests corev1.ResourceList,
) (*Result, error) {
	cluster, err := readCluster(o.Snapshot)
	if err != nil {
		return nil, err
	}
	result := cluster.analyze()
	o.Scenario = scenario.Running()
	o.Scenario.Name = "preemptions"
	o.Observer = &lander{cluster: cluster, result: result, requests: requests}
	report, err := server.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	result.Release, result.Scheduler = report.Release, report.Scheduler
	result.Notes = append(result.Notes, report.Notes...)
	return result, nil
}

// lander has the scheduler place a pod in each class.
type lander struct {
	simulate.Unobserved
	cluster  *cluster
	result   *Result
	requests corev1.ResourceList
}

// Scheduled adds the landings to the result.
func (a *lander) Scheduled(ctx context.Context, r *simulate.Run) error {
	ctx, cancel := r.Bounded(ctx)
	defer cancel()
	l, err := newLandings(ctx, r, a.cluster)
	if err != nil {
		return err
	}
	for i := range a.result.Classes {
		landing, err := l.land(ctx, i, &a.result.Classes[i], a.requests, a.result.Budgets)
		if err != nil {
			return err
		}
		a.result.Landings = append(a.result.Landings, *landing)
	}
	return nil
}

// readCluster reads the objects that decide about evictions.
func readCluster(objects capture.Objects) (*cluster, error) {
	c := &cluster{}
	err := objects.Each(func(kind *snapshot.Kind, version string, o map[string]any) error {
		switch kind.GroupResource() {
		case "priorityclasses.scheduling.k8s.io":
			class := &schedulingv1.PriorityClass{}
			if err := snapshot.Convert(o, class); err != nil {
				return err
			}
			c.addClass(class)
		case "poddisruptionbudgets.policy":
			budget := &policyv1.PodDisruptionBudget{}
			if err := snapshot.Convert(o, budget); err != nil {
				return err
			}
			c.addBudget(budget, version == "v1beta1")
		case "replicasets.apps":
			owned := &metav1.PartialObjectMetadata{}
			if err := snapshot.Convert(o, owned); err != nil {
				return err
			}
			c.addReplicaSet(&owned.ObjectMeta)
		case "pods":
			pod := &corev1.Pod{}
			if err := snapshot.Convert(o, pod); err != nil {
				return err
			}
			c.addPod(pod)
		}
		return nil
	})
	return c, err
}
