// Package customresource reads the objects of a custom resource for a portable plugin.
//
// A scheduler must start and schedule whether or not the resource exists. Watch therefore returns
// immediately and reads in the background until its context is done. A plugin that enforces a limit
// waits for the first objects with Options.First. It gets the objects through Options.Set and
// Options.Delete:
//
//   - After the CustomResourceDefinition is installed, Set is called for its objects within a
//     minute.
//   - When the resource does not exist anymore, Delete is called for all objects, and Set when it
//     exists again.
//   - While the API server is unavailable or refuses the request, the plugin keeps the last
//     objects.
//   - An object that Set cannot parse counts as deleted until it changes.
//
// Each of these changes is logged in one line, and an object that cannot be parsed once.
//
//	err := customresource.Watch(ctx, h, customresource.Options{
//		Plugin:   Name,
//		Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "racks"},
//		Missing:  "nodes are not scored",
//		Set:      p.setRack,
//		Delete:   p.deleteRack,
//	})
//
// The scheduler needs the permission that Rule returns. It does not retry pods when an object
// changes: a plugin that rejects pods because of the objects keeps them in scheduler.RejectedPods.
// Do not register cluster events for the resource instead: from 1.28 on kube-scheduler waits for it
// at startup.
package customresource

import (
	"context"
	"fmt"
	"net/http"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Options are the resource to read and the functions that get its objects. The functions are called
// one at a time.
type Options struct {
	// Plugin is the plugin's name, for log lines.
	Plugin string
	// Resource is the resource in a version that the API server serves.
	Resource schema.GroupVersionResource
	// Namespace restricts a namespaced resource to one namespace. Empty means all, or a cluster-wide
	// resource.
	Namespace string
	// Missing describes the plugin while the resource does not exist, for the log: "nodes are not
	// scored".
	Missing string
	// Set is called for each object, and again when the object changes, which it must not modify. If
	// Set returns an error, Delete is called for the object.
	Set func(object *unstructured.Unstructured) error
	// Delete is called for each object that is gone. It may be called for an object that Set was not
	// called for.
	Delete func(namespace, name string)
	// Observe, if it is not nil, is called for each list or watch that begins or fails, for metrics.
	Observe func(State)
	// First, if it is not nil, lets the plugin wait for the first objects.
	First *First
}

// State is the result of reading the resource.
type State string

// The states. All but the first are failures.
const (
	Readable State = "readable"
	// Missing: the resource does not exist.
	Missing State = "missing"
	// Forbidden: the scheduler has no permission to read the resource.
	Forbidden State = "forbidden"
	// Unreachable: the API server does not answer, or with another error.
	Unreachable State = "unreachable"
)

// Rule returns the permission to read a resource.
func Rule(resource schema.GroupVersionResource) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource},
		Verbs: []string{"get", "list", "watch"}}
}

// Watch reads the resource until ctx is done. It does not wait for the first objects. The API
// server is asked again after a failure, with a backoff from a second to a minute.
func Watch(ctx context.Context, h scheduler.Handle, o Options) error {
	name := o.Resource.GroupResource().String()
	config, err := h.KubeConfig()
	if err != nil {
		return fmt.Errorf("%s reads %s from the cluster: %w", o.Plugin, name, err)
	}
	r := &reader{Options: o, log: h.Logger(ctx), name: name, invalid: map[string]bool{}}
	// A list without changes calls no handler, and in old releases the watch error handler gets an
	// error without a status. The transport sees every response's status.
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return observer{next: next, answered: r.answered} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client for %s: %w", name, err)
	}
	return r.run(ctx, client)
}

func (r *reader) run(ctx context.Context, client dynamic.Interface) error {
	informer := dynamicinformer.NewFilteredDynamicInformer(client, r.Resource, r.Namespace, 0, cache.Indexers{},
		nil).Informer()
	r.store = informer.GetStore()
	err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		if ctx.Err() == nil {
			r.failed(err)
		}
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", r.name, err)
	}
	// The results differ between releases of client-go. They are not needed: the handler is never
	// removed.
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ //nolint:errcheck
		AddFunc:    r.set,
		UpdateFunc: func(_, now interface{}) { r.set(now) },
		DeleteFunc: r.remove,
	})
	go informer.Run(ctx.Done())
	go func() {
		// The informer has its objects before its handlers have been called for them.
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			r.synced()
		}
	}()
	return nil
}

// observer calls answered with each response's status, 0 if there is none.
type observer struct {
	next     http.RoundTripper
	answered func(status int)
}

// RoundTrip implements http.RoundTripper.
func (o observer) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	status := 0
	if err == nil {
		status = response.StatusCode
	}
	o.answered(status)
	return response, err
}
