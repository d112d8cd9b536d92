package extender

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// call is one request's processing by the policies.
type call struct {
	*Extender
	ctx   context.Context
	pod   *corev1.Pod
	state *scheduler.MapState
}

// rejection is the reason why a node cannot run a pod. Nodes with the same Status share one.
type rejection struct {
	reason       string
	unresolvable bool
}

var errNotFilled = errors.New("the extender has not read the cluster's nodes and pods yet; /readyz reports when it has")

// newCall begins a request. With a cluster it fails until the cache is filled: until then nodes
// would seem unknown or idle.
func (e *Extender) newCall(ctx context.Context, pod *corev1.Pod) (*call, error) {
	if e.cache != nil && !e.cache.Synced() {
		return nil, errNotFilled
	}
	return &call{Extender: e, ctx: ctx, pod: pod, state: scheduler.NewMapState()}, nil
}

// nodesOf returns a request's nodes, nil for unknown ones. Without a cluster it uses the data in
// the request: the name, or the object.
func (c *call) nodesOf(a *nodeArguments) ([]scheduler.NodeInfo, error) {
	if a.whole != nil {
		return c.wholeNodesOf(a)
	}
	infos := make([]scheduler.NodeInfo, len(a.names))
	if c.cache != nil {
		c.cache.visit(a.names, func(i int, n *node) {
			if n.object != nil {
				infos[i] = n
			}
		})
		return infos, nil
	}
	for i, name := range a.names {
		if name != "" {
			infos[i] = &node{object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}}
		}
	}
	return infos, nil
}

// wholeNodesOf returns the nodes of a request that contains objects: the object is from the
// request, the pods are from the cache.
func (c *call) wholeNodesOf(a *nodeArguments) ([]scheduler.NodeInfo, error) {
	cached := make([]*node, len(a.names))
	if c.cache != nil {
		c.cache.visit(a.names, func(i int, n *node) { cached[i] = n })
	}
	infos := make([]scheduler.NodeInfo, len(a.names))
	return infos, spread(len(a.names), func(i int) error {
		n, version := cached[i], a.whole[i].resourceVersion
		if n == nil {
			n = &node{}
		}
		if n.object != nil && version != "" && n.object.ResourceVersion == version {
			infos[i] = n
			return nil
		}
		object, err := a.whole[i].object()
		if err != nil {
			return &requestError{fmt.Errorf("node %d of Nodes: %w", i, err)}
		}
		infos[i] = n.describedBy(object)
		return nil
	})
}

// failure returns an error, with the policy and the extension point, for a status that ends a
// request. It is nil if the status is a success.
func failure(p *served, point string, s *scheduler.Status) error {
	switch {
	case s.IsSuccess():
		return nil
	case s.Err() != nil:
		return fmt.Errorf("policy %s, %s: %w", p.name, point, s.Err())
	}
	return fmt.Errorf("policy %s, %s: %s", p.name, point, s)
}

func reject(p *served, s *scheduler.Status) *rejection {
	reason := strings.Join(s.Reasons(), ", ")
	if reason == "" {
		reason = "rejected by " + p.name
	}
	return &rejection{reason: reason, unresolvable: s.Code() == scheduler.CodeUnresolvable}
}

func rejects(s *scheduler.Status) bool {
	return s.Code() == scheduler.CodeUnschedulable || s.Code() == scheduler.CodeUnresolvable
}

// guarded runs a policy's code. A panic ends only the request, not the server.
func (c *call) guarded(p *served, do func() error) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			c.metrics.panics.WithLabelValues(p.name).Inc()
			c.log.Error("a policy panicked", zap.String("policy", p.name), zap.String("pod", c.pod.Namespace+"/"+c.pod.Name),
				zap.Any("panic", caught), zap.ByteString("stack", debug.Stack()))
			err = fmt.Errorf("policy %s panicked: %v", p.name, caught)
		}
	}()
	return do()
}

// With fewer nodes per processor, sharing the work costs more than it saves; the context is checked
// after each such number.
const (
	leastShare   = 256
	lookInterval = 64
)

// each calls do for 0 to n-1, on several processors if there are many. The first error ends all
// calls.
func (c *call) each(p *served, n int, do func(i int) error) error {
	workers := max(1, min(runtime.GOMAXPROCS(0), n/leastShare))
	part := func(from, to int) error {
		return c.guarded(p, func() error {
			for i := from; i < to; i++ {
				if i%lookInterval == 0 && c.ctx.Err() != nil {
					return c.ctx.Err()
				}
				if err := do(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if workers == 1 {
		return part(0, n)
	}
	failed := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() { failed[w] = part(w*n/workers, (w+1)*n/workers) })
	}
	group.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}
