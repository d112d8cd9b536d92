package capture

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

const (
	// outageTime is the longest tolerated outage of a watched API server.
	outageTime = 24 * time.Hour
	// rewatchPause separates the watches for a kind that end at once.
	rewatchPause = time.Second
)

// Store is a [Sink] whose objects can be read.
type Store interface {
	Sink
	Each(resource string, do func(key string, object []byte) error) error
}

// Change is called for a change to an object: object is its JSON, with the fields that schedulers
// read, or without them if it is gone and was not seen when it went.
type Change func(gone bool, object []byte) error

// Follower watches the objects that it has read.
type Follower struct {
	// Result describes the objects that were read.
	Result *Result

	c        *collector
	served   []served
	requests *kubeapi.Retrier
	seed     maphash.Seed

	mu     sync.Mutex // of the calls of changed, and of everything below
	change Change
	// known are the objects' hashes, by resource and key.
	known  map[string]map[string]uint64
	listed int
}

// Read reads the objects of kinds into a store, as [Cluster] does, so that they can be followed.
func Read(ctx context.Context, cfg *rest.Config, kinds []*snapshot.Kind, store Store, o Options) (*Follower, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = 0 // it would end watches; requests for lists have another timeout
	c, all, err := readAll(ctx, cfg, kinds, store, o)
	if err != nil {
		return nil, err
	}
	f := &Follower{
		Result: c.result, c: c, requests: &kubeapi.Retrier{Log: o.Log, Patience: outageTime}, seed: maphash.MakeSeed(),
		known: map[string]map[string]uint64{},
	}
	for _, r := range c.result.Resources {
		resource := r.GroupResource()
		known := map[string]uint64{}
		f.known[resource] = known
		err := store.Each(resource, func(key string, object []byte) error {
			known[key] = maphash.Bytes(f.seed, object)
			return nil
		})
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(s served) bool { return s.kind.GroupResource() == resource })
		f.served = append(f.served, all[at])
	}
	return f, nil
}

// Listed returns how often the objects of a kind were listed again.
func (f *Follower) Listed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listed
}

// Follow calls change for each change that a scheduler reads, one after the other, until ctx is
// done. It only watches: it lists a kind again if the API server does not have the changes since
// the last event any more.
func (f *Follower) Follow(ctx context.Context, change Change) error {
	f.change = change
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range f.served {
		version := f.Result.Resources[i].ResourceVersion
		if version == "" {
			version = f.Result.ResourceVersion
		}
		group.Go(func() error { return f.follow(ctx, s, version) })
	}
	return group.Wait()
}

// follow watches a kind until ctx is done.
func (f *Follower) follow(ctx context.Context, s served, version string) error {
	for {
		begin := time.Now()
		err := f.watch(ctx, s, &version)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the end of the recording
		case lost(err):
			if version, err = f.relist(ctx, s, err); err != nil && ctx.Err() == nil {
				return err
			}
		case kubeapi.Transient(err): // the event of a watch
			f.c.o.log().Warn("a watch ended", zap.Error(err))
		case err != nil:
			return problem.WithHint(err, "`pmk-sched record --rbac` prints the permissions that a recording needs")
		}
		if time.Since(begin) < rewatchPause && clock.Sleep(ctx, rewatchPause) != nil {
			return nil //nolint:nilerr // the end of the recording
		}
	}
}

// relist reads a kind again, and returns its version. Objects that are missing are gone.
func (f *Follower) relist(ctx context.Context, s served, cause error) (version string, err error) {
	resource := s.kind.GroupResource()
	f.c.o.log().Warn("the API server does not have the changes any more, listing", zap.String("resource", resource),
		zap.Error(cause))
	again := &relisted{f: f, kind: s.kind, seen: map[string]bool{}}
	c := &collector{o: Options{PageSize: f.c.o.PageSize, Log: f.c.o.Log}, sink: again, requests: f.requests,
		result: &Result{}}
	if version, err = c.list(ctx, s); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listed++
	for key := range f.known[resource] {
		if again.seen[key] {
			continue
		}
		object, err := snapshot.Encode(named(s, key))
		if err == nil {
			err = f.gone(resource, key, object)
		}
		if err != nil {
			return "", err
		}
	}
	return version, nil
}

// relisted is the sink for a kind that is listed again.
type relisted struct {
	f    *Follower
	kind *snapshot.Kind
	seen map[string]bool
}

// Add implements [Sink].
func (r *relisted) Add(resource, key string, object []byte) error {
	r.seen[key] = true
	return r.f.set(resource, key, object)
}

// Count implements [Sink].
func (r *relisted) Count(string) int { return 0 }

// Truncate implements [Sink]: objects that are listed twice have changed once.
func (r *relisted) Truncate(string, int) {}

// set reports an object if it has changed.
func (f *Follower) set(resource, key string, object []byte) error {
	hash := maphash.Bytes(f.seed, object)
	f.mu.Lock()
	defer f.mu.Unlock()
	if before, ok := f.known[resource][key]; ok && before == hash {
		return nil
	}
	f.known[resource][key] = hash
	f.c.o.log().Debug("changed", zap.String("object", resource+" "+key))
	return f.change(false, object)
}

// gone reports that an object is gone, if it was there. f.mu is held.
func (f *Follower) gone(resource, key string, object []byte) error {
	if _, ok := f.known[resource][key]; !ok {
		return nil
	}
	delete(f.known[resource], key)
	f.c.o.log().Debug("gone", zap.String("object", resource+" "+key))
	return f.change(true, object)
}

// named returns an object with a key, of which nothing else is known.
func named(s served, key string) map[string]any {
	metadata := map[string]any{"name": key}
	if namespace, name, ok := strings.Cut(key, "/"); ok && s.kind.Namespaced {
		metadata = map[string]any{"namespace": namespace, "name": name}
	}
	return map[string]any{"apiVersion": snapshot.APIVersion(s.kind.Group, s.version), "kind": s.kind.Name,
		"metadata": metadata}
}
