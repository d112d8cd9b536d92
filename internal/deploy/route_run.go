package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/suspension"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

// registrations returns the objects that route pods to a scheduler, and the others.
func registrations(objects []*unstructured.Unstructured) (routing, others []*unstructured.Unstructured) {
	for _, o := range objects {
		if route.IsRegistration(o.GetKind()) {
			routing = append(routing, o)
		} else {
			others = append(others, o)
		}
	}
	return routing, others
}

// routePods registers the route, once the scheduler that it leads to is stable. A suspended route
// acts again.
func (d *deployRun) routePods(ctx context.Context) error {
	if err := d.endSuspension(ctx); err != nil {
		return err
	}
	routing, _ := registrations(d.plan.Objects)
	changes, err := d.Cluster.Apply(ctx, routing)
	d.outcome.Changes = append(d.outcome.Changes, changes...)
	if err != nil || d.ProveRoute == nil {
		return err
	}
	rule, err := route.Decode(routing[0].GetAnnotations())
	if err != nil {
		return err
	}
	note, err := d.ProveRoute(ctx, rule)
	if err == nil && d.Note != nil {
		d.Note(note)
	}
	return err
}

// endSuspension removes suspended registrations: applying them again would keep them suspended.
func (d *deployRun) endSuspension(ctx context.Context) error {
	owned, err := d.Cluster.Owned(ctx, d.plan.Name, d.plan.Namespace)
	if err != nil {
		return err
	}
	routing, _ := registrations(owned)
	for _, o := range routing {
		if _, suspended := suspension.Since(o); suspended {
			_, err := d.Cluster.Delete(ctx, routing)
			return err
		}
	}
	return nil
}

// endRoute removes the registrations of a route, so that no new pod gets the scheduler, and waits
// until no routed pod waits for it.
func (u *uninstallRun) endRoute(ctx context.Context) error {
	owned, err := u.Cluster.Owned(ctx, u.name, u.namespace)
	if err != nil {
		return err
	}
	routing, _ := registrations(owned)
	// Owned leaves out registrations that this user may not list, and this user's uninstall must not.
	if last, err := u.Cluster.LastDeployed(ctx, u.namespace, u.name); err == nil && last != nil && len(routing) == 0 {
		routing, _ = registrations(last.Objects)
	}
	if len(routing) == 0 {
		return nil
	}
	changes, err := u.Cluster.Delete(ctx, routing)
	u.changes = append(u.changes, changes...)
	if err != nil || u.Config == nil {
		return err
	}
	return u.awaitRouted(ctx)
}

// awaitRouted waits until no routed pod waits for the scheduler.
func (u *uninstallRun) awaitRouted(ctx context.Context) error {
	kube, err := kubernetes.NewForConfig(u.Config)
	if err != nil {
		return fmt.Errorf("create client for %s: %w", u.Config.Host, err)
	}
	for {
		waiting, err := waitingRouted(ctx, kube, u.name)
		if err != nil || len(waiting) == 0 {
			return err
		}
		if clock.Sleep(ctx, routePoll) != nil {
			some := strings.Join(waiting[:min(len(waiting), 3)], ", ")
			return problem.Errorf("delete them: controllers create them again for the default scheduler; then run uninstall again",
				"the route is removed, but %s for scheduler %s, such as %s",
				plural.Phrase(len(waiting), "routed pod still waits", "routed pods still wait"), u.name, some)
		}
	}
}

// waitingRouted returns the names of the pods that were routed to a scheduler and have no node.
func waitingRouted(ctx context.Context, kube kubernetes.Interface, scheduler string) (names []string, err error) {
	options := metav1.ListOptions{FieldSelector: "spec.nodeName=,spec.schedulerName=" + scheduler}
	for page, err := range kubeapi.Pages(ctx, kube.CoreV1().Pods(metav1.NamespaceAll).List, options) {
		if err != nil {
			return nil, fmt.Errorf("list the pods that wait for scheduler %s: %w", scheduler, err)
		}
		for i := range page.Items {
			pod := &page.Items[i]
			waits := pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil
			if waits && pod.Annotations[route.Annotation] == scheduler {
				names = append(names, pod.Namespace+"/"+pod.Name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}
