package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/rbac"
)

// SystemClosed returns why the cluster refuses a scheduler's RoleBinding in kube-system, or "": GKE
// Autopilot manages that namespace, and refuses it to every user. It returns "" if the binding
// exists, if the user may not create bindings at all, and if the reason is unknown.
func SystemClosed(ctx context.Context, cfg *rest.Config, o rbac.Options, log *zap.Logger) (string, error) {
	cfg = kubeapi.ClientConfig(cfg, log)
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return "", fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	p := &preflight{cfg: cfg, kube: kube, retry: &kubeapi.Retrier{Log: log}}
	binding := rbac.AuthenticationReader(o)
	bindings := kube.RbacV1().RoleBindings(binding.Namespace)
	// An error leaves the reason unknown, unless the dry run shows it.
	found, _ := kubeapi.Find(ctx, p.retry, bindings.Get, binding.Kind, binding.Namespace, binding.Name)
	if found != nil || ctx.Err() != nil {
		return "", ctx.Err()
	}
	on := authorizationv1.ResourceAttributes{Verb: "create", Group: rbacv1.GroupName, Resource: "clusterrolebindings"}
	if may, err := p.may(ctx, on); err != nil || !may {
		return "", ctx.Err()
	}
	on.Resource, on.Namespace = "rolebindings", binding.Namespace
	may, err := p.may(ctx, on)
	if err != nil {
		return "", ctx.Err()
	}
	if !may {
		return "the user may create clusterrolebindings, and no " + kubeapi.ResourceName(on), nil
	}
	limited, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	_, err = bindings.Create(limited, binding, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return closedBy(err), ctx.Err()
}

// closedBy returns the refusal from an authorizer or a webhook, or "".
func closedBy(err error) string {
	var forbidden *kubeapi.ForbiddenError
	switch {
	case err == nil:
		return ""
	case strings.Contains(err.Error(), deniedByWebhook), strings.Contains(err.Error(), deniedByPolicy):
		return err.Error()
	case apierrors.IsForbidden(err) && errors.As(kubeapi.Explain("", err), &forbidden) && forbidden.Verb == "create":
		return err.Error()
	}
	return ""
}
