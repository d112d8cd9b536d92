package elasticquota

import (
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type search struct {
	p   *ElasticQuota
	pod *corev1.Pod
	c   *cycle
	// guaranteed are the pods of other quotas that do not borrow, by quota. It is filled as needed.
	guaranteed map[*quota]map[types.UID]bool
	// spared are pods that the API server refuses to evict.
	spared map[types.UID]bool
}

func (p *ElasticQuota) newSearch(pod *corev1.Pod, c *cycle) *search {
	return &search{p: p, pod: pod, c: c, guaranteed: map[*quota]map[types.UID]bool{}, spared: map[types.UID]bool{}}
}

// choice is a node, and the pods that must be evicted for the pod to fit.
type choice struct {
	node    string
	victims []*corev1.Pod
	// leaving are pods on the node that are being deleted.
	leaving []*corev1.Pod
}

// best returns the node whose victims have the lowest priority and are the fewest, or nil if no
// node has victims that suffice.
func (s *search) best(nodes []scheduler.NodeInfo, rejected scheduler.Rejections) *choice {
	var best *choice
	for _, node := range nodes {
		if node.Node() == nil || !onlyRoomIsMissing(rejected.Status(node.Node().Name)) {
			continue
		}
		if other := s.choose(node); other != nil && (best == nil || other.cheaper(best)) {
			best = other
		}
	}
	return best
}

// cheaper compares choices. Victims are in the order of their priorities, the highest one last.
func (c *choice) cheaper(than *choice) bool {
	a, b := len(c.victims), len(than.victims)
	if a == 0 || b == 0 {
		return a < b
	}
	if x, y := scheduler.PodPriority(c.victims[a-1]), scheduler.PodPriority(than.victims[b-1]); x != y {
		return x < y
	}
	if a != b {
		return a < b
	}
	return c.node < than.node
}

// onlyRoomIsMissing reports whether a node was rejected because of resources or quotas alone, as
// far as its filters ran.
func onlyRoomIsMissing(status *scheduler.Status) bool {
	if status.Code() != scheduler.CodeUnschedulable || len(status.Reasons()) == 0 {
		return false
	}
	for _, reason := range status.Reasons() {
		// As pkg/scheduler/framework/plugins/noderesources/fit.go has them.
		if !strings.HasPrefix(reason, "Insufficient ") && reason != "Too many pods" && reason != reasonKept &&
			!strings.HasPrefix(reason, "quota ") {
			return false
		}
	}
	return true
}

// choose returns the pods that must be evicted for the pod to fit on a node and into max. It
// returns nil if evictions do not suffice, or if the pod fits without them.
func (s *search) choose(node scheduler.NodeInfo) *choice {
	c := &choice{node: node.Node().Name}
	free := freeOf(node, s.c.need)
	free.Add(s.p.nominated.keptOn(node.Node().Name, s.pod.UID), -1)
	var candidates []*corev1.Pod
	for i := 0; i < node.PodCount(); i++ {
		switch other := node.Pod(i); {
		case other.DeletionTimestamp != nil:
			free.Add(scheduler.PodRequests(other), 1)
			c.leaving = append(c.leaving, other)
		case s.mayEvict(other):
			candidates = append(candidates, other)
		}
	}
	var ok bool
	if c.victims, ok = cover(free.Missing(s.c.need), candidates); ok && len(s.c.excess) > 0 {
		c.victims, ok = s.coverExcess(c.victims)
	}
	if !ok || len(c.victims)+len(c.leaving) == 0 {
		return nil
	}
	return c
}

// cover returns the candidates of the lowest priority, the newest first, that free the missing
// amounts, without the candidates that are not needed.
func cover(missing amounts, candidates []*corev1.Pod) ([]*corev1.Pod, bool) {
	sort.Slice(candidates, func(i, j int) bool { return before(candidates[j], candidates[i]) })
	freed := amounts{}
	var taken []*corev1.Pod
	for _, candidate := range candidates {
		need := scheduler.PodRequests(candidate)
		if haveAny(need, freed.Missing(missing)) {
			freed.Add(need, 1)
			taken = append(taken, candidate)
		}
	}
	if len(freed.Missing(missing)) > 0 {
		return nil, false
	}
	// Those of the highest priority come first. The last one is needed: its room was missing when it
	// was taken. It may make earlier ones unnecessary.
	for i := len(taken) - 2; i >= 0; i-- {
		without := freed.Clone()
		without.Add(scheduler.PodRequests(taken[i]), -1)
		if len(without.Missing(missing)) == 0 {
			freed = without
			taken = append(taken[:i:i], taken[i+1:]...)
		}
	}
	return taken, true
}

// coverExcess adds pods of the team on any node until the quota has room.
func (s *search) coverExcess(victims []*corev1.Pod) ([]*corev1.Pod, bool) {
	missing := s.c.excess.Clone()
	taken := map[types.UID]bool{}
	for _, victim := range victims {
		if taken[victim.UID] = true; s.p.quotas.of(victim.Namespace) == s.c.quota {
			missing.Add(scheduler.PodRequests(victim), -1)
		}
	}
	var candidates []*corev1.Pod
	for _, e := range s.p.usage.podsOf(s.c.quota, s.p.protected) {
		if e.bound && !taken[e.pod.UID] && s.mayEvict(e.pod) {
			candidates = append(candidates, e.pod)
		}
	}
	more, ok := cover(missing, candidates)
	all := append(append([]*corev1.Pod(nil), victims...), more...)
	sort.Slice(all, func(i, j int) bool { return before(all[j], all[i]) })
	return all, ok
}

// mayEvict reports whether a pod may be evicted to make room for the search's pod.
func (s *search) mayEvict(other *corev1.Pod) bool {
	if other.UID == s.pod.UID || s.spared[other.UID] || s.p.protected(other) {
		return false
	}
	lower := scheduler.PodPriority(other) < scheduler.PodPriority(s.pod)
	q := s.p.quotas.of(other.Namespace)
	switch {
	case q == nil || q == s.c.quota:
		return lower
	case !s.c.guaranteed && !lower:
		return false
	}
	if s.guaranteed[q] == nil {
		s.guaranteed[q] = s.p.usage.guaranteed(q, s.p.protected)
	}
	return !s.guaranteed[q][other.UID]
}
