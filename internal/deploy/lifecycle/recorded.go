package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// Confirm asks the user before this machine runs recorded code, or writes an image under a recorded
// name. It returns an error unless the user agrees. If it is nil, both are refused.
type Confirm func(context.Context, *pack.Unconfirmed) error

// Settle sets a field in a request to nil if the user confirms it.
func (ask Confirm) Settle(ctx context.Context, field **pack.Unconfirmed) error {
	switch {
	case *field == nil:
		return nil
	case ask == nil:
		return (*field).Check()
	}
	if err := ask(ctx, *field); err != nil {
		return err
	}
	*field = nil
	return nil
}

// addRecipe adds to a record how this machine built the image, if it did.
func addRecipe(ctx context.Context, s *session.Session, before *deploy.Installed) error {
	contents, err := pack.ReadPlugins(ctx, s, before.Image, before.Release, nil)
	if err == nil {
		before.Built = contents.Recipe
	}
	return err
}

// DeployedNames returns the sorted names of the schedulers that pmk-sched has deployed. Without the
// permission to list them in all namespaces, it returns those in kube-system.
func DeployedNames(ctx context.Context, s *session.Session) ([]types.NamespacedName, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	found, err := kubeapi.InstalledDeployments(ctx, kube.AppsV1(), metav1.NamespaceAll)
	if apierrors.IsForbidden(err) {
		found, err = kubeapi.InstalledDeployments(ctx, kube.AppsV1(), metav1.NamespaceSystem)
	}
	if err != nil {
		return nil, kubeapi.Explain("list the Deployments of schedulers", err)
	}
	var names []types.NamespacedName
	for i := range found {
		if found[i].Labels[ownership.LabelName] != ownership.Extender {
			names = append(names, types.NamespacedName{Namespace: found[i].Namespace,
				Name: found[i].Labels[ownership.LabelInstance]})
		}
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return names, nil
}

// DeployedScheduler returns the scheduler that is deployed with the spec's name, to run it on this
// machine at its release, with the extenders that were added to it. confirm asks for its code.
func DeployedScheduler(
	ctx context.Context, s *session.Session, sp *spec.Spec, confirm Confirm,
) (r pack.Scheduler, err error) {
	d, err := deploy.Connect(s)
	if err != nil {
		return r, err
	}
	u, err := newUpgrade(ctx, s, d, UpgradeOptions{Spec: sp})
	if err != nil {
		return r, err
	}
	release := u.installed.Release
	if err := addRecipe(ctx, s, u.installed); err != nil {
		return r, err
	}
	again, err := sp.Again(*u.installed, release.String(), release.Rules().Policy)
	if err != nil {
		return r, err
	}
	if r, err = again.Simulation(nil, nil); err != nil {
		return r, err
	}
	r.Deployed = append(r.Deployed, u.installed.Added...)
	return r, confirm.Settle(ctx, &r.Unconfirmed)
}
