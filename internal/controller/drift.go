package controller

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health/observe"
)

// maxDrift bounds the objects and fields that a condition names.
const maxDrift = 5

// deployedNames returns the names that are deployed for an object: its scheduler, and the extenders
// that have their own pods.
func deployedNames(object *v1alpha1.CustomScheduler) []string {
	names := []string{object.Name}
	for _, e := range object.Spec.Extenders {
		if e.IsDeployed() && !e.Sidecar {
			names = append(names, e.Name)
		}
	}
	return names
}

// drift returns how the objects of the scheduler and its extenders differ from their deployed
// revisions, or "".
func (u *run) drift(ctx context.Context) (string, error) {
	var list []string
	for _, name := range deployedNames(u.object) {
		found, err := u.driftOf(ctx, name)
		if err != nil {
			return "", err
		}
		list = append(list, found...)
	}
	return summarize(list), nil
}

// summarize returns the first maxDrift differences.
func summarize(list []string) string {
	if len(list) > maxDrift {
		list = append(list[:maxDrift], "…")
	}
	return strings.Join(list, "; ")
}

// driftOf returns how the objects of a scheduler or extender differ from its deployed revision.
func (u *run) driftOf(ctx context.Context, name string) ([]string, error) {
	last, err := u.apply.LastDeployed(ctx, u.object.Namespace, name)
	if err != nil {
		return nil, err
	}
	if last == nil {
		return []string{"the deployed revision of " + name + " is gone"}, nil
	}
	comparisons, err := u.apply.Compare(ctx, last.Objects)
	if err != nil {
		return nil, err
	}
	return describeDrift(comparisons, last.Number)
}

// describeDrift returns how objects differ from a revision, or an error if one could not be
// compared.
func describeDrift(comparisons []apply.Comparison, revision int) ([]string, error) {
	drift, unread := observe.Drift(comparisons, revision)
	if len(unread) > 0 {
		return nil, unread[0]
	}
	var list []string
	for _, d := range drift {
		switch {
		case d.Foreign:
			list = append(list, d.Object+" is not managed by pmk-sched")
		case d.Missing:
			list = append(list, d.Object+" is missing")
		default:
			list = append(list, d.Object+" "+d.Fields[0].String())
		}
	}
	return list, nil
}

// unavailable returns the reason why pods are not scheduled as the object says, from the
// Deployments in the cache: no replica of the scheduler or an extender is available. It is "" if
// there is none.
func (u *run) unavailable(ctx context.Context) (string, error) {
	for i, name := range deployedNames(u.object) {
		found := &appsv1.Deployment{}
		err := u.Get(ctx, client.ObjectKey{Namespace: u.object.Namespace, Name: name}, found)
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
		switch {
		case err == nil && isAvailable(found):
		case i == 0:
			return "no replica of the scheduler is available", nil
		default:
			return "no replica of extender " + name + " is available", nil
		}
	}
	return "", nil
}

// checkAvailable makes an object that was ready unready if it is unavailable.
func (u *run) checkAvailable(ctx context.Context) error {
	missing, err := u.unavailable(ctx)
	if err == nil && missing != "" && u.is(v1alpha1.ConditionReady) {
		u.set(v1alpha1.ConditionReady, metav1.ConditionFalse, "NotAvailable", missing)
	}
	return err
}
