//go:build linux

// Package controllers installs the controller of CustomSchedulers on a real API server.
package controllers

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Install creates the objects of a controller in a namespace. It returns an administrator's client
// when the API server serves CustomSchedulers.
func Install(t testing.TB, s *apiserver.Server, ns string) client.Client {
	t.Helper()
	release, err := inspect.ServerRelease(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	return InstallWith(t, s, controller.ManifestOptions{Namespace: ns, Image: "localhost/pmk-sched:v1", Replicas: 1,
		Release: release})
}

// InstallWith is Install with options.
func InstallWith(t testing.TB, s *apiserver.Server, o controller.ManifestOptions) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kube, err := client.New(s.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := controller.Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := kube.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	run.Eventually(t, "the CustomResourceDefinition is served", func(ctx context.Context) (bool, string) {
		err := kube.List(ctx, &v1alpha1.CustomSchedulerList{}, client.InNamespace(o.Namespace))
		return err == nil, fmt.Sprint(err)
	})
	return kube
}
