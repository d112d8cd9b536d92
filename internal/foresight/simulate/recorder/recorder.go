// Package recorder is a scheduler extender that records which nodes a scheduler has left at several
// places of a scheduling cycle. It leaves them as they are, or refuses all of them, so that nothing
// is scheduled.
package recorder

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Verb is the verb of the recorders in a configuration.
const Verb = "filter"

// Refusal is the reason with which a recorder refuses nodes.
const Refusal = "recorded by pmk-sched"

// most bounds a request: the names of very many nodes, and a pod.
const most = 64 << 20

// Recorder is a running service on loopback. Close it.
type Recorder struct {
	server *http.Server
	url    string
	done   chan error

	mu sync.Mutex
	// passed are the nodes of the first call, by scheduler name of the pod and by stage.
	passed map[string]map[int][]string
	held   map[string]hold
	refuse func(schedulerName string) bool
}

// hold makes calls wait.
type hold struct{ called, released chan struct{} }

// Start starts a recorder. It refuses all nodes to pods whose scheduler name refuse returns true
// for.
func Start(refuse func(schedulerName string) bool) (*Recorder, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the scheduler: %w", err)
	}
	path := "/" + rand.Text() // other users of the machine do not know it
	r := &Recorder{
		url: "http://" + listener.Addr().String() + path, done: make(chan error,
			1), passed: map[string]map[int][]string{}, held: map[string]hold{}, refuse: refuse,
	}
	r.server = &http.Server{Handler: r.handler(path), ReadHeaderTimeout: 10 * time.Second}
	go func() { r.done <- r.server.Serve(listener) }()
	return r, nil
}

// URL returns the address of the recorder of a stage, without the verb.
func (r *Recorder) URL(stage int) string { return r.url + "/" + strconv.Itoa(stage) }

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
func (r *Recorder) Close(ctx context.Context) error {
	err := r.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, r.server.Close())
	}
	if served := <-r.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func (r *Recorder) handler(path string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+path+"/{stage}/"+Verb, r.filter)
	return mux
}

// arguments are the fields of k8s.io/kube-scheduler/extender/v1, ExtenderArgs, that a recorder
// reads.
type arguments struct {
	Pod struct {
		Spec struct {
			SchedulerName string
		}
	}
	NodeNames []string
}

// result is ExtenderFilterResult.
type result struct {
	NodeNames   []string
	FailedNodes map[string]string
}

func (r *Recorder) filter(w http.ResponseWriter, request *http.Request) {
	stage, err := strconv.Atoi(request.PathValue("stage"))
	var args arguments
	if err == nil {
		err = json.NewDecoder(http.MaxBytesReader(w, request.Body, most)).Decode(&args)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name := args.Pod.Spec.SchedulerName
	r.record(name, stage, args.NodeNames)
	r.wait(request.Context(), name)
	answer := result{NodeNames: args.NodeNames}
	if r.refuse(name) {
		answer = result{NodeNames: []string{}, FailedNodes: map[string]string{}}
		for _, node := range args.NodeNames {
			answer.FailedNodes[node] = Refusal
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the scheduler reports a lost answer
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
