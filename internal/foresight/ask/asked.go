package ask

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// decisionTime is the time without progress after which a pod is undecided.
const decisionTime = 15 * time.Second

// asked is a question while the scheduler works on it. The view's mutex protects the fields.
type asked struct {
	pods  []*askedPod
	byKey map[string]*askedPod
	// claims are the ResourceClaims of the question, by namespace and name.
	claims map[string]object
	// devices are the claims that have a device, by driver, pool and name.
	devices map[string]string
	// evicted are the pods that the scheduler deletes, by UID.
	evicted map[string]*evictedPod
	// changed has an element when something has changed since it was read last.
	changed chan struct{}
	// order counts the decisions.
	order int
	// ending is set when the pods are being removed again. disturbed is the reason why the scheduler's
	// decisions do not count.
	ending    bool
	disturbed string
}

// askedPod is a pod of a question.
type askedPod struct {
	key, namespace, name, uid string
	fields                    object
	// updates is the number of updates because of which the scheduler tries the pod again.
	updates int
	// owns is set if objects of the question name the pod's UID as their owner.
	owns bool
	// node is the scheduler's choice. Otherwise reason is its reason, and nominated the node that it
	// makes room on.
	node, reason, nominated string
	// refused is set if there is no node for the pod, failed if the scheduler had an error. order is
	// the place of the decision among the others.
	refused, failed bool
	order           int
	// skipped is set for a pod that the scheduler never gets.
	skipped bool
	// held is set while the scheduler waits for the answer to its binding. release ends that, and
	// forgotten is set when the scheduler has reported that the binding failed.
	held, forgotten bool
	release         chan struct{}
}

// evictedPod is a pod that the scheduler believes to be deleted.
type evictedPod struct {
	namespace, name, node string
	// fields is the newest state of the pod. gone is set if the cluster has deleted it.
	fields object
	gone   bool
}

func newAsked(pods []*askedPod) *asked {
	q := &asked{pods: pods, byKey: map[string]*askedPod{}, claims: map[string]object{}, devices: map[string]string{},
		evicted: map[string]*evictedPod{}, changed: make(chan struct{}, 1)}
	for _, p := range pods {
		q.byKey[p.key] = p
	}
	return q
}

func newAskedPod(fields object) *askedPod {
	metadata := child(fields, "metadata")
	p := &askedPod{namespace: text(metadata, "namespace"), name: text(metadata, "name"), fields: fields}
	p.key = p.namespace + "/" + p.name
	p.renew()
	return p
}

// renew gives the pod a new UID, with which the scheduler sees it as another pod, unless objects
// name the UID.
func (p *askedPod) renew() {
	p.fields = maps.Clone(p.fields)
	if !p.owns {
		p.uid = string(uuid.NewUUID())
		metadata := maps.Clone(child(p.fields, "metadata"))
		metadata["uid"] = p.uid
		p.fields["metadata"] = metadata
	}
	p.fields["kind"] = "Pod"
	p.node, p.reason, p.nominated, p.refused, p.failed, p.updates = "", "", "", false, false, 0
	p.setStatus("")
	p.held, p.forgotten, p.release = false, false, make(chan struct{})
}

// setStatus sets the status of a pod that waits, with the node that it is nominated for.
func (p *askedPod) setStatus(nominated string) {
	status := object{"phase": "Pending"}
	if claims := child(p.fields, "status")["resourceClaimStatuses"]; claims != nil {
		status["resourceClaimStatuses"] = claims
	}
	if nominated != "" {
		status["nominatedNodeName"] = nominated
	}
	p.fields["status"] = status
}

// decided reports whether the scheduler has decided about the pod. It tries a pod for which it has
// nominated a node again.
func (p *askedPod) decided() bool {
	return p.skipped || p.node != "" || p.failed || p.refused && p.nominated == ""
}

// find returns the question's pod that the scheduler means, or nil.
func (q *asked) find(namespace, name, uid string) *askedPod {
	if q == nil {
		return nil
	}
	p := q.byKey[namespace+"/"+name]
	if p == nil || uid != "" && uid != p.uid {
		return nil
	}
	return p
}

// note notes that something has changed.
func (q *asked) note() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// hides reports whether the scheduler does not see an event of the cluster, because the question
// has changed the pod.
func (q *asked) hides(kind, uid string, fields object) bool {
	if e := q.evicted[uid]; e != nil {
		e.fields, e.gone = fields, kind == "DELETED"
		return true
	}
	metadata := child(fields, "metadata")
	if key := text(metadata, "namespace") + "/" + text(metadata, "name"); q.byKey[key] != nil {
		q.disturbed = "the cluster has a new pod " + key
		q.note()
		return true
	}
	return false
}

// await waits until done returns true. It returns false if nothing has changed for a time.
func (v *view) await(ctx context.Context, q *asked, limit time.Duration, done func() bool) (bool, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		v.mu.Lock()
		met := done()
		v.mu.Unlock()
		if met {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-timer.C:
			return false, nil
		case <-q.changed:
			timer.Reset(limit)
		}
	}
}

// again returns the pods that the scheduler refused before it bound or evicted another one: like
// in a cluster, they are tried again. v is locked.
func (q *asked) again() []*askedPod {
	last := 0
	for _, p := range q.pods {
		if p.node != "" {
			last = max(last, p.order)
		}
	}
	return slices.DeleteFunc(slices.Clone(q.pods), func(p *askedPod) bool {
		return p.skipped || p.node != "" || !p.refused || p.order > last
	})
}
