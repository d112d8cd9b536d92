package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// Routing describes what can make new pods use another scheduler than the default one.
type Routing struct {
	// PolicyAPI is the API in which the API server serves MutatingAdmissionPolicies, or empty.
	PolicyAPI string `json:"policyAPI,omitempty"`
	// WebhookNamespace is the namespace of pmk-sched's webhook, or empty if it is not installed.
	WebhookNamespace string `json:"webhookNamespace,omitempty"`
	// Others are webhooks of other products that set spec.schedulerName. It is nil if the caller may
	// not list webhooks.
	Others []Router `json:"others"`
}

// Router is a webhook that sets the scheduler of pods.
type Router struct {
	Product       string `json:"product"`
	Configuration string `json:"configuration"`
}

// String returns the product and its webhook.
func (r Router) String() string {
	return fmt.Sprintf("%s (MutatingWebhookConfiguration/%s)", r.Product, r.Configuration)
}

// routers are products whose webhooks set spec.schedulerName, by a part of the name of the
// configuration, Service or namespace: yunikorn-k8shim (pkg/admission), HAMi
// (charts/hami/templates/scheduler/webhook.yaml), KAI-Scheduler (pkg/admission/webhook), Volcano
// (pkg/webhooks/admission/pods/mutate) and Koordinator (pkg/webhook/pod/mutating).
var routers = []struct{ part, product string }{
	{"yunikorn", "Apache YuniKorn"}, {"hami", "HAMi"}, {"kai-", "KAI Scheduler"}, {"volcano", "Volcano"},
	{"koord", "Koordinator"},
}

// routing finds out how pods can be routed to a scheduler, and what else routes them.
func (d *detector) routing(ctx context.Context) {
	found := &Routing{}
	if api := d.rules.MutatingPolicyAPI; api != "" {
		served, err := d.servesResource(ctx, api, "mutatingadmissionpolicies")
		if err != nil {
			d.warnUnread(err, "read the resources of "+api, "whether policies can route pods to a scheduler is unknown")
			return
		}
		if served {
			found.PolicyAPI = api
		}
	}
	installed := metav1.ListOptions{LabelSelector: ownership.LabelName + "=" + ownership.Admission, Limit: 1}
	webhooks, err := d.apps.Deployments(metav1.NamespaceAll).List(ctx, installed)
	if apierrors.IsForbidden(err) {
		// The webhook is in the namespace of `pmk-sched controller`, which may list no others.
		here, failed := d.apps.Deployments(d.o.SchedulerNamespace).List(ctx, installed)
		if failed == nil && len(here.Items) > 0 {
			webhooks, err = here, nil
		}
	}
	switch {
	case apierrors.IsForbidden(err) && found.PolicyAPI == "":
		return // it matters for a route only, and a plan with a route says so
	case err != nil && found.PolicyAPI == "":
		d.warnUnread(err, "list deployments", "whether the webhook of pmk-sched is installed is unknown")
		return
	case err == nil && len(webhooks.Items) > 0:
		found.WebhookNamespace = webhooks.Items[0].Namespace
	}
	if found.Others, err = d.otherRouters(ctx); err != nil && !apierrors.IsForbidden(err) {
		d.warnUnread(err, "list mutatingwebhookconfigurations", "which other webhooks set the scheduler of pods is unknown")
	}
	d.info.Routing = found
}

// arbiter finds out whether an arbiter is registered.
func (d *detector) arbiter(ctx context.Context) {
	list, err := d.admission.ValidatingWebhookConfigurations().List(ctx,
		metav1.ListOptions{FieldSelector: metav1.ObjectNameField + "=" + ownership.Arbiter, Limit: 1})
	switch {
	case apierrors.IsForbidden(err):
		return
	case err != nil:
		d.warnUnread(err, "list validatingwebhookconfigurations", "whether an arbiter is registered is unknown")
		return
	}
	for i := range list.Items {
		for _, hook := range list.Items[i].Webhooks {
			if s := hook.ClientConfig.Service; s != nil && s.Name == ownership.Admission {
				d.info.Arbiter = s.Namespace
			}
		}
	}
}

// otherRouters lists the webhooks of other products.
func (d *detector) otherRouters(ctx context.Context) ([]Router, error) {
	all := []Router{}
	options := metav1.ListOptions{Limit: webhookPage}
	for page, err := range kubeapi.Pages(ctx, d.admission.MutatingWebhookConfigurations().List, options) {
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if product := routerOf(&page.Items[i]); product != "" {
				all = append(all, Router{product, page.Items[i].Name})
			}
		}
	}
	return all, nil
}

// webhookPage is the number of webhook configurations that are read at once.
const webhookPage = 100

// routerOf returns the product whose webhook changes new pods and sets their scheduler, or "".
func routerOf(c *admissionv1.MutatingWebhookConfiguration) string {
	for _, hook := range c.Webhooks {
		if !slices.ContainsFunc(hook.Rules, changesNewPods) {
			continue
		}
		names := c.Name
		if s := hook.ClientConfig.Service; s != nil {
			names += " " + s.Namespace + " " + s.Name
		}
		for _, r := range routers {
			if strings.Contains(names, r.part) {
				return r.product
			}
		}
	}
	return ""
}

func changesNewPods(r admissionv1.RuleWithOperations) bool {
	creates := slices.Contains(r.Operations, admissionv1.Create) || slices.Contains(r.Operations, admissionv1.OperationAll)
	return creates && (slices.Contains(r.Resources, "pods") || slices.Contains(r.Resources, "*"))
}
