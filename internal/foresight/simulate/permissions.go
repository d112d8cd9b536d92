package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

const (
	// permissionTime is the time limit for the API server to learn permissions, and permissionInterval
	// the interval at which it is asked.
	permissionTime     = time.Minute
	permissionInterval = 20 * time.Millisecond
)

// permissionsName names the role for a scheduler in a sandbox, and its binding.
const permissionsName = "pmk-sched-sandbox"

// permit lets a sandbox's scheduler change a simulation's objects, whatever its plugins do with
// them. It grants no subresource but status: for a node's or a Service's proxy, the API server,
// which runs outside the sandbox, would connect to an address that a plugin names.
func (r *Run) permit(ctx context.Context) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: permissionsName}, Rules: r.rules()}
	_, err := r.kube.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	if client.IgnoreAlreadyExists(err) != nil { // one run may start several schedulers
		return fmt.Errorf("permit the scheduler to read the objects: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: permissionsName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: permissionsName},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: apiserver.Scheduler}},
	}
	_, err = r.kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("permit the scheduler to read the objects: %w", err)
	}
	return awaitPermission(ctx, r.kube, &role.Rules[len(role.Rules)-1])
}

// rules permit all client verbs for the kinds that a simulation can have.
func (r *Run) rules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, kind := range slices.Concat(snapshot.Kinds(), r.customKinds) {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{kind.Group}, Resources: []string{kind.Resource, kind.Resource + "/status"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
		})
	}
	return rules
}

// awaitPermission waits until the API server knows a rule: it watches the roles.
func awaitPermission(ctx context.Context, kube kubernetes.Interface, rule *rbacv1.PolicyRule) error {
	ctx, cancel := context.WithTimeout(ctx, permissionTime)
	defer cancel()
	for {
		asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: apiserver.Scheduler, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "deletecollection", Group: rule.APIGroups[0], Resource: rule.Resources[0],
			}}}
		answer, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, asked, metav1.CreateOptions{})
		if err == nil && answer.Status.Allowed {
			return nil
		}
		if clock.Sleep(ctx, permissionInterval) != nil {
			return fmt.Errorf("wait until the API server permits the scheduler to read the objects: %w", ctx.Err())
		}
	}
}
