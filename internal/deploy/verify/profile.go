package verify

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/explain/collect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// chooseDeployment sets the Deployment's name: the scheduler's name, or, if no Deployment has that
// name, the Deployment whose configuration has a profile with that name.
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
	return nil
}

func (r *verifier) deploymentName() string { return "Deployment/" + r.Namespace + "/" + r.Deployment }
