//go:build linux

// Package extender deploys extenders to a real API server, wires them into schedulers and removes
// them again; and runs an extender against it to test its cache of nodes and pods, its bindings and
// its permissions.
package extender_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/versions"
)

var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, &server)) }

// notStable makes every wait for the Deployment of that name fail while it runs an image of that
// name.
type notStable struct{ deployment, image string }

// client is a client whose Deployments are stable at once, since no kubelet runs, except for the
// Deployment in fails.
type client struct {
	*apply.Client
	fails notStable
	// wait, if set, is called for every wait for a Deployment.
	wait func(ctx context.Context, name string) error
	kube kubernetes.Interface
}

func (c *client) WaitStable(ctx context.Context, ns, name string, _ apply.WaitOptions) error {
	if c.wait != nil {
		if err := c.wait(ctx, name); err != nil {
			return err
		}
	}
	d, err := c.kube.AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		if name == c.fails.deployment && strings.HasPrefix(container.Image, c.fails.image) {
			return errors.New("it does not become steady")
		}
	}
	return nil
}

// world is a namespace with a client of the API server.
type world struct {
	ns     string
	client *client
	deps   deploy.Deps
	kube   kubernetes.Interface
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kube := server.Client(t)
	real, err := apply.New(server.Config(), apply.Options{Log: zaptest.NewLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{ns: server.Namespace(t), kube: kube, client: &client{Client: real, kube: kube}}
	w.deps = deploy.Deps{
		Cluster: w.client, Holder: t.Name(),
		Binary: func(context.Context, *deploy.Plan, string) (configcheck.Binary, error) {
			return configcheck.Binary{}, configcheck.ErrNoBinary
		},
	}
	server.CollectGarbage(t, w.ns)
	return w
}

var release = versions.Release{Major: 1, Minor: 24, Patch: 3}

// schedulerDeployment returns the deployment of a scheduler.
func (w *world) schedulerDeployment(name string, spec v1alpha1.CustomSchedulerSpec) extenders.SchedulerDeployment {
	request := &v1alpha1.CustomScheduler{Spec: spec}
	request.Name, request.Namespace = name, w.ns
	return extenders.SchedulerDeployment{Request: request,
		Facts: deploy.Facts{Image: "localhost/scheduler:v1", Branch: release.String(), Now: time.Now()}}
}

// binpacking is a scheduler with the preset binpack.
var binpacking = v1alpha1.CustomSchedulerSpec{
	Credentials:   deploy.CredentialsServiceAccount,
	Configuration: v1alpha1.Configuration{Preset: "binpack"},
}

// scheduler deploys a scheduler.
func (w *world) scheduler(t *testing.T, name string, called ...v1alpha1.Extender) {
	t.Helper()
	s := w.schedulerDeployment(name, binpacking)
	s.Request.Spec.Extenders = called
	plan, err := deploy.NewPlan(s.Request, s.Facts)
	if err != nil {
		t.Fatal(err)
	}
	w.removeInTheEnd(t, name)
	if _, err := deploy.Deploy(t.Context(), w.deps, plan, deploy.RunOptions{}); err != nil {
		t.Fatal(err)
	}
}

// removeInTheEnd uninstalls name when the test ends: the next test uses the names of its
// cluster-scoped objects too.
func (w *world) removeInTheEnd(t *testing.T, name string) {
	t.Cleanup(func() {
		if _, err := deploy.Uninstall(context.WithoutCancel(t.Context()), w.deps, w.ns, name); err != nil {
			t.Errorf("in the end: %v", err)
		}
	})
}

func (w *world) options(name string) extenders.Options {
	yes := true
	return extenders.Options{
		Extender: v1alpha1.Extender{
			Name: name, Image: "localhost/extender:v1", Policies: []v1alpha1.Policy{{Name: "blockall"}}, Ignorable: &yes,
		},
		Namespace: w.ns, Now: time.Now(),
	}
}

func (w *world) deployment(t *testing.T, o extenders.Options, schedulers ...string) extenders.Deployment {
	x := extenders.Deployment{Options: o, Release: release}
	if o.Name == "ext" {
		w.removeInTheEnd(t, "ext")
	}
	for _, name := range schedulers {
		x.For = append(x.For, extenders.SchedulerRef{Namespace: w.ns, Name: name})
	}
	return x
}

// state is the content of all objects of pmk-sched for the names, in the namespace and at cluster
// scope, except revisions.
func (w *world) state(t *testing.T, names ...string) map[string]any {
	t.Helper()
	state := map[string]any{}
	for _, name := range names {
		owned, err := w.client.Owned(t.Context(), name, w.ns)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range owned {
			if o.GetLabels()["pmk-sched.io/revision"] != "" {
				continue
			}
			bare := o.DeepCopy()
			for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
				unstructured.RemoveNestedField(bare.Object, "metadata", field)
			}
			delete(bare.Object, "status")
			state[o.GetKind()+"/"+o.GetName()] = bare.Object
		}
	}
	return state
}

// configuration returns the scheduler's configuration from the ConfigMap that its pods mount.
func (w *world) configuration(t *testing.T, name string) string {
	t.Helper()
	d, err := w.kube.AppsV1().Deployments(w.ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Name != "config-file" && v.Name != "config" {
			continue
		}
		m, err := w.kube.CoreV1().ConfigMaps(w.ns).Get(t.Context(), v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Data[name+".yaml"] + m.Data["config.yaml"]
	}
	t.Fatalf("scheduler %s mounts no configuration", name)
	return ""
}

func (w *world) containers(t *testing.T, deployment string) map[string]string {
	t.Helper()
	d, err := w.kube.AppsV1().Deployments(w.ns).Get(t.Context(), deployment, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]string{}
	for _, c := range d.Spec.Template.Spec.Containers {
		images[c.Name] = c.Image
	}
	return images
}
