//go:build linux && releases

package flux

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/test/internal/gitops"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	// repository is the name of the GitRepository of the example.
	repository = "schedulers"
	// requestedAt is the annotation that requests a reconciliation.
	requestedAt = "reconcile.fluxcd.io/requestedAt"
)

// fleet is a fleet with Flux.
type fleet struct {
	*gitops.Management
	*gitops.Fleet
}

// One chart of a Git repository is installed on clusters of several releases by the example.
func TestOneChartFollowsEachClusterAndBrokenReleasesAreRolledBack(t *testing.T) {
	f := &fleet{start(t), gitops.StartFleet(t)}
	f.addExample(t)

	t.Run("each cluster has the image of its release", func(t *testing.T) {
		for release := range f.Clusters {
			f.awaitReady(t, release, release)
		}
	})
	for _, broken := range []string{gitops.NeverStarts, gitops.NeverSchedules} {
		t.Run("an image that "+broken+" is rolled back", func(t *testing.T) { f.breakRelease(t, broken) })
	}
	t.Run("an upgraded cluster gets its image when the HelmRelease is forced", f.upgrade)
}

// addExample creates the objects of the example for each cluster. Only names, addresses and a
// timeout differ.
func (f *fleet) addExample(t *testing.T) {
	t.Helper()
	for _, o := range gitops.Example(t, "helmrelease.yaml") {
		if o.GroupVersionKind() == gitRepository() {
			gitops.Set(t, o, f.Git.URL, "spec", "url")
			f.Create(t, o.Object)
			continue
		}
		for release, cluster := range f.Clusters {
			f.CreateSecret(t, release, nil, map[string]any{"value": string(cluster.Kubeconfig(t))})
			helm := o.DeepCopy()
			helm.SetName(release)
			gitops.Set(t, helm, release, "spec", "kubeConfig", "secretRef", "name")
			if release == gitops.Oldest { // which has broken images
				gitops.Set(t, helm, "30s", "spec", "timeout")
			}
			f.Create(t, helm.Object)
		}
	}
}

// awaitReady waits until the HelmRelease of a cluster is ready with the newest commit, and the
// cluster runs the image of a release.
func (f *fleet) awaitReady(t *testing.T, name, release string) {
	t.Helper()
	run.Eventually(t, name+" runs "+f.Images[release], func(ctx context.Context) (bool, string) {
		image, available := f.Clusters[name].Image(ctx, t)
		helm := f.Get(t, helmRelease(), name)
		revision, _, _ := unstructured.NestedString(helm.Object, "status", "lastAttemptedRevision")
		return image == f.Images[release] && available && condition(helm, "Ready") == "True" &&
			strings.Contains(revision, f.Commit[:12]), image + "\n" + gitops.Status(helm)
	})
}

// breakRelease commits an image that does not work for the release of one cluster, and then an
// image that works. The other clusters are upgraded to both charts.
func (f *fleet) breakRelease(t *testing.T, image string) {
	const name = gitops.Oldest
	working := f.Images[name]
	f.change(t, gitops.Image(image, name))
	run.Eventually(t, name+" runs out of retries", func(context.Context) (bool, string) {
		helm := f.Get(t, helmRelease(), name)
		return condition(helm, "Stalled") == "True", gitops.Status(helm)
	})
	helm := f.Get(t, helmRelease(), name)
	failures, _, _ := unstructured.NestedInt64(helm.Object, "status", "upgradeFailures")
	if failures != 2 { // the example has one retry
		t.Errorf("it failed %d times\n%s", failures, gitops.Status(helm))
	}
	if image, available := f.Clusters[name].Image(t.Context(), t); image != working || !available {
		t.Errorf("it runs %s, available: %t\n%s", image, available, gitops.Status(helm))
	}
	for other := range f.Clusters {
		if other != name {
			f.awaitReady(t, other, other)
		}
	}
	f.change(t, gitops.Image("after-"+image, name))
	f.awaitReady(t, name, name)
}

// change commits the chart with another image of one release, and requests that Flux fetches it.
func (f *fleet) change(t *testing.T, image string) {
	t.Helper()
	f.Images[gitops.Oldest] = image
	f.Push(t)
	f.Annotate(t, gitRepository(), repository, map[string]string{requestedAt: f.Commit})
}

// upgrade upgrades the API server of a cluster. Flux renders the chart again when it is forced to.
func (f *fleet) upgrade(t *testing.T) {
	f.Clusters[gitops.Oldest].Upgrade(t, gitops.Next)
	f.reconcile(t, gitops.Oldest, "1", "")
	f.awaitReady(t, gitops.Oldest, gitops.Oldest)
	f.reconcile(t, gitops.Oldest, "2", "2")
	f.awaitReady(t, gitops.Oldest, gitops.Next)
}

// reconcile requests a reconciliation, with a force unless it is empty, and waits until it is done.
func (f *fleet) reconcile(t *testing.T, name, request, force string) {
	t.Helper()
	annotations := map[string]string{requestedAt: request}
	if force != "" {
		annotations["reconcile.fluxcd.io/forceAt"] = force
	}
	f.Annotate(t, helmRelease(), name, annotations)
	run.Eventually(t, "request "+request+" for "+name+" is handled", func(context.Context) (bool, string) {
		helm := f.Get(t, helmRelease(), name)
		handled, _, _ := unstructured.NestedString(helm.Object, "status", "lastHandledReconcileAt")
		return handled == request && condition(helm, "Reconciling") != "True", gitops.Status(helm)
	})
}
