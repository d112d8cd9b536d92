package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

const (
	// replicaSetController is the ServiceAccount that creates the pods of Deployments. Pod security
	// policies, security context constraints and webhooks may decide by the user who creates a pod.
	replicaSetController = "replicaset-controller"
	// dryRunTimeout bounds the creation: webhooks answer within 30 s.
	dryRunTimeout = 40 * time.Second
	// defaultAccount is the ServiceAccount that every namespace has.
	defaultAccount = "default"
)

// trial is the creation of a pod that is not stored.
type trial struct {
	pod *corev1.Pod
	// kube is a client for the user who creates the pod: the ReplicaSet controller, or the
	// kubeconfig's user if own is set.
	kube kubernetes.Interface
	own  bool
	// missing is the Deployment's ServiceAccount if it does not exist yet. The pod then has the
	// namespace's default one.
	missing string
}

// podAdmitted fails if the API server does not admit the Deployment's pods: admission plugins and
// policies refuse pods whose Deployment they admit. The pod is created with a dry run.
func (p *preflight) podAdmitted(ctx context.Context) (string, error) {
	detail, err := p.tryPod(ctx)
	if errors.Is(err, ErrUnknown) {
		return detail, p.explainQuotas(ctx, err)
	}
	return detail, err
}

func (p *preflight) tryPod(ctx context.Context) (string, error) {
	t, err := p.newTrial(ctx)
	if err != nil {
		return "", unknownIfForbidden(err)
	}
	err = t.create(ctx)
	text, refused := refusal(err)
	if !t.own && !refused && apierrors.IsForbidden(err) { // some clusters forbid to impersonate their own users
		t.kube, t.own = p.kube, true
		err = t.create(ctx)
		text, refused = refusal(err)
	}
	switch {
	case err == nil:
		return t.limits(), nil
	case !refused:
		return "", fmt.Errorf("%w: %w", ErrUnknown, kubeapi.Explain("create a pod with a dry run", err))
	}
	if doubt, err := p.doubt(ctx, t, text); err != nil || doubt != "" {
		return "", errors.Join(err, fmt.Errorf("%w: %s: %s", ErrUnknown, doubt, text))
	}
	if limits := t.limits(); limits != "" {
		text += " (" + limits + ")"
	}
	return "", problem.Errorf(p.admissionHint(text), "the API server refuses the pod: %s", text)
}

// create creates the pod with a dry run.
func (t *trial) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	_, err := t.kube.CoreV1().Pods(t.pod.Namespace).Create(ctx, t.pod,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// newTrial returns the pod that the Deployment's ReplicaSet would create, and its creator.
func (p *preflight) newTrial(ctx context.Context) (*trial, error) {
	yes := true
	t := &trial{kube: p.kube, pod: &corev1.Pod{ObjectMeta: *p.pod.ObjectMeta.DeepCopy(), Spec: *p.pod.Spec.DeepCopy()}}
	t.pod.Namespace, t.pod.GenerateName = p.Namespace, p.Name+"-"
	// Policies refuse pods without a controller.
	t.pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: p.Name,
		UID: uuid.NewUUID(), Controller: &yes}}
	if err := p.chooseAccount(ctx, t); err != nil {
		return nil, err
	}
	may, err := p.may(ctx, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "serviceaccounts",
		Namespace: metav1.NamespaceSystem, Name: replicaSetController})
	if err != nil {
		return nil, err
	}
	if may && p.cfg.Impersonate.UserName == "" {
		cfg := rest.CopyConfig(p.cfg)
		cfg.Impersonate.UserName = userOf(metav1.NamespaceSystem, replicaSetController)
		t.kube, err = kubernetes.NewForConfig(cfg)
		return t, err
	}
	t.own = true
	may, err = p.may(ctx, authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Namespace: p.Namespace})
	if err == nil && !may {
		err = fmt.Errorf("%w: no permission to create pods in namespace %s", ErrUnknown, p.Namespace)
	}
	return t, err
}

// chooseAccount replaces the pod's ServiceAccount if it does not exist yet.
func (p *preflight) chooseAccount(ctx context.Context, t *trial) error {
	account := t.pod.Spec.ServiceAccountName
	accounts := p.kube.CoreV1().ServiceAccounts(p.Namespace)
	if account == "" {
		account = defaultAccount
	}
	found, err := kubeapi.Find(ctx, p.retry, accounts.Get, "ServiceAccount", p.Namespace, account)
	if err != nil || found != nil {
		return err
	}
	if account != defaultAccount {
		t.missing, t.pod.Spec.ServiceAccountName = account, defaultAccount
		found, err = kubeapi.Find(ctx, p.retry, accounts.Get, "ServiceAccount", p.Namespace, defaultAccount)
	}
	if err == nil && found == nil {
		err = fmt.Errorf("%w: namespace %s has no ServiceAccount %s", ErrUnknown, p.Namespace, defaultAccount)
	}
	return err
}

// limits returns in what the pod differs from the Deployment's pods, or "".
func (t *trial) limits() string {
	var limits []string
	if t.missing != "" {
		limits = append(limits, fmt.Sprintf("with ServiceAccount %s: %s does not exist yet", defaultAccount, t.missing))
	}
	if t.own {
		limits = append(limits, "created by the user of the kubeconfig: it may not impersonate the ReplicaSet controller")
	}
	return strings.Join(limits, "; ")
}

// doubt returns why the Deployment's pods may be admitted although this one was refused, or "".
func (p *preflight) doubt(ctx context.Context, t *trial, text string) (string, error) {
	switch {
	case t.own && (strings.Contains(text, deniedByWebhook) || strings.Contains(text, deniedByPolicy)):
		return "the policy may decide by the creator: " + t.limits(), nil
	case t.own && strings.Contains(text, noOwner): // OwnerReferencesPermissionEnforcement
		return t.limits(), nil
	case strings.Contains(text, overQuota):
		selector := labels.Set{ownership.LabelName: p.pod.Labels[ownership.LabelName], ownership.LabelInstance: p.Name}
		pods, err := kubeapi.List(ctx, p.retry, "list pods of "+p.Name, p.kube.CoreV1().Pods(p.Namespace).List,
			metav1.ListOptions{LabelSelector: selector.String(), Limit: 1})
		if err == nil && len(pods.Items) > 0 {
			return "the pods that would be replaced count against the quota too", nil
		}
		return "", err
	case t.missing != "" && strings.Contains(text, podSecurityPolicy):
		return t.limits(), nil
	case t.missing != "" && strings.Contains(text, noConstraint):
		for _, name := range constraints() {
			may, err := p.mayUse(ctx, t.missing, name)
			if err != nil || may {
				return fmt.Sprintf("%s, and may use %s", t.limits(), name), err
			}
		}
	}
	return "", nil
}

// mayUse reports whether a ServiceAccount may use a security context constraint.
func (p *preflight) mayUse(ctx context.Context, account, constraint string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   userOf(p.Namespace, account),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + p.Namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "use", Group: "security.openshift.io",
			Resource: "securitycontextconstraints", Name: constraint, Namespace: p.Namespace},
	}}
	answer, err := kubeapi.Create(ctx, p.retry, "ask whether "+review.Spec.User+" may use "+constraint,
		p.kube.AuthorizationV1().SubjectAccessReviews().Create, review)
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

func userOf(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}
