package simulate

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/foresight/preemption"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// landings places one pod after the other, each in the snapshot's state: the pod is removed
// afterwards, and its victims are created again.
type landings struct {
	r        *run
	s        *scheduler
	cluster  *preemption.Cluster
	kube     kubernetes.Interface
	metadata metadata.Interface
	// pods are the pods with a node, by namespace and name, and their nodes. Leaving are the pods that
	// are being deleted in the snapshot, and holding counts the pods that take room.
	pods    map[string]string
	leaving map[string]bool
	holding int
}

// cacheRefresh is longer than the time after which a scheduler updates its cache's metrics
// (pkg/scheduler/backend/cache/cache.go, earlier internal/cache: each second).
const cacheRefresh = 1100 * time.Millisecond

func newLandings(ctx context.Context, r *run, s *scheduler, cluster *preemption.Cluster) (l *landings, err error) {
	l = &landings{r: r, s: s, cluster: cluster, pods: map[string]string{}, leaving: map[string]bool{}}
	if l.kube, err = kubernetes.NewForConfig(r.server.Config()); err != nil {
		return nil, err
	}
	if l.metadata, err = metadata.NewForConfig(r.server.Config()); err != nil {
		return nil, err
	}
	bound := metav1.ListOptions{FieldSelector: "spec.nodeName!=", Limit: pageSize}
	for page, err := range kubeapi.Pages(ctx, l.kube.CoreV1().Pods(metav1.NamespaceAll).List, bound) {
		if err != nil {
			return nil, kubeapi.Explain("read the pods", err)
		}
		for i := range page.Items {
			pod := &page.Items[i]
			key := pod.Namespace + "/" + pod.Name
			l.pods[key], l.leaving[key] = pod.Spec.NodeName, pod.DeletionTimestamp != nil
			if holdsNode(pod) {
				l.holding++
			}
		}
	}
	return l, nil
}

// land has the scheduler place a pod of a class, the index-th one.
func (l *landings) land(
	ctx context.Context, index int, class *preemption.Class, requests corev1.ResourceList, budgets []preemption.Budget,
) (*preemption.Landing, error) {
	landing := &preemption.Landing{Class: class.Name, Requests: map[string]string{}, Evicted: []preemption.Victim{}}
	if len(requests) == 0 {
		requests, landing.Pods = l.cluster.Requests(class.Name)
	}
	for name, quantity := range requests {
		landing.Requests[string(name)] = quantity.String()
	}
	pod := l.newPod(index, class, landing.Requests)
	scenario.UseProfile(pod, l.s.profiles, l.r.o.Scheduler.Request.Name)
	if err := l.r.createPod(ctx, pod); err != nil {
		return nil, err
	}
	_, name := scenario.NameOf(pod)
	decided, err := l.await(ctx, name)
	if err != nil {
		return nil, err
	}
	if landing.Node = decided.Spec.NodeName; landing.Node == "" {
		landing.Reason = reason(decided)
	}
	var gone []string
	if landing.Node != "" || decided.Status.NominatedNodeName != "" {
		if gone, err = l.missing(ctx); err != nil {
			return nil, err
		}
	}
	for _, key := range gone {
		namespace, victim, _ := strings.Cut(key, "/")
		landing.Evicted = append(landing.Evicted, l.cluster.Victim(namespace, victim, l.pods[key], budgets))
	}
	return landing, l.restore(ctx, name, landing.Node != "", gone)
}

// newPod returns a pod of a class without any constraint but its requests.
func (l *landings) newPod(index int, class *preemption.Class, requests map[string]string) map[string]any {
	name := "landing-" + strconv.Itoa(index)
	for l.r.pods[metav1.NamespaceDefault+"/"+name] {
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
	if class.Name != preemption.NoClass {
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
	idle, next := 0, time.Now().Add(pollInterval)
	for {
		pod, err := l.kube.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, kubeapi.Explain("read pod "+metav1.NamespaceDefault+"/"+name, err)
		}
		if pod.Spec.NodeName != "" {
			return pod, nil
		}
		refused := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
		})
		if refused && pod.Status.NominatedNodeName == "" || idle >= stablePolls {
			return pod, nil
		}
		select {
		case <-l.s.process.Done():
			return nil, fmt.Errorf("the scheduler ended: %s", l.s.process.Tail())
		default:
		}
		if refused && time.Now().After(next) {
			next = time.Now().Add(pollInterval)
			text, err := l.s.read(ctx)
			if m := parseMetrics(text, l.s.cacheSize); err == nil && m.active == 0 {
				idle++
			} else {
				idle = 0
			}
		}
		if err := clock.Sleep(ctx, probeInterval); err != nil {
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
		if err := clock.Sleep(ctx, probeInterval); err != nil {
			return nil, fmt.Errorf("wait for evicted pods: %w", err)
		}
	}
}

// compare returns the pods with a node that are there no more, and whether others are being
// evicted.
func (l *landings) compare(ctx context.Context) (gone []string, ending bool, err error) {
	left := map[string]bool{}
	pods := l.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	for page, err := range kubeapi.Pages(ctx, pods.List, metav1.ListOptions{Limit: pageSize}) {
		if err != nil {
			return nil, false, kubeapi.Explain("read the pods", err)
		}
		for i := range page.Items {
			key := page.Items[i].Namespace + "/" + page.Items[i].Name
			left[key] = true
			ending = ending || page.Items[i].DeletionTimestamp != nil && !l.leaving[key]
		}
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
func (l *landings) restore(ctx context.Context, name string, placed bool, gone []string) error {
	now := int64(0)
	err := l.kube.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name,
		metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		return kubeapi.Explain("delete pod "+metav1.NamespaceDefault+"/"+name, err)
	}
	if len(gone) > 0 {
		err := l.r.o.Snapshot.Each(func(kind *snapshot.Kind, version string, o map[string]any) error {
			if kind.Name != "Pod" {
				return nil
			}
			key, err := kind.Key(o)
			if err != nil || !slices.Contains(gone, key) {
				return err
			}
			if o, _, err = l.r.admit(ctx, kind, version, o); err != nil {
				return err
			}
			o, _ = l.r.o.Scenario.Apply(kind, o)
			return l.r.loader.Create(ctx, kind, version, o)
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
	return l.s.awaitCache(ctx, l.r.usage.Nodes, l.holding)
}
