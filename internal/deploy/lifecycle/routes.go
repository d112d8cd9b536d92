package lifecycle

import (
	"context"
	"fmt"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	registrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/cluster/suspension"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

// ReadRoutes reads the routes of the cluster that are not suspended. The returned function returns
// the scheduler that they give a new pod, or "". Its error says that this cannot be told: the
// labels of the pod's namespace cannot be read, or a route takes a share of such pods.
func ReadRoutes(ctx context.Context, s *session.Session) (func(*corev1.Pod) (string, error), error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	cluster, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	rules, err := readRules(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return func(pod *corev1.Pod) (string, error) {
		return route.Choose(rules, pod, func() (labels.Set, error) {
			o, err := cluster.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, pod.Namespace,
				metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return nil, nil // one that is made has no labels but its name
			case err != nil:
				return nil, kubeapi.Explain("read the labels of namespace "+pod.Namespace, err)
			}
			return o.GetLabels(), nil
		})
	}, nil
}

// readRules returns the rules in the order in which API servers apply them: policies before
// webhooks, each by name.
func readRules(ctx context.Context, cluster dynamic.Interface) ([]route.Rule, error) {
	var rules []route.Rule
	read := map[string]bool{} // a policy is served in several versions
	for _, resource := range []schema.GroupVersionResource{
		registrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies"),
		registrationv1beta1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies"),
		registrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"),
	} {
		if read[resource.Resource] {
			continue
		}
		list, err := cluster.Resource(resource).List(ctx,
			metav1.ListOptions{LabelSelector: ownership.LabelManagedBy + "=" + ownership.Manager})
		switch {
		case apierrors.IsNotFound(err):
			continue // not served
		case err != nil:
			return nil, kubeapi.Explain("list the routes in "+resource.Resource, err)
		}
		read[resource.Resource] = true
		for i := range list.Items {
			annotations := list.Items[i].GetAnnotations()
			if _, suspended := suspension.Since(&list.Items[i]); suspended || annotations[route.AnnotationRule] == "" {
				continue
			}
			rule, err := route.Decode(annotations)
			if err != nil {
				return nil, fmt.Errorf("read the route %s: %w", list.Items[i].GetName(), err)
			}
			rules = append(rules, rule)
		}
	}
	return rules, nil
}
