package customresource

import (
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// maxInvalid limits the number of invalid objects that are remembered.
const maxInvalid = 1000

// reader calls its options' functions for informer events.
type reader struct {
	Options
	log   scheduler.Logger
	name  string // of the resource as kubectl writes it: plural.group
	store cache.Store

	mu     sync.Mutex // held during the calls
	status int        // of the API server's last response, or 0 without a response
	state  State
	// hidden is set from Missing to Readable. The informer keeps its objects meanwhile: it does not
	// report unchanged objects again when the resource is back.
	hidden  bool
	invalid map[string]bool // objects that were logged
}

// set handles an object that the informer reported as added or changed.
func (r *reader) set(object interface{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u, ok := object.(*unstructured.Unstructured); ok && !r.hidden {
		r.pass(u)
	}
}

// pass passes an object on, and logs an invalid one once, until it becomes valid.
func (r *reader) pass(u *unstructured.Unstructured) {
	err, key := r.Set(u), keyOf(u.GetNamespace(), u.GetName())
	if err == nil {
		delete(r.invalid, key)
		return
	}
	r.Delete(u.GetNamespace(), u.GetName())
	if !r.invalid[key] && len(r.invalid) < maxInvalid {
		r.invalid[key] = true
		r.log.Error(err, r.Plugin+" ignores an object that it cannot read", "resource", r.name, "object", key)
	}
}

func (r *reader) remove(deleted interface{}) {
	u, ok := scheduler.LastState(deleted).(*unstructured.Unstructured)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.invalid, keyOf(u.GetNamespace(), u.GetName()))
	// Not only if it is not hidden: it may have been deleted before that, and only now be reported.
	r.Delete(u.GetNamespace(), u.GetName())
}

// answered handles a response's status. Failures also reach failed, with an error message.
func (r *reader) answered(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
	if status != http.StatusOK {
		return
	}
	if r.enter(Readable) {
		r.log.Info(0, r.Plugin+" reads the resource", "resource", r.name, "version", r.Resource.Version)
	}
	if r.hidden {
		r.hidden = false
		r.each(r.pass)
	}
}

// failed handles the failure of a list or watch. A closed watch is not a failure, nor is an expired
// resource version.
func (r *reader) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var message string
	switch r.status {
	case http.StatusOK, http.StatusGone:
	case http.StatusNotFound:
		if r.enter(Missing) {
			r.log.Info(0, r.Plugin+": the resource does not exist (its CustomResourceDefinition is not installed); "+r.Missing,
				"resource", r.name, "version", r.Resource.Version)
		}
		if !r.hidden {
			r.hidden = true
			r.each(func(u *unstructured.Unstructured) { r.Delete(u.GetNamespace(), u.GetName()) })
		}
		r.First.finish()
	case http.StatusForbidden:
		r.First.finish()
		if r.enter(Forbidden) {
			message = ": reading the resource is forbidden; the last objects are used (is the plugin's ClusterRole applied?)"
		}
	default:
		if r.enter(Unreachable) {
			message = " cannot read the resource; the last objects are used"
		}
	}
	if message != "" {
		r.log.Error(err, r.Plugin+message, "resource", r.name, "version", r.Resource.Version)
	}
}

// enter sets the state and reports whether it is a new one.
func (r *reader) enter(state State) bool {
	if r.Observe != nil {
		r.Observe(state)
	}
	changed := r.state != state
	r.state = state
	return changed
}

// synced passes the first objects on.
func (r *reader) synced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.hidden {
		r.each(r.pass)
	}
	r.First.finish()
}

func (r *reader) each(do func(*unstructured.Unstructured)) {
	for _, object := range r.store.List() {
		if u, ok := object.(*unstructured.Unstructured); ok {
			do(u)
		}
	}
}
