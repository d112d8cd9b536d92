package route

import (
	"context"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	registrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// Registered is a registration of the cluster with a [Rule].
type Registered struct {
	Resource schema.GroupVersionResource
	*unstructured.Unstructured
}

// Read returns the registrations that route pods, suspended ones too, in the order in which API
// servers apply them: policies before webhooks, each by name. They are what the API server has in
// its cache: it does not ask etcd.
func Read(ctx context.Context, cluster dynamic.Interface) ([]Registered, error) {
	var all []Registered
	read := map[string]bool{} // a policy is served in several versions
	for _, resource := range []schema.GroupVersionResource{
		registrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies"),
		registrationv1beta1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies"),
		registrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"),
	} {
		if read[resource.Resource] {
			continue
		}
		list, err := cluster.Resource(resource).List(ctx, metav1.ListOptions{ResourceVersion: "0",
			LabelSelector: ownership.LabelManagedBy + "=" + ownership.Manager})
		switch {
		case apierrors.IsNotFound(err):
			continue // not served
		case err != nil:
			return nil, kubeapi.Explain("list the routes in "+resource.Resource, err)
		}
		read[resource.Resource] = true
		for i := range list.Items {
			if _, routes := list.Items[i].GetAnnotations()[AnnotationRule]; routes {
				all = append(all, Registered{Resource: resource, Unstructured: &list.Items[i]})
			}
		}
	}
	return all, nil
}
