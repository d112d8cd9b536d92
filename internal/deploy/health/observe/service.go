package observe

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// readService reads an extender's Service and its endpoints, and whether its pods answer.
func (w *workload) readService(ctx context.Context, o Options) {
	object := kubeapi.ObjectName("Service", w.Namespace, w.Name)
	service, err := o.Kube.CoreV1().Services(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		w.service = &corev1.Service{}
	case err != nil:
		w.requests = append(w.requests, request{"read " + object, err})
	default:
		if err := w.readEndpoints(ctx, o); err != nil {
			w.requests = append(w.requests, request{"read the endpoints of " + object, err})
			break
		}
		w.service = service
	}
	if o.Answers != nil {
		w.unreachable = o.Answers(ctx, w.Name, w.Namespace)
	}
}

// readEndpoints reads the Service's endpoints, as EndpointSlices have them.
func (w *workload) readEndpoints(ctx context.Context, o Options) error {
	if !o.Release.Rules().DiscoveryV1 {
		found, err := o.Kube.CoreV1().Endpoints(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{}) //nolint:staticcheck // deprecated from 1.33 on
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		for _, subset := range found.Subsets {
			for _, address := range subset.Addresses {
				w.endpoints = append(w.endpoints, discoveryv1.Endpoint{Addresses: []string{address.IP}})
			}
		}
		return nil
	}
	options := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + w.Name, Limit: pageSize}
	for page, err := range kubeapi.Pages(ctx, o.Kube.DiscoveryV1().EndpointSlices(w.Namespace).List, options) {
		if err != nil {
			return err
		}
		for _, slice := range page.Items {
			w.endpoints = append(w.endpoints, slice.Endpoints...)
		}
	}
	return nil
}
