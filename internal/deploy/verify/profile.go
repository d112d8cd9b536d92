package verify

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain/collect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// find finds the scheduler's Deployment. It returns an error for a scheduler that does not exist,
// if it must exist.
func (r *verifier) find(ctx context.Context) error {
	known, err := r.chooseDeployment(ctx)
	if err != nil || known || !r.MustExist {
		return err
	}
	return r.requireLease(ctx)
}

// chooseDeployment sets the Deployment's name: the scheduler's name, or, if no Deployment has that
// name, the Deployment whose configuration has a profile with that name. known is false if there is
// neither.
func (r *verifier) chooseDeployment(ctx context.Context) (known bool, err error) {
	if r.Deployment != "" {
		return true, nil
	}
	r.Deployment = r.Name
	d, err := kubeapi.Find(ctx, r.retry, r.kube.AppsV1().Deployments(r.Namespace).Get, "Deployment", r.Namespace, r.Name)
	if errors.As(err, new(*kubeapi.ForbiddenError)) {
		return true, nil // the pod's scheduler can be found without it
	}
	if err != nil || d != nil {
		return true, err
	}
	list, err := kubeapi.Read(ctx, r.retry, "list schedulers in namespace "+r.Namespace,
		func(ctx context.Context) ([]appsv1.Deployment, error) {
			return kubeapi.InstalledDeployments(ctx, r.kube.AppsV1(), r.Namespace)
		})
	if err != nil {
		return false, err
	}
	for i := range list {
		names, err := collect.Profiles(ctx, r.kube, r.retry, &list[i])
		if err != nil {
			return false, err
		}
		if slices.Contains(names, r.Name) {
			r.Deployment = list[i].Name
			r.note("%s is a profile of scheduler %s", r.Name, r.Deployment)
			return true, nil
		}
	}
	return false, nil
}

// requireLease returns an error for a scheduler without a Deployment and a profile, unless a Lease
// in the namespace has its name.
func (r *verifier) requireLease(ctx context.Context) error {
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
