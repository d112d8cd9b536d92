package verify

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// chooseDeployment sets the name of the Deployment: the name of the scheduler, or, if no Deployment
// has that name, the Deployment whose configuration has a profile of that name.
func (r *verifier) chooseDeployment(ctx context.Context) error {
	if r.Deployment != "" {
		return nil
	}
	r.Deployment = r.Name
	var missing bool
	err := r.retry.Do(ctx, "read "+r.deploymentName(), func(ctx context.Context) error {
		_, err := r.kube.AppsV1().Deployments(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
		if missing = apierrors.IsNotFound(err); missing {
			return nil
		}
		return err
	})
	if errors.As(err, new(*kubeapi.ForbiddenError)) {
		return nil // the pod's scheduler can be found without it
	}
	if err != nil || !missing {
		return err
	}
	var list []appsv1.Deployment
	err = r.retry.Do(ctx, "list schedulers in namespace "+r.Namespace, func(ctx context.Context) (err error) {
		list, err = kubeapi.InstalledDeployments(ctx, r.kube.AppsV1(), r.Namespace)
		return err
	})
	if err != nil {
		return err
	}
	for i := range list {
		has, err := r.hasProfile(ctx, &list[i])
		if err != nil {
			return err
		}
		if has {
			r.Deployment = list[i].Name
			r.note("%s is a profile of scheduler %s", r.Name, r.Deployment)
			return nil
		}
	}
	return nil
}

// hasProfile reports whether one of the configurations that a Deployment mounts has a profile with the name of the scheduler.
func (r *verifier) hasProfile(ctx context.Context, d *appsv1.Deployment) (bool, error) {
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		var data map[string]string
		err := r.retry.Do(ctx, "read ConfigMap/"+d.Namespace+"/"+v.ConfigMap.Name, func(ctx context.Context) error {
			m, err := r.kube.CoreV1().ConfigMaps(d.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil {
				data = m.Data
			}
			return err
		})
		if err != nil {
			return false, err
		}
		for _, text := range data {
			if namesProfile(text, r.Name) {
				return true, nil
			}
		}
	}
	return false, nil
}

// namesProfile reports whether a KubeSchedulerConfiguration has a profile with that name. Other text has none.
func namesProfile(text, name string) bool {
	summary, _ := profiles.Summarize([]byte(text))
	return slices.Contains(summary.Profiles, name)
}
