package capture

import (
	"cmp"
	"context"
	"errors"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

const (
	// pageSize is the number of objects in one request, as in kubectl and client-go's reflectors.
	pageSize = 500
	// attempts limits the attempts to read a kind if the API server compacts it meanwhile, which it
	// does after 5 minutes by default.
	attempts = 3
)

// Sink gets the objects: package diskqueue implements it.
type Sink interface {
	// Add adds an object to a resource, by the resource's name and group, with the key that determines
	// its place.
	Add(resource, key string, object []byte) error
	// Count returns how many objects of a resource were added, and Truncate removes the objects
	// after the first n.
	Count(resource string) int
	Truncate(resource string, n int)
}

// Options say how to read. The zero value is ready to use.
type Options struct {
	// PageSize is the number of objects in one request. Defaults to 500.
	PageSize int
	// Pods counts the pods; it may be nil.
	Pods *snapshot.PodCounts
	// Log gets retries. It may be nil.
	Log *zap.Logger
}

// Result describes the objects that were read.
type Result struct {
	// ResourceVersion is the objects' resource version. Consistent is set if it is the same for all of
	// them.
	ResourceVersion string
	Consistent      bool
	Resources       []snapshot.Resource
	Skipped         []snapshot.Skipped
}

// Cluster reads the objects of kinds into a sink. It skips kinds that the API server does not
// serve, and kinds without permission unless they are required.
func Cluster(ctx context.Context, cfg *rest.Config, kinds []*snapshot.Kind, sink Sink, o Options) (*Result, error) {
	c, _, err := readAll(ctx, cfg, kinds, sink, o)
	if err != nil {
		return nil, err
	}
	return c.result, nil
}

// readAll is Cluster. It returns the kinds that the API server serves, too.
func readAll(
	ctx context.Context, cfg *rest.Config, kinds []*snapshot.Kind, sink Sink, o Options,
) (*collector, []served, error) {
	o.PageSize = cmp.Or(o.PageSize, pageSize)
	c := &collector{o: o, sink: sink, requests: &kubeapi.Retrier{Log: o.Log}, result: &Result{Consistent: true}}
	served, err := c.discover(ctx, cfg, kinds)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range served {
		steps.Progress(ctx, "read "+s.kind.GroupResource())
		if err := c.read(ctx, s); err != nil {
			return nil, nil, err
		}
	}
	return c, served, nil
}

// collector is one run of Cluster.
type collector struct {
	o        Options
	sink     Sink
	requests *kubeapi.Retrier
	result   *Result
}

// read reads one kind.
func (c *collector) read(ctx context.Context, s served) error {
	resource := s.kind.GroupResource()
	entry := snapshot.Resource{
		Group: s.kind.Group, Version: s.version, Resource: s.kind.Resource, Kind: s.kind.Name, Namespaced: s.kind.Namespaced,
		Custom: s.kind.Custom,
	}
	version, err := c.list(ctx, s)
	var forbidden *kubeapi.ForbiddenError
	switch {
	case errors.As(err, &forbidden) && !s.kind.Required && !s.kind.Custom:
		c.result.Skipped = append(c.result.Skipped, snapshot.Skipped{Resource: resource, Reason: snapshot.NotPermitted})
		return nil
	case errors.As(err, &forbidden):
		return problem.WithHint(err, "`pmk-sched snapshot --rbac` prints the permissions that a snapshot needs")
	case apierrors.IsNotFound(err): // removed since discovery
		c.result.Skipped = append(c.result.Skipped, snapshot.Skipped{Resource: resource, Reason: snapshot.NotServed})
		return nil
	case err != nil:
		return err
	}
	if c.result.ResourceVersion == "" {
		c.result.ResourceVersion = version
	}
	if version != c.result.ResourceVersion || version == "" {
		entry.ResourceVersion, c.result.Consistent = version, false
	}
	c.result.Resources = append(c.result.Resources, entry)
	return nil
}

// list reads all objects of a kind, and returns their resource version: the version at which the
// first kind was read, unless the API server has compacted it.
func (c *collector) list(ctx context.Context, s served) (version string, err error) {
	resource := s.kind.GroupResource()
	version = c.result.ResourceVersion
	for range attempts {
		begin, counts := c.sink.Count(resource), c.countedPods()
		version, err = c.listOnce(ctx, s, version)
		if !lost(err) {
			return version, err
		}
		c.o.log().Warn("the API server has compacted the resource version, reading again", zap.String("resource", resource),
			zap.Error(err))
		c.sink.Truncate(resource, begin)
		c.resetPods(counts)
		version = ""
	}
	return "",
		problem.Errorf(
			"try again when the API server has less to do; its flag --etcd-compaction-interval must be longer than listing "+
				"the objects takes",
			"list %s: the objects were compacted %d times while they were read: %w", resource, attempts, err)
}

// lost reports whether the API server does not have the requested resource version: it was
// compacted, or the objects are in another etcd, whose versions are lower.
func lost(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

func (c *collector) countedPods() snapshot.PodCounts {
	if c.o.Pods == nil {
		return snapshot.PodCounts{}
	}
	return *c.o.Pods
}

func (c *collector) resetPods(counts snapshot.PodCounts) {
	if c.o.Pods != nil {
		*c.o.Pods = counts
	}
}

func (o Options) log() *zap.Logger {
	if o.Log == nil {
		return zap.NewNop()
	}
	return o.Log
}

// listOnce reads all pages of a kind.
func (c *collector) listOnce(ctx context.Context, s served, version string) (string, error) {
	next := page{version: version}
	for {
		got, err := c.page(ctx, s, next)
		if err != nil {
			return "", err
		}
		if next.version == "" {
			next.version = got.version
		}
		if next.token = got.token; next.token == "" {
			return next.version, nil
		}
	}
}
