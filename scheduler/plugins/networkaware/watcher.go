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

// watcher keeps values up to date, and says when the resource comes and goes.
type watcher struct {
	settings *settings
	values   *values
	metrics  *metrics
	log      scheduler.Logger

	mu     sync.Mutex
	answer int             // status of the API server's last answer; 0: there was none
	state  string          // stateUnknown, stateReadable, or why not
	bad    map[string]bool // objects that were complained about
}

// States of a watcher; all but the first two are troubles, and values of the label kind of the metric of failures.
const (
	stateUnknown     = ""
	stateReadable    = "readable"
	stateMissing     = "missing"
	stateForbidden   = "forbidden"
	stateUnreachable = "unreachable"
)

// informer makes an informer, not running, that feeds values. Its reflector tries again by itself, at first after a second, later every minute at most.
func (w *watcher) informer(config *rest.Config) (cache.SharedIndexInformer, error) {
	// A list without changes calls no handler, and the error that the handler of errors gets is mere text in old ones:
	// what the API server said is seen where its answers come in.
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return observer{next: next, answered: w.answered} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", w.settings.name(), err)
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, w.settings.resource, w.settings.Namespace, 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { w.failed(err) }); err != nil {
		return nil, fmt.Errorf("watch %s: %w", w.settings.name(), err)
	}
	// What this returns differs between releases of client-go, and none of it matters: the handler stays for good.
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ //nolint:errcheck
		AddFunc:    w.took,
		UpdateFunc: func(_, now interface{}) { w.took(now) },
		DeleteFunc: func(deleted interface{}) {
			w.values.remove(deleted)
			w.metrics.nodes.Set(float64(w.values.count()))
		},
	})
	return informer, nil
}

// observer tells of the status of answers, 0 when there was none.
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

// took takes an object over. The first time that one cannot be read it is logged, then no more until it could.
func (w *watcher) took(changed interface{}) {
	u, ok := changed.(*unstructured.Unstructured)
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
	} else if len(w.bad) < maxComplaints {
		w.bad[key] = true
	}
	known = known || len(w.bad) == maxComplaints
	w.mu.Unlock()
	if err != nil {
		w.metrics.invalid.Inc()
		if !known {
			w.log.Error(err, "NetworkAware cannot use an object; its node counts as one without a value")
		}
	}
}

// maxComplaints bounds what is kept about objects that cannot be read.
const maxComplaints = 1000

// failed is told when listing or watching failed. A watch that was merely closed is no failure.
func (w *watcher) failed(err error) {
	w.mu.Lock()
	answer := w.answer
	w.mu.Unlock()
	var state, message string
	switch answer {
	case http.StatusNotFound:
		state, message = stateMissing, "NetworkAware finds no such resource in the cluster; nodes are neutral until it appears (is the CustomResourceDefinition applied?)"
	case http.StatusForbidden:
		state, message = stateForbidden, "NetworkAware may not read the resource; what it knows of nodes stays (is the plugin's ClusterRole applied?)"
	case http.StatusOK, http.StatusGone:
		return
	default:
		state, message = stateUnreachable, "NetworkAware cannot read the resource; what it knows of nodes stays"
	}
	w.metrics.up.Set(0)
	w.metrics.failures.WithLabelValues(state).Inc()
	if w.become(state) != state {
		w.log.Error(err, message, "resource", w.settings.name(), "version", w.settings.Version)
	}
}

// answered is told of every answer of the API server. What is not good comes to failed as well, with an error that people can read.
func (w *watcher) answered(status int) {
	w.mu.Lock()
	w.answer = status
	w.mu.Unlock()
	if status != http.StatusOK {
		return
	}
	w.metrics.up.Set(1)
	if was := w.become(stateReadable); was != stateReadable {
		w.log.Info(0, "NetworkAware reads the resource", "resource", w.settings.name(), "version", w.settings.Version, "was", was)
	}
}

// become takes on a state and returns the one before. Values of a resource that does not exist are hidden, not
// forgotten: the informer tells nothing new of objects that are the same when the resource is back.
func (w *watcher) become(state string) (was string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, w.state = w.state, state
	w.values.hide(state == stateMissing)
	w.metrics.nodes.Set(float64(w.values.count()))
	return was
}
