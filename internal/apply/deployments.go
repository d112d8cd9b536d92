package apply

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/ownership"
)

// Deployments lists the Deployments that pmk-sched made, of whatever scheduler or extender: in all namespaces, or, for who may not list those,
// in ns and kube-system.
func (c *Client) Deployments(ctx context.Context, ns string) ([]*unstructured.Unstructured, error) {
	return c.listKind(ctx, appsv1.SchemeGroupVersion.WithKind("Deployment"), map[string]string{ownership.LabelManagedBy: ownership.Manager}, ns)
}
