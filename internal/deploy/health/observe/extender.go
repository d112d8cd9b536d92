package observe

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
)

// service reads how many endpoints of an extender's Service are ready.
func (r *reading) service(ctx context.Context) error {
	object := kubeapi.ObjectName("Service", r.Namespace, r.Name)
	_, err := r.Kube.CoreV1().Services(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		r.Service = &health.Service{}
		return nil
	}
	if err != nil {
		return kubeapi.Explain("read "+object, err)
	}
	ready, err := r.endpoints(ctx)
	if err != nil {
		return kubeapi.Explain("read the endpoints of "+object, err)
	}
	r.Service = &health.Service{Exists: true, Endpoints: ready}
	return nil
}

func (r *reading) endpoints(ctx context.Context) (ready int, err error) {
	if !r.observer.Release.Rules().DiscoveryV1 {
		found, err := r.Kube.CoreV1().Endpoints(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{}) //nolint:staticcheck // deprecated from 1.33 on
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		for _, subset := range found.Subsets {
			ready += len(subset.Addresses)
		}
		return ready, nil
	}
	options := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + r.Name, Limit: pageSize}
	for list, err := range kubeapi.Pages(ctx, r.Kube.DiscoveryV1().EndpointSlices(r.Namespace).List, options) {
		if err != nil {
			return 0, err
		}
		for _, slice := range list.Items {
			for _, endpoint := range slice.Endpoints {
				// unknown is ready (discovery/v1, EndpointConditions)
				if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
					ready++
				}
			}
		}
	}
	return ready, nil
}

// reachable records why the API server reaches none of the ready pods.
func (r *reading) reachable(ctx context.Context) {
	if r.Answers == nil {
		return
	}
	if err := r.Answers(ctx, r.Name, r.Namespace); err != nil {
		r.Unreachable = err.Error()
	}
}
