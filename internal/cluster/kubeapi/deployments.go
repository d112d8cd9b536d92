package kubeapi

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// deploymentPage is the page size for Deployments.
const deploymentPage = 50

// InstalledDeployments lists the Deployments for the schedulers and extenders that pmk-sched, or
// Helm from a pmk-sched chart, installed in a namespace. An empty namespace means all.
func InstalledDeployments(ctx context.Context, client appsv1client.DeploymentsGetter,
	namespace string) ([]appsv1.Deployment, error) {
	var found []appsv1.Deployment
	options := metav1.ListOptions{LabelSelector: ownership.Installed, Limit: deploymentPage}
	for page, err := range Pages(ctx, client.Deployments(namespace).List, options) {
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if ownership.IsInstalled(page.Items[i].Labels) {
				found = append(found, page.Items[i])
			}
		}
	}
	return found, nil
}
