//go:build linux

package gitops

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Management is the API server on which an engine runs, with the namespace of the engine.
type Management struct {
	*controlplane.Plane

	namespace string
	kube      client.Client
}

// StartManagement starts an API server and creates the namespace. It ends with the test.
func StartManagement(t testing.TB, namespace string) *Management {
	t.Helper()
	m := &Management{Plane: controlplane.StartAPIServer(t, Newest), namespace: namespace}
	var err error
	if m.kube, err = client.New(m.Config(), client.Options{}); err != nil {
		t.Fatal(err)
	}
	m.Create(t, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}})
	return m
}

// Define creates the CustomResourceDefinitions in a directory of a module that a module below
// hack/tools requires, and waits until the API server serves them.
func (m *Management) Define(t testing.TB, tool, module, dir string) {
	t.Helper()
	cmd := exec.CommandContext(run.Context(t), "go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = filepath.Join(run.Root(), "hack", "tools", tool)
	dir = filepath.Join(strings.TrimSpace(run.Command(t, cmd).OK(t).Stdout), dir)
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var defined []*unstructured.Unstructured
	for _, file := range files {
		for _, o := range Objects(t, file) {
			if o.GetKind() == "CustomResourceDefinition" {
				m.Create(t, o.Object)
				defined = append(defined, o)
			}
		}
	}
	if len(defined) == 0 {
		t.Fatalf("no CustomResourceDefinitions in %s", dir)
	}
	for _, o := range defined {
		run.Eventually(t, o.GetName()+" is served", func(ctx context.Context) (bool, string) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(definedKind(o))
			err := m.kube.List(ctx, list)
			return err == nil, fmt.Sprint(err)
		})
	}
}

// definedKind returns the kind that a CustomResourceDefinition stores.
func definedKind(definition *unstructured.Unstructured) schema.GroupVersionKind {
	var kind schema.GroupVersionKind
	kind.Group, _, _ = unstructured.NestedString(definition.Object, "spec", "group")
	kind.Kind, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		if v, isMap := v.(map[string]any); isMap && v["storage"] == true {
			kind.Version = fmt.Sprint(v["name"])
		}
	}
	return kind
}

// Create creates an object.
func (m *Management) Create(t testing.TB, object map[string]any) {
	t.Helper()
	o := &unstructured.Unstructured{Object: object}
	if err := m.kube.Create(t.Context(), o); err != nil {
		t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

// CreateSecret creates a Secret in the namespace of the engine.
func (m *Management) CreateSecret(t testing.TB, name string, labels, data map[string]any) {
	t.Helper()
	m.Create(t, map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": data,
		"metadata": map[string]any{"namespace": m.namespace, "name": name, "labels": labels}})
}

// Get returns an object in the namespace of the engine, without content if it does not exist.
func (m *Management) Get(t testing.TB, kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	err := m.kube.Get(t.Context(), client.ObjectKey{Namespace: m.namespace, Name: name}, o)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("get %s %s: %v", kind.Kind, name, err)
	}
	return o
}

// Annotate sets annotations of an object in the namespace of the engine.
func (m *Management) Annotate(t testing.TB, kind schema.GroupVersionKind, name string, annotations map[string]string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(m.namespace)
	o.SetName(name)
	if err := m.kube.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatalf("annotate %s %s: %v", kind.Kind, name, err)
	}
}

// Status returns the status of an object as text.
func Status(o *unstructured.Unstructured) string {
	text, err := yaml.Marshal(o.Object["status"])
	if err != nil {
		return err.Error()
	}
	return string(text)
}
