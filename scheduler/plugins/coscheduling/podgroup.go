package coscheduling

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// podGroups are the PodGroups of sigs.k8s.io/scheduler-plugins. Only their spec is read.
func podGroups() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
}

// podGroup is the part of a PodGroup that the plugin reads.
type podGroup struct {
	minMember int
	timeout   time.Duration // 0: the timeout of the arguments
}

// groups maps namespace/name to PodGroups.
type groups struct {
	changed func(group string)

	mu   sync.RWMutex
	read map[string]podGroup
}

func newGroups(changed func(string)) *groups {
	return &groups{changed: changed, read: map[string]podGroup{}}
}

// of returns a PodGroup.
func (g *groups) of(group string) (podGroup, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	found, ok := g.read[group]
	return found, ok
}

// watch reads PodGroups until ctx is done.
func (g *groups) watch(ctx context.Context, h scheduler.Handle) error {
	return customresource.Watch(ctx, h, customresource.Options{
		Plugin: Name, Resource: podGroups(), Missing: "sizes are read from labels", Set: g.set, Delete: g.remove,
	})
}

// set reads a PodGroup.
func (g *groups) set(u *unstructured.Unstructured) error {
	size, found, err := unstructured.NestedInt64(u.Object, "spec", "minMember")
	if err != nil {
		return err
	}
	seconds, _, err := unstructured.NestedInt64(u.Object, "spec", "scheduleTimeoutSeconds")
	if err != nil {
		return err
	}
	if !found || size < 1 {
		return fmt.Errorf("spec.minMember must be 1 or more")
	}
	timeout := time.Duration(seconds) * time.Second
	switch {
	case seconds < 0:
		timeout = 0
	case timeout > longestTimeout:
		timeout = longestTimeout
	}
	key := u.GetNamespace() + "/" + u.GetName()
	g.mu.Lock()
	g.read[key] = podGroup{minMember: int(size), timeout: timeout}
	g.mu.Unlock()
	g.changed(key)
	return nil
}

func (g *groups) remove(namespace, name string) {
	key := namespace + "/" + name
	g.mu.Lock()
	delete(g.read, key)
	g.mu.Unlock()
	g.changed(key)
}
