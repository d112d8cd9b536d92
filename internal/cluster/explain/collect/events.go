package collect

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// listEvents lists events in the pod's namespace, the last one first.
func (r *reader) listEvents(ctx context.Context, selector string) (events []corev1.Event, err error) {
	options, client := metav1.ListOptions{FieldSelector: selector}, r.kube.CoreV1().Events(r.in.Namespace)
	for list, listErr := range pages(ctx, r, "events in namespace "+r.in.Namespace, client.List, options) {
		if err = listErr; err == nil {
			events = append(events, list.Items...)
		}
	}
	slices.SortStableFunc(events,
		func(a, b corev1.Event) int { return kubeapi.EventTime(&b).Compare(kubeapi.EventTime(&a)) })
	return events, err
}

// events reads the events about the pod, and about former pods with its name.
func (r *reader) events(ctx context.Context) (err error) {
	events, err := r.listEvents(ctx, "involvedObject.kind=Pod,involvedObject.name="+r.in.Name)
	for _, e := range events {
		switch uid := e.InvolvedObject.UID; {
		case uid == r.in.Pod.UID:
			r.in.Events = append(r.in.Events, e)
		case uid != "" || kubeapi.EventTime(&e).Before(r.in.Pod.CreationTimestamp.Time): // of the taint manager: without
			r.in.Ended = append(r.in.Ended, e)
		default:
			r.in.Events = append(r.in.Events, e)
		}
	}
	if err != nil || len(r.in.Ended) == 0 {
		return err
	}
	deleted, err := r.listEvents(ctx, "reason=SuccessfulDelete") // about its controller
	for _, e := range deleted {
		if explain.PodOf(&e) == r.in.Name && !kubeapi.EventTime(&e).After(r.in.Pod.CreationTimestamp.Time) {
			r.in.Ended = append(r.in.Ended, e)
		}
	}
	return err
}

// preemptors names the pods that evicted others where the events have only their UIDs. Most
// preemptors run on the node with the eviction.
func (r *reader) preemptors(ctx context.Context) error {
	read, found := map[string]bool{}, map[types.UID]*corev1.ObjectReference{}
	for i := range r.in.Ended {
		e := &r.in.Ended[i]
		name, uid, node := explain.Preemptor(e)
		if e.Reason != "Preempted" || name != "" || uid == "" || node == "" {
			continue
		}
		if !read[node] {
			read[node] = true
			onNode := metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}
			for list, err := range pages(ctx, r, "pods", r.kube.CoreV1().Pods(metav1.NamespaceAll).List, onNode) {
				if err != nil {
					return err
				}
				for j := range list.Items {
					pod := &list.Items[j]
					found[pod.UID] = &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
				}
			}
		}
		e.Related = cmp.Or(found[uid], e.Related)
	}
	return nil
}

// ended reads the events about the ends of pods that are named like the missing pod, or like pods
// in a workload with that name.
func (r *reader) ended(ctx context.Context) error {
	events, err := r.listEvents(ctx, "involvedObject.kind=Pod,involvedObject.name="+r.in.Name)
	if err != nil {
		return err
	}
	seen := map[types.UID]bool{}
	add := func(e corev1.Event) {
		if !seen[e.UID] || e.UID == "" {
			seen[e.UID] = true
			r.in.Ended = append(r.in.Ended, e)
		}
	}
	for _, e := range events {
		add(e)
	}
	for _, reason := range explain.EvictionReasons() {
		events, err := r.listEvents(ctx, "reason="+reason)
		if err != nil {
			return err
		}
		for _, e := range events {
			pod := explain.PodOf(&e)
			if pod == r.in.Name || strings.HasPrefix(pod, r.in.Name+"-") {
				add(e)
			}
		}
	}
	slices.SortStableFunc(r.in.Ended,
		func(a, b corev1.Event) int { return kubeapi.EventTime(&b).Compare(kubeapi.EventTime(&a)) })
	return nil
}

// refusals reads the events about the workloads that may not create the pod. The pod is named after
// the workload, after a workload that it owns (a Deployment's ReplicaSets), or after one of its
// pods.
func (r *reader) refusals(ctx context.Context) error {
	events, err := r.listEvents(ctx, "reason=FailedCreate")
	for _, e := range events {
		owner := e.InvolvedObject.Name
		if owner == r.in.Name || strings.HasPrefix(owner, r.in.Name+"-") || strings.HasPrefix(r.in.Name, owner+"-") {
			r.in.Events = append(r.in.Events, e)
		}
	}
	return err
}
