// Package elasticquota is a portable plugin that shares a cluster between teams: each has a
// guaranteed capacity (min) and a limit (max), and may borrow other teams' unused capacity until
// they need it.
//
// A team's pods count in the order of their priority and age: pods that fit into its min are
// guaranteed, and the other pods borrow. A pod beyond max waits. If no node has room for a pod that
// fits into its team's min, pods that borrow are evicted, independent of their priority. Beyond
// that a team's pod evicts lower-priority pods that are in the same team, borrow, or have no team;
// never another team's guaranteed pods.
//
// The scheduler's own preemption does not know quotas, so it must not select victims for a team's
// pod: Filter rejects the node when it tries. It works as usual for pods without a team.
package elasticquota

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "ElasticQuota"

// ElasticQuota shares a cluster between teams.
type ElasticQuota struct {
	handle    scheduler.Handle
	args      *Arguments
	quotas    *quotas
	usage     *usage
	nominated *nominations
	evict     evictor
	evictions *prometheus.CounterVec
	// first is done when the ElasticQuotas are known. It is nil if they are ignored.
	first *customresource.First

	victims *scheduler.Status
	kept    *scheduler.Status

	// unrestricted is the pod, a *corev1.Pod, for which Filter rejects no node. Filter would
	// otherwise read the state of the cycle for each node.
	unrestricted atomic.Value
	// rejected are the pods that a quota rejected, or room that is kept, to be retried when quotas
	// change and when the room is no longer kept.
	rejected scheduler.RejectedPods

	mu     sync.Mutex
	seeded bool
}

// New returns the plugin configured by its arguments. It reads ElasticQuotas until ctx is done.
func New(ctx context.Context, args scheduler.Arguments, h scheduler.Handle) (*ElasticQuota, error) {
	a, fixed, err := decode(args)
	if err != nil {
		return nil, err
	}
	if h.ClientSet() == nil {
		return nil, fmt.Errorf("%s needs a cluster: the scheduler has no client", Name)
	}
	p := newPlugin(a, fixed, h, time.Now)
	if p.evictions, err = newMetrics(h.Metrics(), p.quotas, p.usage); err != nil {
		return nil, fmt.Errorf("register metrics of %s: %w", Name, err)
	}
	if a.Preemption == PreemptionEvict {
		config, err := h.KubeConfig()
		if err != nil {
			return nil, fmt.Errorf("%s evicts pods: %w", Name, err)
		}
		if p.evict, err = newEviction(config); err != nil {
			return nil, err
		}
	}
	scheduler.WatchPods(h, p.usage.observe, p.forget)
	go p.retryKept(ctx)
	if a.ElasticQuotas == ElasticQuotasIgnore {
		return p, nil
	}
	p.first = customresource.NewFirst()
	return p, p.watch(ctx)
}

func newPlugin(a *Arguments, fixed []*quota, h scheduler.Handle, now func() time.Time) *ElasticQuota {
	return &ElasticQuota{
		handle: h, args: a, quotas: newQuotas(fixed), usage: newUsage(), nominated: newNominations(now),
		victims: scheduler.Unresolvable("preemption is left to ElasticQuota"),
		kept:    scheduler.Unschedulable(reasonKept),
	}
}

// reasonKept is the reason for rejecting a pod that borrows although there is free room.
const reasonKept = "room is kept for a pod within its quota"

// Rules returns the permissions to evict pods and to read ElasticQuotas, as far as the arguments
// need them, and to retry pods.
func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error) {
	a, _, err := decode(args)
	if err != nil {
		return nil, err
	}
	var rules []rbacv1.PolicyRule
	if a.Preemption == PreemptionEvict {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"},
			Verbs: []string{"create"}})
	}
	if a.ElasticQuotas == ElasticQuotasAuto {
		rules = append(rules, scheduler.ActivateRule(), customresource.Rule(elasticQuotas()))
	}
	return rules, nil
}

// Name returns the plugin's name.
func (p *ElasticQuota) Name() string { return Name }

// Sign returns the parts of the pod that decide about its quota. PreFilter, which accepts or
// rejects a pod as a whole, runs for each pod.
func (p *ElasticQuota) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	return []string{pod.Namespace, pod.Labels[p.args.PreemptibleLabel]}, nil
}

// cycle is the state of a pod in a scheduling cycle.
type cycle struct {
	quota *quota
	need  amounts
	// guaranteed is set if the pod fits into its quota's min.
	guaranteed bool
	// excess is the amount by which the pod exceeds max. If there is an excess, full is the status
	// of nodes.
	excess amounts
	full   *scheduler.Status
	// removed is set while the scheduler's preemption tries the removal of pods.
	removed bool
}

// Clone implements scheduler.Cloner.
func (c *cycle) Clone() interface{} {
	clone := *c
	return &clone
}

func cycleOf(state scheduler.State) *cycle {
	value, _ := state.Read(Name)
	c, _ := value.(*cycle)
	return c
}

// PreFilter rejects a pod that its quota has no room for. The first pod waits until the quotas are
// known: a scheduler that has been restarted must not exceed them.
func (p *ElasticQuota) PreFilter(ctx context.Context, state scheduler.State,
	pod *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
	p.first.Wait(ctx)
	p.seed()
	q := p.quotas.of(pod.Namespace)
	if q == nil {
		return nil, scheduler.Skip()
	}
	used, need := p.usage.used(q, pod), scheduler.PodRequests(pod)
	if (len(q.beyondMax(used, need)) > 0 || p.protected(pod) && !p.fitsProtected(q, pod, need)) && p.recount(q) {
		used = p.usage.used(q, pod)
	}
	c := &cycle{quota: q, need: need, guaranteed: q.guarantees(used, need), excess: q.beyondMax(used, need)}
	switch {
	case p.protected(pod) && !p.fitsProtected(q, pod, need):
		p.nominated.abandon(pod.UID)
		return nil, p.reject(pod, fmt.Sprintf("quota %s: a pod that is not preemptible must fit into min", q.name))
	case len(c.excess) > 0:
		name := c.excess.First()
		// Without the usage: kube-scheduler writes the status of a pod whenever the reason is another
		// one, and schedules no other pod meanwhile. The metrics have it.
		reason := fmt.Sprintf("quota %s: no more than %s of %s", q.name, scheduler.FormatAmount(name, q.max[name]), name)
		if c.full = p.reject(pod, reason); !p.canEvict(pod) || !p.lowerInTeam(q, pod, c.excess) {
			p.nominated.abandon(pod.UID)
			return nil, c.full
		}
		c.full = scheduler.Unschedulable(reason) // preemption may help
	}
	state.Write(Name, c)
	if c.full == nil && (c.guaranteed || p.nominated.none()) {
		p.unrestricted.Store(pod)
	} else {
		p.unrestricted.Store((*corev1.Pod)(nil))
	}
	return nil, nil
}

// fitsProtected reports whether min covers a pod in addition to the quota's other pods that are
// never evicted.
func (p *ElasticQuota) fitsProtected(q *quota, pod *corev1.Pod, need amounts) bool {
	used := amounts{}
	for _, e := range p.usage.podsOf(q, p.protected) {
		if p.protected(e.pod) && e.pod.UID != pod.UID {
			used.Add(e.need, 1)
		}
	}
	return !q.concerns(need) || q.guarantees(used, need)
}

func (p *ElasticQuota) protected(pod *corev1.Pod) bool {
	return pod.Labels[p.args.PreemptibleLabel] == "false"
}

// AddPod implements scheduler.PreFilterExtensions. The usage of a quota does not depend on
// nominated pods.
func (p *ElasticQuota) AddPod(context.Context, scheduler.State, *corev1.Pod, *corev1.Pod,
	scheduler.NodeInfo) *scheduler.Status {
	return nil
}

// RemovePod implements scheduler.PreFilterExtensions. Only preemption removes pods.
func (p *ElasticQuota) RemovePod(_ context.Context, state scheduler.State, _ *corev1.Pod, _ *corev1.Pod,
	_ scheduler.NodeInfo) *scheduler.Status {
	if c := cycleOf(state); c != nil {
		c.removed = true
		p.unrestricted.Store((*corev1.Pod)(nil))
	}
	return nil
}

// Filter rejects nodes for a pod beyond max, room that is kept for other pods, and the victims of
// the scheduler's own preemption.
func (p *ElasticQuota) Filter(_ context.Context, state scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) *scheduler.Status {
	if unrestricted, ok := p.unrestricted.Load().(*corev1.Pod); ok && unrestricted == pod {
		return nil
	}
	c := cycleOf(state)
	switch {
	case c == nil:
		return nil
	case c.removed:
		return p.victims
	case c.full != nil:
		return c.full
	case c.guaranteed:
		return nil
	}
	kept := p.nominated.keptOn(node.Node().Name, pod.UID)
	if kept == nil {
		return nil
	}
	free := freeOf(node, c.need)
	free.Add(kept, -1)
	if len(free.Missing(c.need)) > 0 {
		p.rejected.Add(p.handle, pod)
		return p.kept
	}
	return nil
}

// Reserve counts a pod in its quota.
func (p *ElasticQuota) Reserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ string) *scheduler.Status {
	p.usage.put(pod, false)
	p.nominated.forget(pod.UID)
	p.rejected.Remove(pod.UID)
	return nil
}

// Unreserve gives the room in the quota back.
func (p *ElasticQuota) Unreserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ string) {
	p.usage.unreserve(pod)
}
