package arbiter

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// admittedFor is the time for which an admitted binding counts if the pod is not seen on the node:
// the binding may have failed after its admission. API servers end requests earlier.
const admittedFor = 30 * time.Second

// hostPort is the name of the resource in a shortage of host ports.
const hostPort = "host port"

// Ledger knows what each node has left: what is allocatable minus the requests of the pods that are
// bound to it or whose bindings it has admitted. It is safe for concurrent use.
//
// It counts as kubelets do when they admit a pod (pkg/kubelet/lifecycle/predicate.go): pods that
// have not ended count, also while they terminate; requests count as schedulers count them; a
// resource that the node does not have is not checked.
type Ledger struct {
	now func() time.Time

	mu    sync.Mutex
	nodes map[string]*node
	pods  map[types.UID]*entry
	uids  map[types.NamespacedName]types.UID
}

// node is one node's pods. allocatable is nil while the node is not known.
type node struct {
	allocatable scheduler.Amounts
	pods        map[types.UID]*entry
	// nominated are the pods without a node for which pods on this one were evicted.
	nominated map[types.UID]*entry
}

// entry is a pod, and where it counts.
type entry struct {
	*Pod
	on string
	// admitted is the time at which the ledger admitted the binding to the node, or zero.
	admitted time.Time
	// nominated is the node on which room is kept for the pod since the time nominatedAt, or "".
	nominated   string
	nominatedAt time.Time
}

// Decision is a ledger's answer to a binding.
type Decision string

// Decisions. Only Refused refuses.
const (
	Admitted Decision = "admitted"
	Refused  Decision = "refused"
	// Critical pods are admitted: kubelets evict others for them.
	Critical Decision = "critical"
	// UnknownPod and UnknownNode were not seen yet.
	UnknownPod  Decision = "unknown_pod"
	UnknownNode Decision = "unknown_node"
	// Bound pods have a node; the API server refuses another binding.
	Bound Decision = "bound"
)

// Shortage is what a node lacks for a pod.
type Shortage struct {
	Resource        corev1.ResourceName
	Requested, Left int64
	// Taker is the pod that was admitted last to the node and took some of the resource, or nil.
	Taker *Pod
	// Keeps is set if Taker does not have the room yet: it is nominated for the node.
	Keeps bool
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{now: time.Now, nodes: map[string]*node{}, pods: map[types.UID]*entry{},
		uids: map[types.NamespacedName]types.UID{}}
}

// SetNode adds or changes a node.
func (l *Ledger) SetNode(name string, allocatable scheduler.Amounts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node(name).allocatable = allocatable
}

// DeleteNode removes a node. Its pods count until they are deleted, if the node comes back.
func (l *Ledger) DeleteNode(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node(name).allocatable = nil
	l.tidy(name)
}

// node returns a node, which it adds. The caller holds l.mu, as for all functions below that are
// not exported.
func (l *Ledger) node(name string) *node {
	n := l.nodes[name]
	if n == nil {
		n = &node{pods: map[types.UID]*entry{}, nominated: map[types.UID]*entry{}}
		l.nodes[name] = n
	}
	return n
}

// tidy removes a node of which nothing is known.
func (l *Ledger) tidy(name string) {
	if n := l.nodes[name]; n != nil && n.allocatable == nil && len(n.pods)+len(n.nominated) == 0 {
		delete(l.nodes, name)
	}
}

// SetPod adds or changes a pod that has not ended.
func (l *Ledger) SetPod(p *Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, found := l.uids[p.key()]; found && other != p.UID {
		l.delete(other) // its deletion was not seen
	}
	e := l.pods[p.UID]
	if e == nil {
		e = &entry{}
		l.pods[p.UID], l.uids[p.key()] = e, p.UID
	}
	e.Pod = p
	l.nominate(e)
	if p.Node != "" && p.Node != e.on {
		l.move(e, p.Node)
		e.admitted = time.Time{}
	}
}

// DeletePod removes a pod that has ended or was deleted.
func (l *Ledger) DeletePod(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delete(uid)
}

func (l *Ledger) delete(uid types.UID) {
	e := l.pods[uid]
	if e == nil {
		return
	}
	l.move(e, "")
	l.nominateFor(e, "")
	delete(l.pods, uid)
	if l.uids[e.key()] == uid {
		delete(l.uids, e.key())
	}
}

// move makes a pod count on a node, or nowhere.
func (l *Ledger) move(e *entry, to string) {
	if from := l.nodes[e.on]; from != nil {
		delete(from.pods, e.UID)
		l.tidy(e.on)
	}
	if e.on = to; to != "" {
		l.node(to).pods[e.UID] = e
	}
}

// find returns a pod, or nil. uid may be empty.
func (l *Ledger) find(name types.NamespacedName, uid types.UID) *entry {
	known := l.uids[name]
	if uid != "" && uid != known {
		return nil
	}
	return l.pods[known]
}

// Admit decides whether a pod can be bound to a node, and lets an admitted pod count there unless
// dryRun is set. A pod counts where it was admitted last: its scheduler binds it again after a
// binding has failed.
func (l *Ledger) Admit(name types.NamespacedName, uid types.UID, to string, dryRun bool) (Decision, *Shortage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.find(name, uid)
	switch {
	case e == nil:
		return UnknownPod, nil
	case e.Node != "":
		return Bound, nil
	}
	decision := Admitted
	n := l.nodes[to]
	switch {
	case e.Critical:
		decision = Critical
	case n == nil || n.allocatable == nil:
		decision = UnknownNode
	default:
		l.expire(n)
		if short := n.shortage(e.Pod, n.keptFrom(e.Pod, l.now())); short != nil {
			return Refused, short
		}
	}
	if !dryRun {
		l.move(e, to)
		e.admitted = l.now()
	}
	return decision, nil
}

// expire forgets the bindings to a node that were admitted and have not been seen since.
func (l *Ledger) expire(n *node) {
	limit := l.now().Add(-admittedFor)
	for _, e := range n.pods {
		if e.Node == "" && e.admitted.Before(limit) {
			delete(n.pods, e.UID)
			e.on = ""
		}
	}
}

// shortage returns the first resource that the node lacks for a pod, or nil.
func (n *node) shortage(p *Pod, kept []*entry) *Shortage {
	for _, name := range slices.Sorted(maps.Keys(p.Need)) {
		allocatable, has := n.allocatable[name]
		need := p.Need[name]
		if !has || need <= 0 {
			continue
		}
		left := allocatable
		for _, other := range n.pods {
			if other.UID != p.UID {
				left = scheduler.Sum(left, -other.Need[name])
			}
		}
		takes := func(other *Pod) bool { return other.Need[name] > 0 }
		if need > left {
			return &Shortage{Resource: name, Requested: need, Left: max(left, 0), Taker: n.taker(p, takes)}
		}
		for _, other := range kept {
			left = scheduler.Sum(left, -other.Need[name])
		}
		if need > left {
			return &Shortage{Resource: name, Requested: need, Left: max(left, 0), Taker: keeper(kept, takes), Keeps: true}
		}
	}
	for _, wanted := range p.Ports {
		takes := func(other *Pod) bool { return slices.ContainsFunc(other.Ports, wanted.Conflicts) }
		for _, other := range n.pods {
			if other.UID != p.UID && takes(other.Pod) {
				return &Shortage{Resource: hostPort, Requested: int64(wanted.Number), Taker: n.taker(p, takes)}
			}
		}
		if keeps := keeper(kept, takes); keeps != nil {
			return &Shortage{Resource: hostPort, Requested: int64(wanted.Number), Taker: keeps, Keeps: true}
		}
	}
	return nil
}

// taker returns the pod that was admitted last of those that take something from p, or nil.
func (n *node) taker(p *Pod, takes func(*Pod) bool) *Pod {
	var last *entry
	for _, e := range n.pods {
		if e.UID != p.UID && !e.admitted.IsZero() && takes(e.Pod) && (last == nil || e.admitted.After(last.admitted)) {
			last = e
		}
	}
	if last == nil {
		return nil
	}
	return last.Pod
}

// Counts returns the numbers of known nodes and pods, and of admitted pods that were not yet seen
// on their nodes.
func (l *Ledger) Counts() (nodes, pods, admitted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.nodes {
		if n.allocatable != nil {
			nodes++
		}
	}
	limit := l.now().Add(-admittedFor)
	for _, e := range l.pods {
		if e.on != "" && e.Node == "" && !e.admitted.Before(limit) {
			admitted++
		}
	}
	return nodes, len(l.pods), admitted
}
