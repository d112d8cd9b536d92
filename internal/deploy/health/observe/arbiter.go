package observe

import (
	"context"
	"fmt"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
)

// readArbiter reads the state of the arbiter. It returns nil if its webhook is not registered, or
// if the caller may not see that. unknown are the parts that could not be read.
func readArbiter(ctx context.Context, o Options) (found *health.Arbiter, unknown []string) {
	const name = ownership.Arbiter
	registered, err := o.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, name,
		metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, []string{kubeapi.Explain("read ValidatingWebhookConfiguration/"+name, err).Error()}
	}
	hook := serviceOf(registered)
	if hook == nil {
		return nil, []string{fmt.Sprintf("ValidatingWebhookConfiguration/%s does not name the Service %s", name,
			ownership.Admission)}
	}
	found = &health.Arbiter{Name: name, Namespace: hook.Service.Namespace, Trusted: len(hook.CABundle) > 0}
	lease, err := o.Kube.CoordinationV1().Leases(found.Namespace).Get(ctx, ownership.Admission, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		found.Lease = &health.Lease{}
	case err != nil:
		unknown = []string{kubeapi.Explain("read Lease/"+found.Namespace+"/"+ownership.Admission, err).Error()}
	default:
		found.Lease = describeLease(lease)
		// The rest is the address of the replica.
		found.Lease.Holder, _, _ = strings.Cut(found.Lease.Holder, "/")
	}
	return found, unknown
}

// serviceOf returns the webhook of the arbiter's Service in a configuration, or nil.
func serviceOf(c *registrationv1.ValidatingWebhookConfiguration) *registrationv1.WebhookClientConfig {
	for i := range c.Webhooks {
		client := &c.Webhooks[i].ClientConfig
		if client.Service != nil && client.Service.Name == ownership.Admission {
			return client
		}
	}
	return nil
}
