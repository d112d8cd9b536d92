package load

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

const (
	// servedTime is the time limit for the API server to serve a custom resource after its definition
	// was created.
	servedTime     = 30 * time.Second
	servedInterval = 200 * time.Millisecond
)

// Others creates objects of any kind, with their status, in their order. Custom resource
// definitions come before the resources; a missing one is made. kinds are the known custom resource
// kinds.
func Others(ctx context.Context, cfg *rest.Config, objects []map[string]any, kinds ...*snapshot.Kind) error {
	if len(objects) == 0 {
		return nil
	}
	objects = append(missingDefinitions(objects, kinds), objects...)
	finder, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	c := others{finder: finder, client: client}
	for _, o := range objects {
		object, err := typed(o)
		if err != nil {
			return err
		}
		if err := c.create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// typed returns an object with the numbers that the clients expect.
func typed(o map[string]any) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(o)
	object := &unstructured.Unstructured{}
	if err == nil {
		err = object.UnmarshalJSON(text)
	}
	if err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	return object, nil
}

// others creates objects.
type others struct {
	finder discovery.DiscoveryInterface
	client dynamic.Interface
	// mapper maps the kinds that the API server served when it was last asked. It is nil if the API
	// server has to be asked again.
	mapper meta.RESTMapper
}

// create creates an object. It waits for the API server to serve its kind.
func (c *others) create(ctx context.Context, o *unstructured.Unstructured) error {
	name := kubeapi.ObjectName(o.GetKind(), o.GetNamespace(), o.GetName())
	ctx, cancel := context.WithTimeout(ctx, servedTime)
	defer cancel()
	for {
		err := c.try(ctx, o)
		if err == nil {
			return nil
		}
		if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return kubeapi.Explain("create "+name, err)
		}
		c.mapper = nil
		if clock.Sleep(ctx, servedInterval) != nil {
			return kubeapi.Explain("create "+name, err)
		}
	}
}

func (c *others) try(ctx context.Context, o *unstructured.Unstructured) error {
	if c.mapper == nil {
		groups, err := restmapper.GetAPIGroupResources(c.finder)
		if err != nil {
			return err
		}
		c.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	}
	kind := o.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	var resource dynamic.ResourceInterface = c.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if o.GetNamespace() == "" {
			o.SetNamespace(metav1.NamespaceDefault)
		}
		if err := c.ensureNamespace(ctx, o.GetNamespace()); err != nil {
			return err
		}
		resource = c.client.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	created, err := resource.Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if o.Object["status"] == nil || created.Object["status"] != nil {
		return nil
	}
	created.Object["status"] = o.Object["status"] // a subresource: the API server dropped it
	_, err = resource.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	return err
}

func (c *others) ensureNamespace(ctx context.Context, name string) error {
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": name}}}
	namespaces := namespace.GroupVersionKind().GroupVersion().WithResource("namespaces")
	_, err := c.client.Resource(namespaces).Create(ctx, namespace, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
