//go:build linux && releases

// Package flux runs Flux's source-controller and helm-controller with the chart of a release index
// and the HelmRelease of examples/gitops, for API servers of several releases. The controller
// managers, schedulers and kubelets of the clusters are played.
package flux

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/gitops"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// namespace of Flux and of the objects of the example.
const namespace = "flux-system"

// gitRepository is the kind of the source.
func gitRepository() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}
}

// helmRelease is the kind of a chart on a cluster.
func helmRelease() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}
}

// flux is a management cluster on which Flux runs.
type flux struct{ kube client.Client }

// start starts an API server with the CustomResourceDefinitions of Flux, and the controllers.
func start(t *testing.T, release string) *flux {
	t.Helper()
	plane := controlplane.StartAPIServer(t, release)
	kube, err := client.New(plane.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &flux{kube: kube}
	f.create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}})
	f.define(t, "source-controller", gitRepository())
	f.define(t, "helm-controller", helmRelease())
	artifacts, err := apiserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", plane.Kubeconfig)
	none := []string{"--metrics-addr=0", "--health-addr=0"}
	controlplane.NewProcess(t, run.Binary(t, "source-controller"), append(none, "--storage-path="+t.TempDir(),
		"--storage-addr="+artifacts, "--storage-adv-addr="+artifacts)...).Start()
	controlplane.NewProcess(t, run.Binary(t, "helm-controller"), none...).Start()
	return f
}

// define creates the CustomResourceDefinitions in the module of a controller, and waits until the
// API server serves one of their kinds.
func (f *flux) define(t *testing.T, controller string, kind schema.GroupVersionKind) {
	t.Helper()
	cmd := exec.CommandContext(run.Context(t), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/fluxcd/"+controller)
	cmd.Dir = filepath.Join(run.Root(), "hack", "tools", controller)
	dir := strings.TrimSpace(run.Command(t, cmd).OK(t).Stdout)
	files, err := filepath.Glob(filepath.Join(dir, "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CustomResourceDefinitions in %s: %v", dir, err)
	}
	for _, file := range files {
		for _, definition := range gitops.Objects(t, file) {
			f.create(t, definition)
		}
	}
	run.Eventually(t, kind.Kind+" is served", func(ctx context.Context) (bool, string) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := f.kube.List(ctx, list)
		return err == nil, fmt.Sprint(err)
	})
}

func (f *flux) create(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	if err := f.kube.Create(t.Context(), o); err != nil {
		t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

// patch changes a field or an annotation of an object.
func (f *flux) patch(t *testing.T, kind schema.GroupVersionKind, name, patch string) {
	t.Helper()
	if err := f.kube.Patch(t.Context(), f.get(t, kind, name),
		client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatalf("change %s %s: %v", kind.Kind, name, err)
	}
}

func (f *flux) get(t *testing.T, kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	if err := f.kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
		t.Fatalf("get %s %s: %v", kind.Kind, name, err)
	}
	return o
}
