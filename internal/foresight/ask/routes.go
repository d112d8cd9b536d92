package ask

import (
	"context"
	"fmt"
	"slices"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	registrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/suspension"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// nameIt is what to do about pods whose route cannot be told.
const nameIt = "name the scheduler with --scheduler"

// labelsOf returns the labels of a namespace.
type labelsOf func(namespace string) (labels.Set, error)

// applyRoutes gives the pods of a question that name no scheduler the one that a route of the
// cluster gives such new pods, and notes it.
func applyRoutes(ctx context.Context, cluster dynamic.Interface, asked *scenario.Scenario) error {
	if !slices.ContainsFunc(asked.Workloads, func(w scenario.Workload) bool { return namesNone(&w) }) {
		return nil
	}
	rules, err := readRoutes(ctx, cluster)
	if err != nil {
		return problem.WithHint(err, nameIt)
	}
	return applyRules(rules, asked, func(namespace string) (labels.Set, error) {
		namespaces := cluster.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
		o, err := namespaces.Get(ctx, namespace, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil // one that is made has no labels but its name
		case err != nil:
			return nil, problem.WithHint(fmt.Errorf("read the labels of namespace %s: %w", namespace, err), nameIt)
		}
		return o.GetLabels(), nil
	})
}

// applyRules applies rules in their order: a pod that one has routed names a scheduler.
func applyRules(rules []route.Rule, asked *scenario.Scenario, of labelsOf) error {
	for i := range asked.Workloads {
		w := &asked.Workloads[i]
		for _, rule := range rules {
			if !namesNone(w) {
				break
			}
			routed, err := routes(rule, w, of)
			if err != nil {
				return err
			}
			if routed {
				w.SetScheduler(rule.Scheduler)
				asked.Notes = append(asked.Notes, fmt.Sprintf("%s %s/%s: a route gives its pods the scheduler %s", w.Kind,
					w.Namespace, w.Name, rule.Scheduler))
			}
		}
	}
	return nil
}

func namesNone(w *scenario.Workload) bool { return w.Scheduler() == corev1.DefaultSchedulerName }

// readRoutes returns the rules of the routes that are not suspended, in the order in which API
// servers apply them: policies first, then webhooks, each by name.
func readRoutes(ctx context.Context, cluster dynamic.Interface) ([]route.Rule, error) {
	var rules []route.Rule
	seen := map[string]bool{}
	for _, resource := range []struct{ version, name string }{
		{registrationv1.SchemeGroupVersion.Version, "mutatingadmissionpolicies"},
		{registrationv1beta1.SchemeGroupVersion.Version, "mutatingadmissionpolicies"},
		{registrationv1.SchemeGroupVersion.Version, "mutatingwebhookconfigurations"},
	} {
		kind := registrationv1.SchemeGroupVersion.WithResource(resource.name)
		kind.Version = resource.version
		list, err := cluster.Resource(kind).List(ctx,
			metav1.ListOptions{LabelSelector: ownership.LabelManagedBy + "=" + ownership.Manager})
		if apierrors.IsNotFound(err) {
			continue // not served
		}
		if err != nil {
			return nil, fmt.Errorf("list the routes (%s): %w", kind.Resource, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			key := kind.Resource + "/" + o.GetName()
			_, suspended := suspension.Since(o)
			if o.GetAnnotations()[route.AnnotationRule] == "" || suspended || seen[key] {
				continue
			}
			rule, err := route.Decode(o.GetAnnotations())
			if err != nil {
				return nil, fmt.Errorf("read the route %s: %w", o.GetName(), err)
			}
			rules, seen[key] = append(rules, rule), true
		}
	}
	return rules, nil
}

// routes reports whether a rule routes the pods of a workload. It returns an error if the rule
// routes a share of such workloads: their UIDs decide.
func routes(rule route.Rule, w *scenario.Workload, of labelsOf) (bool, error) {
	share := rule.Route.ShareOrDefault()
	whole := rule
	whole.Route.Share = nil
	selected, err := selects(whole, w, of)
	switch {
	case err != nil || !selected || share == v1alpha1.WholeShare:
		return selected, err
	case share == 0 || w.Kind == "Pod": // without a controller a pod is in no share
		return false, nil
	}
	return false, problem.Invalidf(nameIt, "the route to scheduler %s takes %d %% of the workloads like %s %s/%s",
		rule.Scheduler, share, w.Kind, w.Namespace, w.Name)
}

func selects(rule route.Rule, w *scenario.Workload, of labelsOf) (bool, error) {
	pod := &corev1.Pod{}
	if err := snapshot.Convert(w.Template(), pod); err != nil {
		return false, problem.Invalidf("", "%s %s/%s: %w", w.Kind, w.Namespace, w.Name, err)
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			setRequests(&containers[i].Resources) // the API server does before it routes
		}
	}
	var namespace labels.Set
	if rule.Route.NamespaceSelector != nil {
		var err error
		if namespace, err = of(w.Namespace); err != nil {
			return false, err
		}
	}
	selected, err := rule.Selects(w.Namespace, namespace, pod)
	if err != nil {
		return false, fmt.Errorf("read the route to scheduler %s: %w", rule.Scheduler, err)
	}
	return selected, nil
}
