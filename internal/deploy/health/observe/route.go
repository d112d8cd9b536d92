package observe

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/suspension"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

// readRoute reads the route that the deployed revision registers: the pods that got the scheduler
// by it, whether it is suspended, and whether a controller ends it if the scheduler is lost.
func (w *workload) readRoute(ctx context.Context, o Options) {
	if w.recorded == nil {
		return
	}
	at := slices.IndexFunc(w.recorded.Objects, func(o *unstructured.Unstructured) bool {
		return route.IsRegistration(o.GetKind())
	})
	if at < 0 {
		return
	}
	registration, found := w.recorded.Objects[at], &health.Route{Share: v1alpha1.WholeShare}
	if rule, err := route.Decode(registration.GetAnnotations()); err == nil {
		found.Share = rule.Route.ShareOrDefault()
	}
	found.Rollout = rolloutOf(w.recorded, found.Share)
	live, err := o.Objects.Live(ctx, registration)
	w.requests = append(w.requests, request{"read " + registration.GetKind() + "/" + registration.GetName(), err})
	if err == nil && live != nil {
		found.SuspendedSince, found.Suspended = suspension.Since(live)
	}
	guarded, err := isGuarded(ctx, o)
	w.requests = append(w.requests, request{"find the controller that ends routes", err})
	found.Unguarded = err == nil && !guarded
	found.Bound, found.Waiting, err = countRouted(ctx, o, w.Name)
	w.requests = append(w.requests, request{"count the pods that were routed to " + w.who, err})
	if err == nil {
		w.route = found
	}
}

// rolloutOf returns the rollout that has set the share of a revision, or nil.
func rolloutOf(revision *apply.Revision, share int) *health.Rollout {
	installed, err := deploy.ReadInstalled(revision)
	if err != nil || installed.Request.Spec.Rollout == nil || installed.Request.Spec.Rollout.State == nil {
		return nil
	}
	rollout := installed.Request.Spec.Rollout
	found := &health.Rollout{Verdict: rollout.State.Verdict, Reason: rollout.State.Reason}
	found.Step, found.Steps = rollout.Position(share)
	for _, gate := range rollout.GatesOrDefault() {
		found.Gates = append(found.Gates, gate.String())
	}
	return found
}

// countRouted counts the pods that a route gave the scheduler, with a node and without one.
func countRouted(ctx context.Context, o Options, scheduler string) (bound, waiting int, err error) {
	options := metav1.ListOptions{FieldSelector: "spec.schedulerName=" + scheduler, Limit: pageSize}
	for page, err := range kubeapi.Pages(ctx, o.Kube.CoreV1().Pods(metav1.NamespaceAll).List, options) {
		if err != nil {
			return 0, 0, err
		}
		for i := range page.Items {
			pod := &page.Items[i]
			switch {
			case pod.Annotations[route.Annotation] != scheduler:
			case pod.Spec.NodeName != "":
				bound++
			case pod.Status.Phase == corev1.PodPending:
				waiting++
			}
		}
	}
	return bound, waiting, nil
}

// isGuarded reports whether a controller runs that ends routes to schedulers that are lost.
func isGuarded(ctx context.Context, o Options) (bool, error) {
	options := metav1.ListOptions{LabelSelector: ownership.LabelName + "=" + ownership.Controller}
	list, err := o.Kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, options)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool {
		return d.Status.AvailableReplicas > 0 && slices.ContainsFunc(d.Spec.Template.Spec.Containers, endsRoutes)
	}), nil
}

func endsRoutes(c corev1.Container) bool {
	return slices.ContainsFunc(c.Args, func(arg string) bool {
		parts, found := strings.CutPrefix(arg, "--admission=")
		return found && slices.Contains(strings.Split(parts, ","), "route")
	})
}
