//go:build linux && releases

package argocd

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/test/internal/gitops"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	// canary is the cluster of the first wave of the example.
	canary = gitops.Oldest
	// refresh is the annotation that requests a refresh of an Application or of a cluster.
	refresh = "argocd.argoproj.io/refresh"
)

// fleet is a fleet with Argo CD.
type fleet struct {
	*gitops.Management
	*gitops.Fleet
}

// One chart of a Git repository is installed on clusters of several releases by the example.
func TestOneChartFollowsEachClusterAndABrokenReleaseStopsTheRollout(t *testing.T) {
	clusters := gitops.StartFleet(t)
	f := &fleet{start(t), clusters}
	for release, cluster := range f.Clusters {
		f.addCluster(t, release, cluster)
	}
	for _, o := range gitops.Example(t, "applicationset.yaml") { // only the address differs
		gitops.Set(t, o, f.Git.URL, "spec", "template", "spec", "source", "repoURL")
		f.Create(t, o.Object)
	}

	t.Run("each cluster has the image of its release", f.awaitAll)
	t.Run("an image that never starts stops at the first wave", func(t *testing.T) {
		f.breakFirstWave(t, gitops.ExceedsDeadline, func(app *unstructured.Unstructured) bool {
			return text(app, "status", "health", "status") == "Degraded"
		})
	})
	t.Run("an image that never schedules stops at the first wave", func(t *testing.T) {
		f.breakFirstWave(t, gitops.NeverSchedules, func(app *unstructured.Unstructured) bool {
			return text(app, "status", "health", "status") == "Healthy" &&
				strings.Contains(text(app, "status", "operationState", "message"), "waiting for completion of hook")
		})
	})
	t.Run("an image that never starts stops at the limit of a later wave", f.breakLaterWave)
	t.Run("an upgraded cluster gets its image", f.upgrade)
}

// addCluster creates the Secret of a cluster.
func (f *fleet) addCluster(t *testing.T, name string, cluster *gitops.Cluster) {
	t.Helper()
	access := cluster.Config()
	ca, err := os.ReadFile(access.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"bearerToken": access.BearerToken,
		"tlsClientConfig": map[string]any{"caData": base64.StdEncoding.EncodeToString(ca)}})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]any{"argocd.argoproj.io/secret-type": "cluster", "scheduler": "custom", "wave": "rest"}
	if name == canary {
		labels["wave"] = "canary"
	}
	f.CreateSecret(t, name, labels, map[string]any{"name": name, "server": access.Host, "config": string(config)})
}

// awaitAll waits until each cluster runs the image of its release at the newest commit.
func (f *fleet) awaitAll(t *testing.T) {
	for release := range f.Clusters {
		f.await(t, release, release)
	}
}

// await waits until a cluster runs the image of a release at the newest commit, and its Application
// is synchronized and healthy.
func (f *fleet) await(t *testing.T, name, release string) {
	t.Helper()
	run.Eventually(t, name+" runs "+f.Images[release], func(ctx context.Context) (bool, string) {
		image, available := f.Clusters[name].Image(ctx, t)
		app := f.application(t, name)
		return image == f.Images[release] && available && text(app, "status", "health", "status") == "Healthy" &&
			text(app, "status", "sync", "status") == "Synced" && text(app, "status", "sync", "revision") == f.Commit &&
			f.stepOf(t, name) == "Healthy", image + "\n" + gitops.Status(app)
	})
}

// application returns the Application of a cluster.
func (f *fleet) application(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	return f.Get(t, kindOf("Application"), "my-scheduler-"+name)
}

// breakFirstWave commits other images. The image for the first wave does not work, and the other
// clusters keep theirs until an image that works is committed.
func (f *fleet) breakFirstWave(t *testing.T, broken string, stopped func(app *unstructured.Unstructured) bool) {
	before := maps.Clone(f.Images)
	for release := range f.Images {
		f.Images[release] = gitops.Image("with-"+broken, release)
	}
	f.Images[canary] = gitops.Image(broken, canary)
	f.Push(t)
	f.refresh(t, canary)
	f.awaitStopped(t, canary, stopped)
	f.checkHeld(t, before, canary)
	f.repair(t, canary, broken)
}

// breakLaterWave commits an image that does not start for one cluster of the second wave. Argo CD
// compares this cluster with the commit first, and does not hold it for the first wave: only the
// limit of its wave, one cluster, protects the others.
func (f *fleet) breakLaterWave(t *testing.T) {
	before := maps.Clone(f.Images)
	for release := range f.Images {
		f.Images[release] = gitops.Image("in-later-wave", release)
	}
	f.Images[gitops.Newest] = gitops.Image(gitops.ExceedsDeadline, gitops.Newest)
	f.Push(t)
	f.refresh(t, gitops.Newest)
	f.awaitStopped(t, gitops.Newest, func(app *unstructured.Unstructured) bool {
		return text(app, "status", "health", "status") == "Degraded"
	})
	f.refresh(t, canary)
	f.await(t, canary, canary)
	f.checkHeld(t, before, canary, gitops.Newest)
	f.repair(t, gitops.Newest, "in-later-wave")
}

// awaitStopped waits until a cluster has the newest image of its release, and the rollout waits for
// this cluster.
func (f *fleet) awaitStopped(t *testing.T, name string, stopped func(app *unstructured.Unstructured) bool) {
	t.Helper()
	run.Eventually(t, name+" has an image that does not work", func(ctx context.Context) (bool, string) {
		image, _ := f.Clusters[name].Image(ctx, t)
		app := f.application(t, name)
		return image == f.Images[name] && stopped(app) && f.stepOf(t, name) == "Progressing",
			image + "\n" + f.stepOf(t, name) + "\n" + gitops.Status(app)
	})
}

// checkHeld refreshes the Applications of all clusters except some. It checks that they wait, and
// after another reconciliation of the ApplicationSet still wait, and that the clusters keep their
// images.
func (f *fleet) checkHeld(t *testing.T, images map[string]string, except ...string) {
	t.Helper()
	var held []string
	for name := range f.Clusters {
		if !slices.Contains(except, name) {
			held = append(held, name)
		}
	}
	for _, name := range held {
		f.refresh(t, name)
		run.Eventually(t, name+" waits", func(context.Context) (bool, string) {
			app := f.application(t, name)
			return f.stepOf(t, name) == "Waiting" && text(app, "status", "sync", "status") == "OutOfSync" &&
				text(app, "status", "sync", "revision") == f.Commit, f.stepOf(t, name) + "\n" + gitops.Status(app)
		})
	}
	// The controller removes the annotation at the end of a reconciliation.
	const reconcile = "argocd.argoproj.io/application-set-refresh"
	f.Annotate(t, kindOf("ApplicationSet"), "my-scheduler", map[string]string{reconcile: "true"})
	run.Eventually(t, "the ApplicationSet is reconciled", func(context.Context) (bool, string) {
		set := f.Get(t, kindOf("ApplicationSet"), "my-scheduler")
		return set.GetAnnotations()[reconcile] == "", gitops.Status(set)
	})
	for _, name := range held {
		image, available := f.Clusters[name].Image(t.Context(), t)
		if status := f.stepOf(t, name); status != "Waiting" || image != images[name] || !available {
			t.Errorf("%s is %s and runs %s, available: %t, expected %s", name, status, image, available, images[name])
		}
	}
}

// repair commits an image that works for the release of a cluster. All clusters get their images.
func (f *fleet) repair(t *testing.T, name, broken string) {
	t.Helper()
	f.Images[name] = gitops.Image("after-"+broken, name)
	f.Push(t)
	f.refresh(t, name)
	for release := range f.Clusters {
		f.refresh(t, release)
	}
	f.awaitAll(t)
}

// refresh requests that Argo CD compares an Application with the newest commit, and waits until it
// has done so.
func (f *fleet) refresh(t *testing.T, name string) {
	t.Helper()
	f.Annotate(t, kindOf("Application"), "my-scheduler-"+name, map[string]string{refresh: "normal"})
	run.Eventually(t, name+" is refreshed", func(context.Context) (bool, string) {
		app := f.application(t, name)
		return app.GetAnnotations()[refresh] == "", gitops.Status(app)
	})
}

// stepOf returns the status of an Application in the rollout of the ApplicationSet.
func (f *fleet) stepOf(t *testing.T, name string) string {
	t.Helper()
	set := f.Get(t, kindOf("ApplicationSet"), "my-scheduler")
	statuses, _, _ := unstructured.NestedSlice(set.Object, "status", "applicationStatus")
	for _, s := range statuses {
		if s, isMap := s.(map[string]any); isMap && s["application"] == "my-scheduler-"+name {
			return fmt.Sprint(s["status"])
		}
	}
	return ""
}

// upgrade upgrades the API server of a cluster. Argo CD reads its version when it reads all objects
// of the cluster, not when it compares the Application.
func (f *fleet) upgrade(t *testing.T) {
	const name = gitops.Oldest
	f.Clusters[name].Upgrade(t, gitops.Next)
	f.refresh(t, name)
	f.await(t, name, name)
	secret := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	f.Annotate(t, secret, name, map[string]string{refresh: time.Now().UTC().Format(time.RFC3339)})
	run.Eventually(t, name+" runs "+f.Images[gitops.Next], func(ctx context.Context) (bool, string) {
		f.refresh(t, name)
		image, _ := f.Clusters[name].Image(ctx, t)
		return image == f.Images[gitops.Next], image
	})
	f.await(t, name, gitops.Next)
}

// text returns a field of an object, or "".
func text(o *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...)
	return value
}
