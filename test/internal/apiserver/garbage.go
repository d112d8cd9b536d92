//go:build linux

package apiserver

import (
	"context"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// collected are the resources whose objects are removed.
func collected() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "configmaps"},
	}
}

// CollectGarbage does the work of the garbage collector in a namespace until the test ends or stop
// is called: it removes Deployments, pods and ConfigMaps that are deleted in the foreground.
func (s *Server) CollectGarbage(t testing.TB, namespace string) (stop func()) {
	t.Helper()
	api, err := metadata.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, resource := range collected() {
				err := collect(ctx, api.Resource(resource).Namespace(namespace))
				if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
					t.Errorf("collect garbage: %v", err)
					return
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return stop
}

// collect removes the objects that are deleted in the foreground: no object depends on them.
func collect(ctx context.Context, objects metadata.ResourceInterface) error {
	list, err := objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, o := range list.Items {
		if !slices.Contains(o.Finalizers, metav1.FinalizerDeleteDependents) {
			continue
		}
		if _, err := objects.Patch(ctx, o.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}
