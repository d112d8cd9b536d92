package preemption

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// landings places one pod after the other, each in the snapshot's state: the pod is removed
// afterwards, and its victims are created again.
type landings struct {
	r       *simulate.Run
	cluster *cluster
	// pods are the pods with a node, by namespace and name, and their nodes. Leaving are the pods that
	// are being deleted in the snapshot, and holding counts the pods that take room.
	pods    map[string]string
	leaving map[string]bool
	holding int
}

// cacheRefresh is longer than the time after which a scheduler updates its cache's metrics
// (pkg/scheduler/backend/cache/cache.go, earlier internal/cache: each second).
const cacheRefresh = 1100 * time.Millisecond

// landingInterval is the interval at which a landing pod is read.
const landingInterval = 20 * time.Millisecond

func newLandings(ctx context.Context, r *simulate.Run, cluster *cluster) (*landings, error) {
	l := &landings{r: r, cluster: cluster, pods: map[string]string{}, leaving: map[string]bool{}}
	return l, r.EachPod(ctx, "spec.nodeName!=", func(pod *corev1.Pod) error {
		key := pod.Namespace + "/" + pod.Name
		l.pods[key], l.leaving[key] = pod.Spec.NodeName, pod.DeletionTimestamp != nil
		if simulate.HoldsNode(pod) {
			l.holding++
		}
		return nil
	})
}

// land has the scheduler place a pod of a class, the index-th one.
func (l *landings) land(
	ctx context.Context, index int, class *Class, requests corev1.ResourceList, budgets []Budget,
) (*Landing, error) {
	landing := &Landing{Class: class.Name, Requests: map[string]string{}, Evicted: []Victim{}}
	if len(requests) == 0 {
		requests, landing.Pods = l.cluster.requests(class.Name)
	}
	for name, quantity := range requests {
		landing.Requests[string(name)] = quantity.String()
	}
	pod := l.newPod(index, class, landing.Requests)
	l.r.UseProfile(pod)
	if err := l.r.CreatePod(ctx, pod); err != nil {
		return nil, err
	}
	_, name := scenario.NameOf(pod)
	decided, err := l.await(ctx, name)
	if err != nil {
		return nil, err
	}
	if landing.Node = decided.Spec.NodeName; landing.Node == "" {
		landing.Reason = simulate.Reason(decided)
	}
	var gone []string
	if landing.Node != "" || decided.Status.NominatedNodeName != "" {
		if gone, err = l.missing(ctx); err != nil {
			return nil, err
		}
	}
	for _, key := range gone {
		namespace, victim, _ := strings.Cut(key, "/")
		landing.Evicted = append(landing.Evicted, l.cluster.victim(namespace, victim, l.pods[key], budgets))
	}
	return landing, l.restore(ctx, pod, landing.Node != "", gone)
}

// newPod returns a pod of a class without any constraint but its requests.
func (l *landings) newPod(index int, class *Class, requests map[string]string) map[string]any {
	name := "landing-" + strconv.Itoa(index)
	for l.r.HasPod(metav1.NamespaceDefault + "/" + name) {
		name += "-x"
	}
	given := map[string]any{}
	for resource, quantity := range requests {
		given[resource] = quantity
	}
	resources := map[string]any{"requests": given}
	for resource := range given {
		if strings.Contains(resource, "/") { // extended resources have equal limits
			resources["limits"] = given
		}
	}
	spec := map[string]any{
		"containers": []any{map[string]any{"name": "main", "image": "landing", "resources": resources}},
		"priority":   json.Number(strconv.Itoa(int(class.Value))),
	}
	if class.Name != NoClass {
		spec["priorityClassName"] = class.Name
	}
	if class.Never {
		spec["preemptionPolicy"] = string(corev1.PreemptNever)
	}
	return scenario.MarkCreated(map[string]any{ // with the priority of its class, whatever the defaults
		"apiVersion": "v1", "kind": "Pod", "spec": spec,
		"metadata": map[string]any{"namespace": metav1.NamespaceDefault, "name": name},
	})
}

// await waits until the scheduler has decided about a pod: it is bound, or refused without a
// nomination, or the scheduler waits for something that does not happen here.
func (l *landings) await(ctx context.Context, name string) (*corev1.Pod, error) {
	idle, next := 0, time.Now().Add(kubescheduler.PollInterval)
	for {
		pod, err := l.r.Pod(ctx, metav1.NamespaceDefault, name)
		if err != nil {
			return nil, err
		}
		if pod.Spec.NodeName != "" {
			return pod, nil
		}
		refused := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
		})
		if refused && pod.Status.NominatedNodeName == "" || idle >= kubescheduler.StablePolls {
			return pod, nil
		}
		if err := l.r.Scheduler.Ended(); err != nil {
			return nil, err
		}
		if refused && time.Now().After(next) {
			next = time.Now().Add(kubescheduler.PollInterval)
			if idle++; !l.r.Scheduler.IsIdle(ctx) {
				idle = 0
			}
		}
		if err := clock.Sleep(ctx, landingInterval); err != nil {
			return nil, problem.Errorf("allow more with --timeout", "wait for the scheduler: %w", err)
		}
	}
}

// missing returns the pods with a node that are there no more. It waits until those have ended that
// the scheduler evicts: the pod may be bound when the first of them has made enough room.
func (l *landings) missing(ctx context.Context) ([]string, error) {
	for {
		gone, ending, err := l.compare(ctx)
		if err != nil || !ending {
			return gone, err
		}
		if err := clock.Sleep(ctx, landingInterval); err != nil {
			return nil, fmt.Errorf("wait for evicted pods: %w", err)
		}
	}
}

// compare returns the pods with a node that are there no more, and whether others are being
// evicted.
func (l *landings) compare(ctx context.Context) (gone []string, ending bool, err error) {
	left := map[string]bool{}
	err = l.r.EachPodMetadata(ctx, func(o *metav1.ObjectMeta) {
		key := o.Namespace + "/" + o.Name
		left[key] = true
		ending = ending || o.DeletionTimestamp != nil && !l.leaving[key]
	})
	if err != nil {
		return nil, false, err
	}
	for key := range l.pods {
		if !left[key] {
			gone = append(gone, key)
		}
	}
	slices.SortFunc(gone, cmp.Compare)
	return gone, ending, nil
}

// restore removes the pod and creates its victims again.
func (l *landings) restore(ctx context.Context, pod map[string]any, placed bool, gone []string) error {
	if err := l.r.DeletePod(ctx, pod); err != nil {
		return err
	}
	if len(gone) > 0 {
		err := l.r.Options.Snapshot.Each(func(kind *snapshot.Kind, version string, o map[string]any) error {
			if kind.Name != "Pod" {
				return nil
			}
			key, err := kind.Key(o)
			if err != nil || !slices.Contains(gone, key) {
				return err
			}
			if o, _, err = l.r.Admit(ctx, kind, version, o); err != nil {
				return err
			}
			o, _ = l.r.Options.Scenario.Apply(kind, o)
			return l.r.Loader.Create(ctx, kind, version, o)
		})
		if err != nil {
			return err
		}
	}
	if !placed && len(gone) == 0 {
		return nil
	}
	if err := clock.Sleep(ctx, cacheRefresh); err != nil {
		return err
	}
	return l.r.Scheduler.AwaitCache(ctx, l.r.NodeCount(), l.holding)
}
