package deploy

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

const (
	// routePoll is the time between two looks at a route.
	routePoll = 500 * time.Millisecond
	// routeTime is how long a new route may take to act: the API server has to see it, and
	// `pmk-sched controller` has to give a webhook its certificate authority.
	routeTime = 30 * time.Second
)

// routeProver returns [Deps.ProveRoute]: it creates a pod that the route selects, as a dry run,
// until the pod has the scheduler.
func routeProver(cfg *rest.Config) func(context.Context, route.Rule) (string, error) {
	return func(ctx context.Context, rule route.Rule) (string, error) {
		if rule.Route.ShareOrDefault() == 0 {
			return "the route is registered, and routes no pod: its share is 0", nil
		}
		kube, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			return "", fmt.Errorf("create client for %s: %w", cfg.Host, err)
		}
		namespace, err := routedNamespace(ctx, kube, rule)
		if err != nil {
			return "", err
		}
		if namespace == "" {
			return "the route is not proven: it selects no namespace that exists", nil
		}
		return proveRoute(ctx, kube, rule, routedPod(rule, namespace))
	}
}

func proveRoute(ctx context.Context, kube kubernetes.Interface, rule route.Rule, pod *corev1.Pod) (string, error) {
	limited, cancel := context.WithTimeout(ctx, routeTime)
	defer cancel()
	for {
		made, err := kube.CoreV1().Pods(pod.Namespace).Create(limited, pod,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
			return fmt.Sprintf("the route is not proven: the API server refuses a pod in namespace %s: %v", pod.Namespace, err),
				nil
		case err == nil && made.Spec.SchedulerName == rule.Scheduler:
			return fmt.Sprintf("the route is proven: a new pod in namespace %s gets scheduler %s", pod.Namespace,
				rule.Scheduler), nil
		}
		if clock.Sleep(limited, routePoll) == nil {
			continue
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			return "", fmt.Errorf("create a pod in namespace %s as a dry run: %w", pod.Namespace, err)
		}
		return "", problem.Errorf("a webhook of pmk-sched needs `pmk-sched controller`, and an API server that reaches its "+
			"Service; see the logs of Deployment "+route.Service,
			"the route does not act: after %s a new pod in namespace %s gets scheduler %s", routeTime, pod.Namespace,
			made.Spec.SchedulerName)
	}
}

// routedNamespace returns a namespace whose pods the route selects, or "".
func routedNamespace(ctx context.Context, kube kubernetes.Interface, rule route.Rule) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(rule.Route.NamespaceSelector.Selector())
	if err != nil {
		return "", fmt.Errorf("read the route of scheduler %s: %w", rule.Scheduler, err)
	}
	options := metav1.ListOptions{LabelSelector: selector.String()}
	for page, err := range kubeapi.Pages(ctx, kube.CoreV1().Namespaces().List, options) {
		if apierrors.IsForbidden(err) && len(rule.Route.Namespaces) > 0 {
			return rule.Route.Namespaces[0], nil
		}
		if err != nil {
			return "", fmt.Errorf("find a namespace of the route: %w", err)
		}
		for i := range page.Items {
			ns := &page.Items[i]
			if ns.DeletionTimestamp == nil && rule.Routes(ns.Name, routedPod(rule, ns.Name)) {
				return ns.Name, nil
			}
		}
	}
	return "", nil
}

// routedPod returns a pod that the route selects and the restricted pod security level accepts.
func routedPod(rule route.Rule, namespace string) *corev1.Pod {
	no := false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pmk-sched-route-" + rule.Scheduler, Namespace: namespace,
			Labels: matching(rule.Route.PodSelector.Selector())},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &no, SecurityContext: ownership.ConfinedAs(65532),
			Containers: []corev1.Container{{Name: "pause", Image: "localhost/pause", SecurityContext: ownership.Confined()}},
		},
	}
	if rule.Route.ShareOrDefault() < v1alpha1.WholeShare {
		pod.OwnerReferences = []metav1.OwnerReference{route.SharedOwner()}
	}
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"),
		corev1.ResourceMemory: resource.MustParse("1Mi")}
	if len(rule.Route.Resources) > 0 {
		if name := corev1.ResourceName(rule.Route.Resources[0]); amounts.Name(name, "").IsZero() {
			amounts[name] = resource.MustParse("1")
		}
	}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amounts, Limits: amounts}
	return pod
}

// matching returns labels that a selector matches.
func matching(s *metav1.LabelSelector) map[string]string {
	made := labels.Set{}
	for _, e := range s.MatchExpressions {
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			made[e.Key] = slices.Min(e.Values)
		case metav1.LabelSelectorOpExists:
			made[e.Key] = ""
		case metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpDoesNotExist: // a pod without the label matches
		}
	}
	for key, value := range s.MatchLabels {
		made[key] = value
	}
	return made
}
