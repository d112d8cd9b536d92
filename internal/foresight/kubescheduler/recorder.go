package kubescheduler

import (
	"context"
	"slices"
	"sync"
)

// RecorderVerb is the recorders' verb in a configuration.
const RecorderVerb = "filter"

// RecorderRefusal is the reason with which a recorder refuses nodes.
const RecorderRefusal = "recorded by pmk-sched"

// Recorder is an extender that records which nodes a scheduler has left at several places in a
// scheduling cycle. It leaves them as they are, or refuses all, so that nothing is scheduled. Close
// it.
type Recorder struct {
	service *service

	mu sync.Mutex
	// passed are the nodes in the first call, by the pod's scheduler name and by stage.
	passed map[string]map[int][]string
	held   map[string]hold
	refuse func(schedulerName string) bool
}

// hold makes calls wait.
type hold struct{ called, released chan struct{} }

// StartRecorder starts a recorder. It refuses all nodes to pods for whose scheduler name refuse
// returns true.
func StartRecorder(refuse func(schedulerName string) bool) (*Recorder, error) {
	r := &Recorder{passed: map[string]map[int][]string{}, held: map[string]hold{}, refuse: refuse}
	service, err := startService(RecorderVerb, r.filter)
	if err != nil {
		return nil, err
	}
	r.service = service
	return r, nil
}

// URL returns the address for a stage's recorder, without the verb.
func (r *Recorder) URL(stage int) string { return r.service.URL(stage) }

// Host returns the address for all stages.
func (r *Recorder) Host() string { return r.service.Host() }

// Passed returns the nodes that the first call for a scheduler name and a stage had. ok is false if
// there was none.
func (r *Recorder) Passed(schedulerName string, stage int) (nodes []string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	nodes, ok = r.passed[schedulerName][stage]
	return nodes, ok
}

// Hold makes the next call for a scheduler name wait until release is called. called is closed when
// the call arrives. A scheduler looks at no other pod in the meantime.
func (r *Recorder) Hold(schedulerName string) (called <-chan struct{}, release func()) {
	h := hold{called: make(chan struct{}), released: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[schedulerName] = h
	return h.called, sync.OnceFunc(func() { close(h.released) })
}

// wait waits if a call is to be held.
func (r *Recorder) wait(ctx context.Context, schedulerName string) {
	r.mu.Lock()
	h, ok := r.held[schedulerName]
	delete(r.held, schedulerName)
	r.mu.Unlock()
	if !ok {
		return
	}
	close(h.called)
	select {
	case <-h.released:
	case <-ctx.Done():
	}
}

// Close stops the service and returns when it has ended.
func (r *Recorder) Close(ctx context.Context) error { return r.service.Close(ctx) }

// filterResult is ExtenderFilterResult.
type filterResult struct {
	NodeNames   []string
	FailedNodes map[string]string
}

func (r *Recorder) filter(ctx context.Context, stage int, args *arguments) any {
	name := args.Pod.Spec.SchedulerName
	r.record(name, stage, args.NodeNames)
	r.wait(ctx, name)
	answer := filterResult{NodeNames: args.NodeNames}
	if r.refuse(name) {
		answer = filterResult{NodeNames: []string{}, FailedNodes: map[string]string{}}
		for _, node := range args.NodeNames {
			answer.FailedNodes[node] = RecorderRefusal
		}
	}
	return answer
}

func (r *Recorder) record(schedulerName string, stage int, nodes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.passed[schedulerName] == nil {
		r.passed[schedulerName] = map[int][]string{}
	}
	if _, again := r.passed[schedulerName][stage]; !again {
		r.passed[schedulerName][stage] = slices.Clone(nodes)
	}
}
