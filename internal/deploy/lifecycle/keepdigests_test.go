package lifecycle

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// deployedExtender is a ledger with one deployed revision of an extender.
type deployedExtender struct {
	deploy.Cluster
	revision *apply.Revision
}

func (d deployedExtender) LastDeployed(context.Context, string, string) (*apply.Revision, error) {
	return d.revision, nil
}

// recorded returns a deployed revision with a record.
func recorded(t *testing.T, fields map[string]any) *apply.Revision {
	t.Helper()
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return &apply.Revision{RevisionInfo: apply.RevisionInfo{Number: 1, Status: apply.Deployed}, Record: text}
}

// A repair deploys the image that was deployed, although another one has its tag meanwhile.
func TestARepairKeepsTheDeployedImages(t *testing.T) {
	registry := newRegistry(t)
	s := &session.Session{Warn: func(string) {}, Note: func(string) {}, Log: zap.NewNop()}
	sidecar := "extender-sidecar"
	tags := map[string]string{"kube-scheduler": "", "extender": "", sidecar: ""}
	pinned := map[string]string{}
	for name := range tags {
		tags[name] = registry.push(t, name, false)
		located, err := pack.Locate(t.Context(), pack.LocateRequest{Reference: tags[name], Warn: s.Warn})
		if err != nil || !strings.HasPrefix(located.Name, tags[name]+"@sha256:") {
			t.Fatal(located.Name, err)
		}
		pinned[name] = located.Name
	}
	asked := &v1alpha1.CustomScheduler{}
	asked.Spec.Extenders = []v1alpha1.Extender{{Name: "sidecar", Sidecar: true,
		Deployed: &v1alpha1.DeployedExtender{Image: pinned[sidecar]}}}
	scheduler := recorded(t, map[string]any{"request": asked,
		"scheduler": manifest.Scheduler{Image: pinned["kube-scheduler"], Configuration: &profiles.Rendered{}}})
	ledger := deployedExtender{revision: recorded(t,
		map[string]any{"extender": manifest.Extender{Image: pinned["extender"]}})}
	for name := range tags { // the tags move
		registry.pushContent(t, name, "another "+name, false)
	}
	for name, c := range map[string]struct{ keep, moved bool }{
		"a repair":         {keep: true},
		"a new deployment": {moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &request{deps: deploy.Deps{Cluster: ledger}, keepImages: c.keep}
			r.Cluster = &inspect.Info{Release: versions.Release{Major: 1, Minor: 24, Patch: 3}}
			r.Image, r.Request = tags["kube-scheduler"], &v1alpha1.CustomScheduler{}
			r.Extenders = []extenders.Options{
				{Extender: v1alpha1.Extender{Name: "extender", Image: tags["extender"]}},
				{Extender: v1alpha1.Extender{Name: "sidecar", Image: tags[sidecar], Sidecar: true}},
			}
			r.Former = &extenders.Former{Revision: scheduler}
			if err := r.locateImages(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			for i, image := range []string{"kube-scheduler", "extender", sidecar} {
				if got := *r.Images()[i]; (got != pinned[image]) != c.moved || !strings.Contains(got, "@sha256:") {
					t.Errorf("got %s, deployed is %s", got, pinned[image])
				}
			}
		})
	}
}

// What no cluster accepts is found before anything is asked or changed.
func TestValidateFindsWhatNoClusterAccepts(t *testing.T) {
	s := &session.Session{Warn: func(string) {}, Note: func(string) {}, Log: zap.NewNop()}
	for name, c := range map[string]struct {
		change func(*v1alpha1.CustomScheduler)
		reason string
	}{
		"a scheduler": {func(*v1alpha1.CustomScheduler) {}, ""},
		"a signed scheduler": {func(o *v1alpha1.CustomScheduler) {
			o.Spec.Image.RequireSignature = "-----BEGIN PUBLIC KEY-----\n"
		}, "key"},
		"an image":    {func(o *v1alpha1.CustomScheduler) { o.Spec.Image.Reference = "Not a name" }, "invalid image name"},
		"a name":      {func(o *v1alpha1.CustomScheduler) { o.Name = "my.scheduler" }, "DNS label"},
		"a used name": {func(o *v1alpha1.CustomScheduler) { o.Name = "default" }, "used by the cluster"},
		"an extender": {func(o *v1alpha1.CustomScheduler) {
			o.Spec.Extenders = []v1alpha1.Extender{{Name: "e"}}
		}, "--policy is required"},
		"a preset": {func(o *v1alpha1.CustomScheduler) { o.Spec.Configuration.Preset = "none" }, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &v1alpha1.CustomScheduler{}
			object.Name, object.Spec.Source.Branch, object.Spec.Image.Reference = "s", "v1.24.3", "localhost/s:v1"
			c.change(object)
			empty, err := spec.Read(spec.Flags{Version: "v0.0.0-test"})
			if err != nil {
				t.Fatal(err)
			}
			sp, err := empty.Named(object.Name, "kube-system").Again(deploy.Installed{Request: object,
				Credentials: deploy.CredentialsServiceAccount}, "v1.24.3", false)
			if err == nil {
				err = Validate(t.Context(), s, sp)
			}
			if (err == nil) != (c.reason == "") || err != nil && !strings.Contains(err.Error(), c.reason) {
				t.Errorf("got %v, want %q", err, c.reason)
			}
		})
	}
}
