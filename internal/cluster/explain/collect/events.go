package collect

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// listEvents lists events of the pod's namespace, the last one first.
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

// events reads the events of the pod.
func (r *reader) events(ctx context.Context) (err error) {
	r.in.Events, err = r.listEvents(ctx, "involvedObject.kind=Pod,involvedObject.name="+r.in.Name)
	r.in.Events = slices.DeleteFunc(r.in.Events, func(e corev1.Event) bool { return e.InvolvedObject.UID != r.in.Pod.UID })
	return err
}

// refusals reads the events of the workloads that may not create the pod. The pod is named after
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
