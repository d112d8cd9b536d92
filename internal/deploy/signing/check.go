package signing

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// Check returns an error unless the API server in cfg accepts the certificate and lets its user
// bind pods and hold a scheduler's lease. An access review shows both, on every release. Only the
// address and the authorities in cfg are used.
func Check(ctx context.Context, cfg *rest.Config, pair certificates.Pair, leaseNamespace, lease string) error {
	as := rest.AnonymousClientConfig(cfg)
	as.CertData, as.KeyData = pair.Cert, pair.Key
	client, err := authorizationclient.NewForConfig(as)
	if err != nil {
		return fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	for _, asked := range []authorizationv1.ResourceAttributes{
		{Verb: "create", Resource: "pods", Subresource: "binding"},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: leaseNamespace, Name: lease},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &asked}}
		answer, err := client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return kubeapi.Explain("use the new certificate", err)
		}
		if !answer.Status.Allowed {
			return problem.Errorf("deploy the scheduler again, which grants the permissions",
				"the user of the new certificate may not %s %s", asked.Verb, asked.Resource)
		}
	}
	return nil
}
