package extender

import (
	"context"
	"sync"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// reservations are the pods that the verb bind is taking to a node: policies have been told of them when the cache sees them there.
type reservations struct {
	mu   sync.Mutex
	pods map[types.UID]bool
}

func (r *reservations) begin(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[uid] = true
}

// end forgets a pod, and tells whether it was there.
func (r *reservations) end(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := r.pods[uid]
	delete(r.pods, uid)
	return had
}

// noteBound tells policies that keep account of promises that a pod got onto a node. A scheduler would have told them when it
// chose the node; an extender learns of it when the pod is bound, and learns of the other replicas' and schedulers' pods, too.
func (e *Extender) noteBound(ctx context.Context, pod *corev1.Pod, node string) {
	if e.reserved.end(pod.UID) {
		return
	}
	c := &call{Extender: e, ctx: ctx, pod: pod, state: newState()}
	for _, p := range e.policies {
		if p.reserve == nil {
			continue
		}
		// A panic is logged and counted; the pod is where it is.
		_ = c.guarded(p, func() error {
			if status := p.reserve.Reserve(c.ctx, c.state, pod, node); !status.IsSuccess() {
				e.log.Debug("a policy would not have had a pod where it is", zap.String("policy", p.name), zap.Stringer("status", status),
					zap.String("pod", pod.Namespace+"/"+pod.Name), zap.String("node", node))
				return nil
			}
			if p.postBind != nil {
				p.postBind.PostBind(c.ctx, c.state, pod, node)
			}
			return nil
		})
	}
}
