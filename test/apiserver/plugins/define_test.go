//go:build linux

package plugins

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// define creates the CustomResourceDefinition of a plugin's testdata, until the test ends, and
// returns a client for its objects.
func (x *cluster) define(t *testing.T, plugin string,
	objects schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(x.Config())
	if err != nil {
		t.Fatal(err)
	}
	all, definition := client.Resource(definitions), read(t, plugin, "crd.yaml")
	create(t.Context(), t, all, definition)
	t.Cleanup(func() {
		run.Eventually(t, "the CustomResourceDefinition is gone", func(ctx context.Context) (bool, string) {
			err := all.Delete(ctx, definition.GetName(), metav1.DeleteOptions{})
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	})
	return client.Resource(objects)
}
