package extender

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// preempt returns the candidates on which the pod fits without the victims. It does not change the
// victims: the scheduler refuses other ones.
func (c *call) preempt(a *preemptArguments) (*extenderv1.ExtenderPreemptionResult, error) {
	result := &extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
	said, err := c.preFilter(func(*served) bool { return true })
	if err != nil || said.rejected != nil {
		return result, err
	}
	names := slices.Sorted(maps.Keys(a.victims))
	infos, err := c.nodesOf(&nodeArguments{names: names})
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if c.ctx.Err() != nil {
			return nil, c.ctx.Err()
		}
		known, ok := infos[i].(*node)
		if !ok || said.allowed != nil && !said.allowed[name] {
			continue
		}
		fits, err := c.fitsWithout(known, a.victims[name], a.pods[name], said.skip)
		if err != nil {
			return nil, err
		}
		if fits {
			result.NodeNameToMetaVictims[name] = a.victims[name]
		}
	}
	return result, nil
}

// fitsWithout filters a node without the victims. Victims that the cache does not have on the node
// do not count there anyway.
func (c *call) fitsWithout(n *node, victims *extenderv1.MetaVictims, sent []*corev1.Pod,
	skip map[*served]bool) (bool, error) {
	trial := &call{Extender: c.Extender, ctx: c.ctx, pod: c.pod, state: c.state.Clone()}
	for i, victim := range victims.Pods {
		less, gone := n.without(types.UID(victim.UID))
		if gone == nil && sent != nil {
			gone = sent[i]
		}
		n = less
		if gone == nil {
			continue
		}
		if err := trial.removed(gone, n, skip); err != nil {
			return false, err
		}
	}
	for _, p := range c.policies {
		if p.filter == nil || skip[p] {
			continue
		}
		var status *scheduler.Status
		err := c.guarded(p, func() error {
			status = p.filter.Filter(trial.ctx, trial.state, trial.pod, n)
			if rejects(status) {
				return nil
			}
			return failure(p, "Filter of node "+n.object.Name, status)
		})
		if err != nil || !status.IsSuccess() {
			return false, err
		}
	}
	return true, nil
}

func (c *call) removed(gone *corev1.Pod, n *node, skip map[*served]bool) error {
	for _, p := range c.policies {
		if p.preFilter == nil || p.removal == nil || skip[p] {
			continue
		}
		err := c.guarded(p, func() error {
			return failure(p, "RemovePod on node "+n.object.Name, p.removal.RemovePod(c.ctx, c.state, c.pod, gone, n))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
