//go:build linux && releases

package flux

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/gitops"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	// management is the release of the cluster on which Flux runs.
	management = "v1.29.2"
	// The cluster of upgradedFrom is upgraded.
	upgradedFrom, upgradedTo = "v1.29.2", "v1.30.14"
	// repository is the name of the GitRepository of the example.
	repository = "schedulers"
)

// fleet are clusters with the same chart, by their release at the start.
type fleet struct {
	*flux
	git      *gitops.Repository
	clusters map[string]*gitops.Cluster
	// images are the images of the chart by release, and commit is its commit.
	images map[string]string
	commit string
}

// One chart of a Git repository is installed on clusters of several releases by the example.
func TestOneChartFollowsEachClusterAndBrokenReleasesAreRolledBack(t *testing.T) {
	f := &fleet{git: gitops.NewRepository(t), clusters: map[string]*gitops.Cluster{}, images: map[string]string{}}
	for _, release := range append(apiserver.Releases(), upgradedTo) {
		f.images[release] = gitops.Image(gitops.Scheduler, release)
	}
	f.commit = f.git.CommitChart(t, gitops.Index(t, f.images))
	f.flux = start(t, management)
	for _, release := range apiserver.Releases() {
		f.clusters[release] = gitops.StartCluster(t, release)
	}
	f.addExample(t)

	t.Run("each cluster has the image of its release", func(t *testing.T) {
		for release := range f.clusters {
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
			gitops.Set(t, o, f.git.URL, "spec", "url")
			f.create(t, o)
			continue
		}
		for release, cluster := range f.clusters {
			f.create(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
				"metadata":   map[string]any{"namespace": namespace, "name": release},
				"stringData": map[string]any{"value": string(cluster.Kubeconfig(t))}}})
			helm := o.DeepCopy()
			helm.SetName(release)
			gitops.Set(t, helm, release, "spec", "kubeConfig", "secretRef", "name")
			if release == apiserver.Release { // which has broken images
				gitops.Set(t, helm, "30s", "spec", "timeout")
			}
			f.create(t, helm)
		}
	}
}

// awaitReady waits until the HelmRelease of a cluster is ready with the newest commit, and the
// cluster runs the image of a release.
func (f *fleet) awaitReady(t *testing.T, name, release string) {
	t.Helper()
	run.Eventually(t, name+" runs "+f.images[release], func(ctx context.Context) (bool, string) {
		image, available := f.clusters[name].Image(ctx, t)
		helm := f.get(t, helmRelease(), name)
		revision, _, _ := unstructured.NestedString(helm.Object, "status", "lastAttemptedRevision")
		return image == f.images[release] && available && condition(helm, "Ready") == "True" &&
			strings.Contains(revision, f.commit[:12]), image + "\n" + status(helm)
	})
}

// breakRelease commits an image that does not work for the release of one cluster, and then an
// image that works. The other clusters are upgraded to both charts.
func (f *fleet) breakRelease(t *testing.T, image string) {
	const name = apiserver.Release
	working := f.images[name]
	f.push(t, gitops.Image(image, name))
	run.Eventually(t, name+" runs out of retries", func(context.Context) (bool, string) {
		helm := f.get(t, helmRelease(), name)
		return condition(helm, "Stalled") == "True", status(helm)
	})
	helm := f.get(t, helmRelease(), name)
	failures, _, _ := unstructured.NestedInt64(helm.Object, "status", "upgradeFailures")
	if failures != 2 { // the example has one retry
		t.Errorf("it failed %d times\n%s", failures, status(helm))
	}
	if image, available := f.clusters[name].Image(t.Context(), t); image != working || !available {
		t.Errorf("it runs %s, available: %t\n%s", image, available, status(helm))
	}
	for other := range f.clusters {
		if other != name {
			f.awaitReady(t, other, other)
		}
	}
	f.push(t, gitops.Image("after-"+image, name))
	f.awaitReady(t, name, name)
}

// push commits the chart with another image of one release, and requests that Flux fetches it.
func (f *fleet) push(t *testing.T, image string) {
	t.Helper()
	f.images[apiserver.Release] = image
	f.commit = f.git.CommitChart(t, gitops.Index(t, f.images))
	f.patch(t, gitRepository(), repository,
		fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, f.commit))
}

// upgrade upgrades the API server of a cluster. Flux renders the chart again when it is forced to.
func (f *fleet) upgrade(t *testing.T) {
	f.clusters[upgradedFrom].Upgrade(t, upgradedTo)
	f.reconcile(t, upgradedFrom, "1", "")
	f.awaitReady(t, upgradedFrom, upgradedFrom)
	f.reconcile(t, upgradedFrom, "2", "2")
	f.awaitReady(t, upgradedFrom, upgradedTo)
}

// reconcile requests a reconciliation, with a force unless it is empty, and waits until it is done.
func (f *fleet) reconcile(t *testing.T, name, request, force string) {
	t.Helper()
	annotations := fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q,`+
		`"reconcile.fluxcd.io/forceAt":%q}}}`, request, force)
	if force == "" {
		annotations = fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, request)
	}
	f.patch(t, helmRelease(), name, annotations)
	run.Eventually(t, "request "+request+" for "+name+" is handled", func(context.Context) (bool, string) {
		helm := f.get(t, helmRelease(), name)
		handled, _, _ := unstructured.NestedString(helm.Object, "status", "lastHandledReconcileAt")
		return handled == request && condition(helm, "Reconciling") != "True", status(helm)
	})
}

// condition returns the status of a condition, or "".
func condition(o *unstructured.Unstructured, name string) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, isMap := c.(map[string]any); isMap && c["type"] == name {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}

func status(o *unstructured.Unstructured) string {
	text, err := yaml.Marshal(o.Object["status"])
	if err != nil {
		return err.Error()
	}
	return string(text)
}
