package extender

import (
	"fmt"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// unknownNode is the reason for a node that the cache has not seen yet but the scheduler has.
var unknownNode = rejection{reason: "the extender does not know the node yet"}

type preFiltered struct {
	// skip are the policies whose Filter is skipped.
	skip map[*served]bool
	// rejected is the reason why no node fits, nil if some may.
	rejected *rejection
	// allowed are the candidate nodes, nil if all.
	allowed map[string]bool
	// narrowed is the reason why other nodes are not candidates.
	narrowed *rejection
}

func (c *call) preFilter(takesPart func(*served) bool) (*preFiltered, error) {
	said := &preFiltered{skip: map[*served]bool{}}
	for _, p := range c.policies {
		// A scheduler of 1.37 can ask about a running pod whose resize the kubelet has deferred. The
		// policies have decided about it before.
		if c.pod.Spec.NodeName != "" {
			said.skip[p] = true
			continue
		}
		if p.preFilter == nil || !takesPart(p) {
			continue
		}
		err := c.guarded(p, func() error {
			result, status := p.preFilter.PreFilter(c.ctx, c.state, c.pod)
			switch {
			case status.Code() == scheduler.CodeSkip:
				said.skip[p] = true
			case rejects(status):
				said.rejected = reject(p, status)
			case status.IsSuccess() && result != nil:
				said.narrow(p, result.Nodes)
			default:
				return failure(p, "PreFilter", status)
			}
			return nil
		})
		if err != nil || said.rejected != nil {
			return said, err
		}
	}
	return said, nil
}

// narrow keeps only nodes that all policies so far have named.
func (s *preFiltered) narrow(p *served, nodes []string) {
	both := make(map[string]bool, len(nodes))
	for _, name := range nodes {
		if s.allowed == nil || s.allowed[name] {
			both[name] = true
		}
	}
	s.allowed = both
	s.narrowed = &rejection{reason: fmt.Sprintf("not among the nodes that %s named", p.name), unresolvable: true}
}

// filter returns for each node of a request the reason why it cannot run the pod, nil if it can.
func (c *call) filter(a *nodeArguments) ([]*rejection, error) {
	rejected := make([]*rejection, len(a.names))
	said, err := c.preFilter(func(*served) bool { return true })
	if err != nil {
		return nil, err
	}
	infos, err := c.nodesOf(a)
	if err != nil {
		return nil, err
	}
	for i, name := range a.names {
		switch {
		case said.rejected != nil:
			rejected[i] = said.rejected
		case said.allowed != nil && !said.allowed[name]:
			rejected[i] = said.narrowed
		case infos[i] == nil:
			rejected[i] = &unknownNode
		}
	}
	for _, p := range c.policies {
		if p.filter == nil || said.skip[p] || said.rejected != nil {
			continue
		}
		err := c.each(p, len(infos), func(i int) error {
			if rejected[i] != nil {
				return nil
			}
			status := p.filter.Filter(c.ctx, c.state, c.pod, infos[i])
			if rejects(status) {
				rejected[i] = reject(p, status)
				return nil
			}
			if status.IsSuccess() {
				return nil
			}
			return failure(p, "Filter of node "+a.names[i], status)
		})
		if err != nil {
			return nil, err
		}
	}
	return rejected, nil
}
