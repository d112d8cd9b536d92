package apply

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// Deployments lists the Deployments of all schedulers and extenders that pmk-sched manages: in all
// namespaces or, without permission to list those, in ns and kube-system.
func (c *Client) Deployments(ctx context.Context, ns string) ([]*unstructured.Unstructured, error) {
	return c.listKind(ctx, appsv1.SchemeGroupVersion.WithKind("Deployment"),
		client.MatchingLabels{ownership.LabelManagedBy: ownership.Manager}, ns, fullObjects)
}
