// Package load creates a snapshot's objects on an API server that has none.
package load

import (
	"context"
	"errors"
	"sync"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// parallel is the number of requests at the same time.
const parallel = 16

// Loader creates objects. Add them in a snapshot's order, then call Wait.
type Loader struct {
	served   *served
	requests *kubeapi.Retrier
	storage  Storage

	mu         sync.Mutex
	uids       map[string]string // of the created objects, by their UIDs in the snapshot
	namespaces map[string]bool
	skipped    map[string]int // objects of kinds that the API server does not serve
	admitted   map[string][]byte
	refused    []string // objects that admission has refused, with its reasons
	batch      batch
	last       target // of the batch

	group   *errgroup.Group
	failed  context.Context // ends with the first failure of the group
	current *snapshot.Kind
}

// New returns a loader for an API server. If storage is not nil, it is the API server's storage,
// and nodes, pods and claims that come from an API server are written to it directly, since its
// admission has applied to them.
func New(ctx context.Context, cfg *rest.Config, storage Storage, log *zap.Logger) (*Loader, error) {
	l := &Loader{
		storage:  storage,
		requests: &kubeapi.Retrier{Log: log}, uids: map[string]string{}, skipped: map[string]int{},
		namespaces: map[string]bool{}, admitted: map[string][]byte{},
	}
	var err error
	l.served, err = discover(ctx, cfg, l.requests)
	return l, err
}

// Add creates an object, or will. Objects of one kind are created at the same time. The next kind's
// objects wait for them.
//
//nolint:contextcheck // the context of the group is made of ctx
func (l *Loader) Add(ctx context.Context, kind *snapshot.Kind, version string, o map[string]any) error {
	if l.current != kind || l.group == nil {
		if err := l.Wait(ctx); err != nil {
			return err
		}
		l.current = kind
		l.group, l.failed = errgroup.WithContext(ctx)
		l.group.SetLimit(parallel)
	}
	if l.failed.Err() != nil {
		return l.Wait(ctx)
	}
	group := l.failed
	l.group.Go(func() error { return l.make(group, kind, version, o, inBatch) })
	return nil
}

// Wait returns when all objects are created.
func (l *Loader) Wait(ctx context.Context) error {
	if l.group != nil {
		err := l.group.Wait()
		l.group = nil
		if err != nil {
			return err
		}
	}
	return l.flush(ctx)
}

// Skipped returns how many objects could not be created because the API server does not serve their
// kind, by resource.
func (l *Loader) Skipped() map[string]int { return l.skipped }

// Refused returns the objects that admission has refused, with its reasons.
func (l *Loader) Refused() []string { return l.refused }

// Create creates an object and writes its status. An object that is being deleted in the snapshot
// is deleted. The error is a [RefusedError] if admission refuses the object.
func (l *Loader) Create(ctx context.Context, kind *snapshot.Kind, version string, o map[string]any) error {
	return l.make(ctx, kind, version, o, now)
}

// when is when an object is created.
type when int

const (
	now     when = iota
	inBatch      // with others, in any order, before Wait returns
	inOrder      // like inBatch, after the objects before
)

func (l *Loader) make(ctx context.Context, kind *snapshot.Kind, version string, o map[string]any, w when) error {
	client, apiVersion := l.served.client(kind, version)
	if client == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.skipped[kind.GroupResource()]++
		return nil
	}
	c, ok := scenario.Complete(kind, o, l.uid)
	if !ok {
		return nil
	}
	c.Object["apiVersion"] = apiVersion
	target := newTarget(client, kind, o)
	if err := l.ensureNamespace(ctx, target); err != nil {
		return err
	}
	if key := l.storedAs(target, o); key != "" {
		if c.Deleted && !isKept(o) {
			return nil // the API server removes it at once
		}
		if err := l.store(ctx, key, target, c, o); err != nil || w != now {
			return err
		}
		return l.flush(ctx)
	}
	if w == inOrder {
		if err := l.flush(ctx); err != nil {
			return err
		}
	}
	err := l.create(ctx, target, c, o)
	var refused *RefusedError
	if errors.As(err, &refused) && w != now {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.refused = append(l.refused, target.String()+" is not created: "+refused.Reason)
		return nil
	}
	if err != nil {
		return err
	}
	if c.Status != nil {
		if err := l.patch(ctx, target, c.Status, "status"); err != nil {
			return err
		}
	}
	if c.Deleted {
		return l.markDeleted(ctx, target)
	}
	return nil
}

// Resource returns a kind's resource in the first version from [snapshot.Kind.Versions] that the
// API server serves. It is empty if there is none.
func (l *Loader) Resource(kind *snapshot.Kind) schema.GroupVersionResource {
	for _, version := range kind.Versions {
		if client, _ := l.served.client(kind, version); client != nil {
			return schema.GroupVersionResource{Group: kind.Group, Version: version, Resource: kind.Resource}
		}
	}
	return schema.GroupVersionResource{}
}

// Delete deletes an object that was created, at once, even if a scheduler protects it with a
// finalizer.
func (l *Loader) Delete(ctx context.Context, kind *snapshot.Kind, version string, o map[string]any) error {
	client, _ := l.served.client(kind, version)
	if client == nil {
		return nil
	}
	t := newTarget(client, kind, o)
	if kind.Name == "ResourceClaim" {
		err := l.patch(ctx, t, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return l.requests.Do(ctx, "delete "+t.String(), func(ctx context.Context) error {
		_, err := send(ctx,
			t.request("DELETE").Body([]byte(`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`)))
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

func (l *Loader) uid(old string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	replaced, ok := l.uids[old]
	return replaced, ok
}
