package extender

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type plainBinder struct{ client kubernetes.Interface }

// Bind implements Binder. With the UID the API server refuses a new pod with the same name.
func (b plainBinder) Bind(ctx context.Context, pod *corev1.Pod, node string) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	return b.client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
}

var errNoBinder = errors.New(
	"the extender runs without a cluster (its kubeconfig is empty), so it cannot bind; leave bindVerb out of the " +
		"scheduler's configuration")

// bindPod binds a pod to its node: Reserve, PreBind, Bind or the binder, PostBind. After a failure
// Unreserve undoes Reserve.
func (e *Extender) bindPod(ctx context.Context, pod *corev1.Pod, node string) error {
	c := &call{Extender: e, ctx: ctx, pod: pod, state: scheduler.NewMapState()}
	e.reserved.begin(pod.UID)
	bound := false
	defer func() {
		// If the binding failed but the cache saw it, only the response was lost.
		if !bound && e.reserved.end(pod.UID) {
			// Unreserve also if the scheduler gave up: that is the most important case.
			c.unreserve(context.WithoutCancel(ctx), node)
		}
	}()
	if err := c.beforeBinding(node); err != nil {
		return err
	}
	if err := c.assign(node); err != nil {
		return fmt.Errorf("bind pod %s/%s to node %s: %w", pod.Namespace, pod.Name, node, err)
	}
	bound = true
	for _, p := range e.policies {
		if p.postBind == nil {
			continue
		}
		// The pod is bound even if PostBind fails; a panic is logged and counted.
		_ = c.guarded(p, func() error {
			p.postBind.PostBind(ctx, c.state, pod, node)
			return nil
		})
	}
	return nil
}

// podToBind returns the pod, from the cache if the cache contains it.
func (e *Extender) podToBind(ctx context.Context, a *extenderv1.ExtenderBindingArgs) (*corev1.Pod, error) {
	named := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.PodNamespace, Name: a.PodName, UID: a.PodUID}}
	if e.cache == nil {
		return named, nil
	}
	pod, err := e.cache.pods.Pods(a.PodNamespace).Get(a.PodName)
	if err != nil || a.PodUID != "" && pod.UID != a.PodUID {
		pod, err = e.client.CoreV1().Pods(a.PodNamespace).Get(ctx, a.PodName, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("pod %s/%s is gone", a.PodNamespace, a.PodName)
	}
	if err != nil {
		return nil, fmt.Errorf("read pod %s/%s: %w", a.PodNamespace, a.PodName, err)
	}
	if a.PodUID != "" && pod.UID != a.PodUID {
		return nil, fmt.Errorf("pod %s/%s was replaced: its UID is %s, not %s", a.PodNamespace, a.PodName, pod.UID, a.PodUID)
	}
	return pod, nil
}

func (c *call) beforeBinding(node string) error {
	for _, p := range c.policies {
		if p.reserve == nil {
			continue
		}
		if err := c.guarded(p, func() error {
			return failure(p, "Reserve", p.reserve.Reserve(c.ctx, c.state, c.pod, node))
		}); err != nil {
			return err
		}
	}
	for _, p := range c.policies {
		if p.preBind == nil {
			continue
		}
		if err := c.guarded(p, func() error {
			return failure(p, "PreBind", p.preBind.PreBind(c.ctx, c.state, c.pod, node))
		}); err != nil {
			return err
		}
	}
	return nil
}

// assign lets the first policy that does not skip the pod bind it, or else the binder.
func (c *call) assign(node string) error {
	for _, p := range c.policies {
		if p.bind == nil {
			continue
		}
		var status *scheduler.Status
		err := c.guarded(p, func() error {
			status = p.bind.Bind(c.ctx, c.state, c.pod, node)
			return nil
		})
		if err != nil || status.Code() != scheduler.CodeSkip {
			return errors.Join(err, failure(p, "Bind", status))
		}
	}
	return c.binder.Bind(c.ctx, c.pod, node)
}

func (c *call) unreserve(ctx context.Context, node string) {
	for i := len(c.policies) - 1; i >= 0; i-- {
		if p := c.policies[i]; p.reserve != nil {
			// A panic is logged and counted; the error reports the failure to bind.
			_ = c.guarded(p, func() error {
				p.reserve.Unreserve(ctx, c.state, c.pod, node)
				return nil
			})
		}
	}
}

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
				e.log.Debug("a policy rejects the node to which a pod was bound",
					zap.String("policy", p.name), zap.Stringer("status", status), zap.String("pod",
						pod.Namespace+"/"+pod.Name), zap.String("node", node))
				return nil
			}
			if p.postBind != nil {
				p.postBind.PostBind(c.ctx, c.state, pod, node)
			}
			return nil
		})
	}
}
