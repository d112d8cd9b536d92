package extender

import (
	"context"
	"sync"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// reservations are the pods that the verb bind is binding: when the cache sees their binding, the
// policies already know of it.
type reservations struct {
	mu   sync.Mutex
	pods map[types.UID]bool
}

func (r *reservations) begin(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[uid] = true
}

// end removes a pod, and reports whether it was there.
func (r *reservations) end(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := r.pods[uid]
	delete(r.pods, uid)
	return had
}

// noteBound calls Reserve of the policies for a pod that was bound to a node. A scheduler calls it
// when it chooses the node; an extender learns of it when the pod is bound, also by other replicas
// and schedulers.
func (e *Extender) noteBound(ctx context.Context, pod *corev1.Pod, node string) {
	if e.reserved.end(pod.UID) {
		return
	}
	c := &call{Extender: e, ctx: ctx, pod: pod, state: scheduler.NewMapState()}
	for _, p := range e.policies {
		if p.reserve == nil {
			continue
		}
		// A panic is logged and counted; the pod is bound anyway.
		_ = c.guarded(p, func() error {
			if status := p.reserve.Reserve(c.ctx, c.state, pod, node); !status.IsSuccess() {
				e.log.Debug("a policy rejects the node to which a pod was bound", zap.String("policy", p.name), zap.Stringer("status", status),
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
