package extenders_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
)

// deployed is a cluster with the deployed revisions of schedulers.
type deployed struct {
	deploy.Cluster
	revisions []*apply.Revision
}

func (d deployed) LastDeployed(_ context.Context, namespace, name string) (*apply.Revision, error) {
	for _, r := range d.revisions {
		if r.Namespace == namespace && r.Name == name {
			return r, nil
		}
	}
	return nil, nil
}

func (d deployed) Owned(context.Context, string, string) ([]*unstructured.Unstructured, error) {
	return nil, nil
}

func (d deployed) Deployments(_ context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, r := range d.revisions {
		if namespace == "" || namespace == r.Namespace {
			o := &unstructured.Unstructured{}
			o.SetNamespace(r.Namespace)
			o.SetName(r.Name)
			o.SetLabels(ownership.Labels(r.Name))
			found = append(found, o)
		}
	}
	return found, nil
}

// request is a scheduler with the extender of the form that change chooses.
func request(namespace, name string, change func(*extenders.Options)) extenders.SchedulerDeployment {
	ignorable := true
	o := extenders.Options{
		Extender: v1alpha1.Extender{Name: "far", FilterVerb: "filter", Ignorable: &ignorable, Image: "localhost/far:v1",
			Policies: []v1alpha1.Policy{{Name: "timestamp"}}},
		Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	change(&o)
	scheduler := &v1alpha1.CustomScheduler{}
	scheduler.Name, scheduler.Namespace = name, namespace
	scheduler.Spec.Credentials = deploy.CredentialsServiceAccount
	return extenders.SchedulerDeployment{
		Request:   scheduler,
		Facts:     deploy.Facts{Branch: "v1.24.3", Image: "localhost/scheduler:v1", Version: "v0.0.0-test"},
		Extenders: []extenders.Options{o},
	}
}

// revision returns the deployed revision of a request.
func revision(t *testing.T, s extenders.SchedulerDeployment) *apply.Revision {
	t.Helper()
	plan, err := extenders.PlanScheduler(t.Context(), deploy.Deps{}, s)
	if err != nil {
		t.Fatal(err)
	}
	record, err := plan.Record()
	if err != nil {
		t.Fatal(err)
	}
	return &apply.Revision{
		RevisionInfo: apply.RevisionInfo{Number: 3, Name: plan.Name, Namespace: plan.Namespace, Status: apply.Deployed},
		Objects:      plan.Objects, Record: record,
	}
}

// The scheduler that is deployed with an extender is deployed once, and the others that call the
// extender are deployed before it.
func TestASchedulerIsPlannedAfterTheOtherCallersOfItsExtender(t *testing.T) {
	service, sidecar := func(*extenders.Options) {}, func(o *extenders.Options) { o.Sidecar = true }
	for form, c := range map[string]struct {
		change func(*extenders.Options)
		want   []string
	}{
		"a Service": {service, []string{"kube-system/far 0", "kube-system/other 3", "team/mine 3", "kube-system/mine 3"}},
		"a sidecar": {sidecar, []string{"kube-system/other 3", "team/mine 3", "kube-system/mine 3"}},
	} {
		cluster := deployed{revisions: []*apply.Revision{
			revision(t, request("team", "mine", c.change)),
			revision(t, request("kube-system", "other", c.change)),
			revision(t, request("kube-system", "mine", c.change)),
		}}
		for _, namespace := range []string{"kube-system", ""} {
			t.Run(fmt.Sprintf("%s in %q", form, namespace), func(t *testing.T) {
				plan, err := extenders.PlanScheduler(t.Context(),
					deploy.Deps{Cluster: cluster}, request(namespace, "mine", c.change))
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, p := range append(plan.Before, plan) {
					got = append(got, fmt.Sprintf("%s/%s %d", p.Namespace, p.Name, max(p.Replaces, 0)))
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("plans, with the revisions that they replace (-want +got):\n%s", diff)
				}
			})
		}
	}
}
