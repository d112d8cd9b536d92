package deploy

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

// webhookNamespace is where `pmk-sched controller render` installs the webhook by default.
const webhookNamespace = "pmk-sched-system"

// chooseRoute chooses what routes pods: a policy of the API server if it serves them, else the
// webhook of pmk-sched.
func (p *planner) chooseRoute() error {
	wanted := p.request.Spec.Route
	if wanted == nil {
		return nil
	}
	s, configuration := &p.plan.Scheduler, p.plan.Scheduler.Configuration
	made := &route.Registration{
		Rule:    route.Rule{Scheduler: p.plan.Name, Namespace: p.plan.Namespace, Route: *wanted},
		Release: p.plan.Release,
	}
	if configuration.LeaderElect {
		made.Rule.Lease = configuration.LeaseNamespace + "/" + p.plan.Name
	} else {
		p.warn("the scheduler has no leader election: nothing notices when it stops, and the route does not end")
	}
	switch {
	case p.Cluster == nil:
		made.PolicyAPI, made.WebhookNamespace = made.Release.Rules().MutatingPolicyAPI, webhookNamespace
		if made.PolicyAPI != corePolicyAPI {
			made.PolicyAPI = "" // served only if the cluster's administrator turned it on
		}
	case p.Cluster.Routing == nil:
		return problem.Errorf("it takes the right to list deployments in all namespaces; see also the warnings",
			"route pods to scheduler %s: whether policies of the API server or the webhook of pmk-sched can do it is unknown",
			p.plan.Name)
	default:
		made.Release, made.PolicyAPI = p.Cluster.Release, p.Cluster.Routing.PolicyAPI
		made.WebhookNamespace = p.Cluster.Routing.WebhookNamespace
	}
	if made.PolicyAPI == "" && made.WebhookNamespace == "" {
		return problem.Invalidf("install it with `pmk-sched controller render --image IMAGE --admission route | kubectl apply -f -`",
			"route pods to scheduler %s: the API server (%s) serves no MutatingAdmissionPolicies, and the webhook of pmk-sched "+
				"is not installed", p.plan.Name, made.Release)
	}
	s.Route = made
	by := "a policy of the API server (" + made.PolicyAPI + ")"
	if made.PolicyAPI == "" {
		by = "the webhook of pmk-sched in namespace " + made.WebhookNamespace
	}
	p.note("route: %s, by %s", describeRoute(wanted), by)
	if p.Cluster != nil && p.Cluster.Routing != nil {
		for _, other := range p.Cluster.Routing.Others {
			p.warn("%s sets the scheduler of pods too: of a pod that both select, the one that comes last decides", other)
		}
	}
	return nil
}

// corePolicyAPI is served by default.
const corePolicyAPI = "admissionregistration.k8s.io/v1"

// describeRoute returns which pods a route selects.
func describeRoute(r *v1alpha1.Route) string {
	pods := "pods"
	if share := r.ShareOrDefault(); share < v1alpha1.WholeShare {
		pods = fmt.Sprintf("%d %% of the pods with a controller", share)
	}
	if len(r.Resources) > 0 {
		pods += " that request " + strings.Join(r.Resources, " or ")
	}
	if r.PodSelector != nil {
		pods += " with " + describeSelector(r.PodSelector)
	}
	switch {
	case len(r.Namespaces) > 0:
		pods += " in " + strings.Join(r.Namespaces, ", ")
	default:
		pods += " in all namespaces"
	}
	if r.NamespaceSelector != nil && len(r.NamespaceSelector.MatchLabels)+len(r.NamespaceSelector.MatchExpressions) > 0 {
		pods += " with " + describeSelector(r.NamespaceSelector)
	}
	return pods
}

func describeSelector(s *v1alpha1.LabelSelector) string {
	if text := metav1.FormatLabelSelector(s.Selector()); text != "<none>" {
		return text
	}
	return "any labels"
}
