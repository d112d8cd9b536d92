package apiserver

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// AwaitAccess waits until the API server lets user do all that is asked. It
// learns of RBAC objects by a watch, so what was just created holds a little later.
func (s *Server) AwaitAccess(ctx context.Context, user string, asked ...authorizationv1.ResourceAttributes) error {
	kube, err := kubernetes.NewForConfig(s.ConfigFor(user))
	if err != nil {
		return err
	}
	for _, attributes := range asked {
		err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
			answer, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err == nil && answer.Status.Allowed, err
		})
		if err != nil {
			return fmt.Errorf("wait until %s may %s %s in namespace %q: %w", user, attributes.Verb, attributes.Resource, attributes.Namespace, err)
		}
	}
	return nil
}
