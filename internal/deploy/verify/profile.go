package verify

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain/collect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// chooseDeployment sets the Deployment's name: the scheduler's name, or, if no Deployment has that
// name, the Deployment whose configuration has a profile with that name. It sets unknown if there
// is neither.
func (r *verifier) chooseDeployment(ctx context.Context) error {
	if r.Deployment != "" {
		return nil
	}
	r.Deployment = r.Name
	d, err := kubeapi.Find(ctx, r.retry, r.kube.AppsV1().Deployments(r.Namespace).Get, "Deployment", r.Namespace, r.Name)
	if errors.As(err, new(*kubeapi.ForbiddenError)) {
		return nil // the pod's scheduler can be found without it
	}
	if err != nil || d != nil {
		return err
	}
	list, err := kubeapi.Read(ctx, r.retry, "list schedulers in namespace "+r.Namespace,
		func(ctx context.Context) ([]appsv1.Deployment, error) {
			return kubeapi.InstalledDeployments(ctx, r.kube.AppsV1(), r.Namespace)
		})
	if err != nil {
		return err
	}
	for i := range list {
		names, err := collect.Profiles(ctx, r.kube, r.retry, &list[i])
		if err != nil {
			return err
		}
		if slices.Contains(names, r.Name) {
			r.Deployment = list[i].Name
			r.note("%s is a profile of scheduler %s", r.Name, r.Deployment)
			return nil
		}
	}
	r.unknown = true
	return nil
}

// Known returns an error if o names a scheduler that does not exist: no Deployment, no profile and
// no Lease in the namespace has its name.
func Known(ctx context.Context, cfg *rest.Config, o Options) error {
	r, err := newVerifier(cfg, o, &Result{})
	if err != nil {
		return err
	}
	if err := r.chooseDeployment(ctx); err != nil || !r.unknown {
		return err
	}
	lease, err := kubeapi.Find(ctx, r.retry, r.kube.CoordinationV1().Leases(r.Namespace).Get, "Lease", r.Namespace, r.Name)
	if err != nil || lease != nil {
		return ignoreForbidden(err)
	}
	list, err := kubeapi.InstalledDeployments(ctx, r.kube.AppsV1(), "")
	if ignoreForbidden(err) != nil {
		return err
	}
	return problem.Invalidf(suggest(r.Name, list), "scheduler %s does not exist in namespace %s", r.Name, r.Namespace)
}

func ignoreForbidden(err error) error {
	if errors.As(err, new(*kubeapi.ForbiddenError)) {
		return nil
	}
	return err
}

// suggest returns a hint for a scheduler that does not exist: where it is, or one with a near name.
func suggest(name string, list []appsv1.Deployment) string {
	var names []string
	for _, d := range list {
		if d.Name == name {
			return "it is in namespace " + d.Namespace + ": -n " + d.Namespace
		}
		names = append(names, d.Name)
	}
	if near := schema.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "`pmk-sched status` lists the schedulers"
}

func (r *verifier) deploymentName() string { return "Deployment/" + r.Namespace + "/" + r.Deployment }
