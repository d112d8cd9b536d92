package extender

import (
	"context"
	"encoding/json"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// newNodeCall begins a request about nodes.
func (e *Extender) newNodeCall(ctx context.Context, body []byte) (*call, *nodeArguments, error) {
	a, err := decodeNodeArguments(body, e.limits())
	if err != nil {
		return nil, nil, &requestError{err}
	}
	c, err := e.newCall(ctx, a.pod)
	return c, a, err
}

func (e *Extender) serveFilter(ctx context.Context, body, out []byte) (answer, error) {
	c, a, err := e.newNodeCall(ctx, body)
	if err != nil {
		return answer{}, err
	}
	rejected, err := c.filter(a)
	if err != nil {
		return answer{pod: a.pod}, err
	}
	fit := 0
	for _, why := range rejected {
		if why == nil {
			fit++
		}
	}
	return answer{pod: a.pod, body: appendFilterResult(out, a, rejected), in: len(a.names), out: fit}, nil
}

func (e *Extender) servePrioritize(ctx context.Context, body, out []byte) (answer, error) {
	c, a, err := e.newNodeCall(ctx, body)
	if err != nil {
		return answer{}, err
	}
	scores, err := c.prioritize(a)
	if err != nil {
		return answer{pod: a.pod}, err
	}
	return answer{pod: a.pod, body: appendPriorities(out, a.names, scores), in: len(a.names), out: len(scores)}, nil
}

func (e *Extender) servePreempt(ctx context.Context, body, _ []byte) (answer, error) {
	a, err := decodePreemptArguments(body, e.limits())
	if err != nil {
		return answer{}, &requestError{err}
	}
	c, err := e.newCall(ctx, a.pod)
	if err != nil {
		return answer{}, err
	}
	result, err := c.preempt(a)
	if err != nil {
		return answer{pod: a.pod}, err
	}
	text, err := json.Marshal(result)
	return answer{pod: a.pod, body: text, in: len(a.victims), out: len(result.NodeNameToMetaVictims)}, err
}

func (e *Extender) serveBind(ctx context.Context, body, _ []byte) (answer, error) {
	a, err := decodeBindArguments(body)
	if err != nil {
		return answer{}, &requestError{err}
	}
	if e.binder == nil {
		return answer{}, errNoBinder
	}
	pod, err := e.podToBind(ctx, a)
	if err != nil {
		return answer{}, err
	}
	if err := e.bindPod(ctx, pod, a.Node); err != nil {
		return answer{pod: pod}, err
	}
	text, err := json.Marshal(extenderv1.ExtenderBindingResult{})
	return answer{pod: pod, body: text, in: 1, out: 1}, err
}
