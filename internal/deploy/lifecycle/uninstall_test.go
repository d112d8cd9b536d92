package lifecycle

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
)

// stuckCluster has a scheduler and an extender. The objects of stuck do not disappear when they are
// deleted, as if their node were down.
type stuckCluster struct {
	deploy.Cluster
	stuck string
}

func (s stuckCluster) Owned(_ context.Context, name, ns string) ([]*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("apps/v1")
	o.SetKind("Deployment")
	o.SetNamespace(ns)
	o.SetName(name)
	labels := ownership.Labels(name)
	if name == "extender" {
		labels[ownership.LabelName] = ownership.Extender
	}
	o.SetLabels(labels)
	return []*unstructured.Unstructured{o}, nil
}

func (s stuckCluster) LastDeployed(context.Context, string, string) (*apply.Revision, error) {
	return nil, nil
}

func (s stuckCluster) Delete(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error) {
	for _, o := range objs {
		if o.GetName() == s.stuck {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	return nil, nil
}

func (s stuckCluster) DeleteLeaderLease(context.Context, string, string) (apply.Change, error) {
	return apply.Change{Action: apply.Absent}, nil
}

func (s stuckCluster) Deployments(context.Context, string) ([]*unstructured.Unstructured, error) {
	return nil, nil
}

func (s stuckCluster) Lock(ctx context.Context, _, _, _ string) (context.Context, func(context.Context) error, error) {
	return ctx, func(context.Context) error { return nil }, nil
}

func TestUninstallEndsWithItsTimeout(t *testing.T) {
	list := []extenders.Options{{Extender: v1alpha1.Extender{Name: "extender"}, Namespace: "kube-system"}}
	all := func(ctx context.Context, deps deploy.Deps) (apply.ChangeSet, error) {
		return uninstall(ctx, deps, "kube-system", "scheduler", list, time.Minute)
	}
	extender := func(ctx context.Context, deps deploy.Deps) (apply.ChangeSet, error) {
		return extenders.Uninstall(ctx, deps, extenders.UninstallOptions{
			Name: "extender", Namespace: "kube-system", RunOptions: deploy.RunOptions{Timeout: time.Minute},
		})
	}
	for name, tc := range map[string]struct {
		stuck string
		run   func(context.Context, deploy.Deps) (apply.ChangeSet, error)
	}{
		"of a scheduler":                   {"scheduler", all},
		"of a scheduler with its extender": {"extender", all},
		"of an extender":                   {"extender", extender},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := stuckCluster{stuck: tc.stuck}
				begin := time.Now()
				_, err := tc.run(t.Context(), deploy.Deps{Cluster: c})
				if took := time.Since(begin); took != time.Minute || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("it ended after %s with %v", took, err)
				}
				if hints := strings.Join(problem.Hints(err), "\n"); !strings.Contains(hints, "run uninstall again") {
					t.Errorf("hints %q", hints)
				}
			})
		})
	}
}

// limitedCluster permits to list the schedulers of one namespace only.
type limitedCluster struct{ stuckCluster }

var errForbidden = errors.New("forbidden")

func (limitedCluster) Deployments(_ context.Context, ns string) ([]*unstructured.Unstructured, error) {
	if ns == "" {
		return nil, errForbidden
	}
	return nil, nil
}

// A scheduler of another namespace may call the extender.
func TestAnExtenderIsRemovedIfAllItsSchedulersAreKnown(t *testing.T) {
	for owner, want := range map[string]error{"": errForbidden, "CustomScheduler/kube-system/s": nil} {
		c := limitedCluster{}
		_, err := extenders.Uninstall(t.Context(), deploy.Deps{Cluster: c, Owner: owner},
			extenders.UninstallOptions{Name: "extender", Namespace: "kube-system"})
		if !errors.Is(err, want) {
			t.Errorf("owner %q: got %v, want %v", owner, err, want)
		}
	}
}
