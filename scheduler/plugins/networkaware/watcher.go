package networkaware

import (
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// watcher keeps values up to date, and logs when the resource becomes readable or unreadable.
type watcher struct {
	settings *settings
	values   *values
	metrics  *metrics
	log      scheduler.Logger

	mu     sync.Mutex
	answer int             // status of the API server's last response; 0: no response
	state  string          // one of the states below
	bad    map[string]bool // invalid objects that were logged
}

// States of a watcher. All but the first two are failures, and values of the label kind of the metric failures.
const (
	stateUnknown     = ""
	stateReadable    = "readable"
	stateMissing     = "missing"
	stateForbidden   = "forbidden"
	stateUnreachable = "unreachable"
)

// informer returns an informer, not started, that updates values. Its reflector retries with a backoff from a
// second to a minute.
func (w *watcher) informer(config *rest.Config) (cache.SharedIndexInformer, error) {
	// A list without changes calls no handler, and in old releases the watch error handler gets an error without
	// a status. The transport sees the status of every response.
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return observer{next: next, answered: w.answered} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", w.settings.name(), err)
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, w.settings.resource, w.settings.Namespace, 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { w.failed(err) }); err != nil {
		return nil, fmt.Errorf("watch %s: %w", w.settings.name(), err)
	}
	// The results differ between releases of client-go. They are not needed: the handler is never removed.
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ //nolint:errcheck
		AddFunc:    w.changed,
		UpdateFunc: func(_, now interface{}) { w.changed(now) },
		DeleteFunc: func(deleted interface{}) {
			w.values.remove(deleted)
			w.metrics.nodes.Set(float64(w.values.count()))
		},
	})
	return informer, nil
}

// observer calls answered with the status of each response, 0 if there is none.
type observer struct {
	next     http.RoundTripper
	answered func(status int)
}

// RoundTrip implements http.RoundTripper.
func (o observer) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	status := 0
	if err == nil {
		status = response.StatusCode
	}
	o.answered(status)
	return response, err
}

// changed updates the value of an object. It logs an invalid object once, until the object becomes valid.
func (w *watcher) changed(object interface{}) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	err := w.values.set(u)
	w.metrics.nodes.Set(float64(w.values.count()))
	key := u.GetNamespace() + "/" + u.GetName()
	w.mu.Lock()
	known := w.bad[key]
	if w.bad == nil {
		w.bad = map[string]bool{}
	}
	if err == nil {
		delete(w.bad, key)
	} else if len(w.bad) < maxInvalid {
		w.bad[key] = true
	}
	known = known || len(w.bad) == maxInvalid
	w.mu.Unlock()
	if err != nil {
		w.metrics.invalid.Inc()
		if !known {
			w.log.Error(err, "NetworkAware cannot parse an object; its node has no value")
		}
	}
}

// maxInvalid limits the number of invalid objects that are remembered.
const maxInvalid = 1000

// failed handles the failure of a list or watch. A closed watch is not a failure.
func (w *watcher) failed(err error) {
	w.mu.Lock()
	answer := w.answer
	w.mu.Unlock()
	var state, message string
	switch answer {
	case http.StatusNotFound:
		state, message = stateMissing, "NetworkAware: the resource does not exist; scoring is skipped until it is created (is the CustomResourceDefinition applied?)"
	case http.StatusForbidden:
		state, message = stateForbidden, "NetworkAware: reading the resource is forbidden; the last values are used (is the plugin's ClusterRole applied?)"
	case http.StatusOK, http.StatusGone:
		return
	default:
		state, message = stateUnreachable, "NetworkAware cannot read the resource; the last values are used"
	}
	w.metrics.up.Set(0)
	w.metrics.failures.WithLabelValues(state).Inc()
	if w.setState(state) != state {
		w.log.Error(err, message, "resource", w.settings.name(), "version", w.settings.Version)
	}
}

// answered handles the status of a response. Failures also reach failed, with an error message.
func (w *watcher) answered(status int) {
	w.mu.Lock()
	w.answer = status
	w.mu.Unlock()
	if status != http.StatusOK {
		return
	}
	w.metrics.up.Set(1)
	if previous := w.setState(stateReadable); previous != stateReadable {
		w.log.Info(0, "NetworkAware reads the resource", "resource", w.settings.name(), "version", w.settings.Version, "was", previous)
	}
}

// setState sets the state and returns the previous one. While the resource does not exist, its values are
// hidden, not removed: when it is created again, the informer does not report objects that are unchanged.
func (w *watcher) setState(state string) (previous string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	previous, w.state = w.state, state
	w.values.hide(state == stateMissing)
	w.metrics.nodes.Set(float64(w.values.count()))
	return previous
}
