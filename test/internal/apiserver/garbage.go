//go:build linux

package apiserver

import (
	"context"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CollectGarbage does the work of the garbage collector in a namespace until the test ends: it
// removes Deployments that are deleted in the foreground.
func (s *Server) CollectGarbage(t testing.TB, namespace string) {
	t.Helper()
	deployments := s.Client(t).AppsV1().Deployments(namespace)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			list, err := deployments.List(ctx, metav1.ListOptions{})
			if err == nil {
				for _, d := range list.Items {
					if slices.Contains(d.Finalizers, metav1.FinalizerDeleteDependents) {
						_, err = deployments.Patch(ctx, d.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
							metav1.PatchOptions{})
					}
				}
			}
			if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
				t.Errorf("collect garbage: %v", err)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
}
