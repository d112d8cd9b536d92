package coscheduling

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// podGroups are the PodGroups of sigs.k8s.io/scheduler-plugins. Only their spec is read.
func podGroups() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
}

// podGroup is what is read of a PodGroup.
type podGroup struct {
	minMember int
	timeout   time.Duration // 0: that of the arguments
}

// groups has the PodGroups by namespace/name.
type groups struct {
	log     scheduler.Logger
	changed func(group string)

	mu     sync.RWMutex
	read   map[string]podGroup
	status int // of the API server's last response; 0: none
	logged int // the status that was logged last
}

func newGroups(log scheduler.Logger, changed func(string)) *groups {
	return &groups{log: log, changed: changed, read: map[string]podGroup{}}
}

// of returns a PodGroup. Without the CustomResourceDefinition there are none.
func (g *groups) of(group string) (podGroup, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	found, ok := g.read[group]
	return found, ok && g.status != http.StatusNotFound
}

// watch reads PodGroups until ctx is done. If their CustomResourceDefinition is not installed, the API server is asked again with a
// backoff of up to a minute. New does not wait for the informer, because the resource may never exist.
func (g *groups) watch(ctx context.Context, config *rest.Config) error {
	// In old releases the watch error handler gets an error without a status. The transport sees the status of every response.
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return observer{next: next, answered: g.answered} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client for PodGroups: %w", err)
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, podGroups(), "", 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { g.failed(err) }); err != nil {
		return fmt.Errorf("watch PodGroups: %w", err)
	}
	// The results differ between releases of client-go. They are not needed: the handler is never removed.
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ //nolint:errcheck
		AddFunc:    g.set,
		UpdateFunc: func(_, now interface{}) { g.set(now) },
		DeleteFunc: g.remove,
	})
	go informer.Run(ctx.Done())
	return nil
}

// set reads a PodGroup.
func (g *groups) set(object interface{}) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	key := u.GetNamespace() + "/" + u.GetName()
	size, found, err := unstructured.NestedInt64(u.Object, "spec", "minMember")
	seconds, _, wrong := unstructured.NestedInt64(u.Object, "spec", "scheduleTimeoutSeconds")
	if err == nil {
		err = wrong
	}
	if err == nil && (!found || size < 1) {
		err = fmt.Errorf("spec.minMember must be 1 or more")
	}
	if err != nil {
		g.log.Error(err, "Coscheduling cannot read a PodGroup", "podGroup", key)
		g.forget(key)
		return
	}
	timeout := time.Duration(seconds) * time.Second
	switch {
	case seconds < 0:
		timeout = 0
	case timeout > longestTimeout:
		timeout = longestTimeout
	}
	g.mu.Lock()
	g.read[key] = podGroup{minMember: int(size), timeout: timeout}
	g.mu.Unlock()
	g.changed(key)
}

// remove removes a PodGroup that the informer reported as deleted.
func (g *groups) remove(deleted interface{}) {
	if unknown, ok := deleted.(cache.DeletedFinalStateUnknown); ok {
		deleted = unknown.Obj
	}
	if u, ok := deleted.(*unstructured.Unstructured); ok {
		g.forget(u.GetNamespace() + "/" + u.GetName())
	}
}

func (g *groups) forget(key string) {
	g.mu.Lock()
	delete(g.read, key)
	g.mu.Unlock()
	g.changed(key)
}

// observer calls answered with the status of each response, 0 if there is none.
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

// answered records the status of a response, and logs when PodGroups become readable or are not installed.
func (g *groups) answered(status int) {
	g.mu.Lock()
	g.status = status
	news := g.logged != status && (status == http.StatusOK || status == http.StatusNotFound)
	if news {
		g.logged = status
	}
	g.mu.Unlock()
	switch {
	case !news:
	case status == http.StatusOK:
		g.log.Info(0, "Coscheduling reads PodGroups")
	default:
		g.log.Info(0, "Coscheduling finds no PodGroups, because their CustomResourceDefinition is not installed: sizes are read from labels")
	}
}

// failed logs the failure of a list or watch once. A closed watch and a missing resource are not failures.
func (g *groups) failed(err error) {
	g.mu.Lock()
	status := g.status
	news := g.logged != status && status != http.StatusOK && status != http.StatusNotFound && status != http.StatusGone
	if news {
		g.logged = status
	}
	g.mu.Unlock()
	if news {
		g.log.Error(err, "Coscheduling cannot read PodGroups; the last ones are used")
	}
}
