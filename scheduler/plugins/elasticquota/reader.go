package elasticquota

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// elasticQuotas are the ElasticQuotas of sigs.k8s.io/scheduler-plugins. Only their spec is read.
func elasticQuotas() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "elasticquotas"}
}

// reader reads ElasticQuotas.
type reader struct {
	log     scheduler.Logger
	quotas  *quotas
	changed func()

	mu     sync.Mutex
	status int // of the API server's last response; 0: none
	logged int // the status of the failure that was logged last
}

func newReader(log scheduler.Logger, q *quotas, changed func()) *reader {
	return &reader{log: log, quotas: q, changed: changed}
}

// watch reads ElasticQuotas until ctx is done. If their CustomResourceDefinition is not installed, the API server is asked again with a backoff of up
// to a minute. New does not wait for the informer, because the resource may never exist.
func (r *reader) watch(ctx context.Context, config *rest.Config) error {
	// In old releases the watch error handler gets an error without a status. The transport sees the status of every response.
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return observer{next: next, answered: r.answered} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client for ElasticQuotas: %w", err)
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, elasticQuotas(), "", 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { r.failed(err) }); err != nil {
		return fmt.Errorf("watch ElasticQuotas: %w", err)
	}
	// The results differ between releases of client-go. They are not needed: the handler is never removed.
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ //nolint:errcheck
		AddFunc:    r.set,
		UpdateFunc: func(_, now interface{}) { r.set(now) },
		DeleteFunc: r.remove,
	})
	go informer.Run(ctx.Done())
	return nil
}

// set reads an ElasticQuota. One that cannot be read counts as deleted.
func (r *reader) set(object interface{}) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	var read struct {
		Spec struct {
			Min corev1.ResourceList `json:"min"`
			Max corev1.ResourceList `json:"max"`
		} `json:"spec"`
	}
	text, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	var q *quota
	if err == nil {
		q, err = newQuota(u.GetNamespace()+"/"+u.GetName(), []string{u.GetNamespace()}, read.Spec.Min, read.Spec.Max)
	}
	if err != nil {
		r.log.Error(err, "ElasticQuota ignores an object that it cannot read", "elasticQuota", u.GetNamespace()+"/"+u.GetName())
		q = nil
	}
	r.quotas.set(u.GetNamespace(), u.GetName(), q)
	r.changed()
}

// remove removes an ElasticQuota that the informer reported as deleted.
func (r *reader) remove(deleted interface{}) {
	if unknown, ok := deleted.(cache.DeletedFinalStateUnknown); ok {
		deleted = unknown.Obj
	}
	if u, ok := deleted.(*unstructured.Unstructured); ok {
		r.quotas.set(u.GetNamespace(), u.GetName(), nil)
		r.changed()
	}
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

// answered records the status of a response. After a success the next failure is logged again.
func (r *reader) answered(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
	if status == http.StatusOK {
		r.logged = status
	}
}

// failed logs each kind of failure of a list or watch once. A closed watch and a missing resource are not failures.
func (r *reader) failed(err error) {
	r.mu.Lock()
	status := r.status
	news := r.logged != status
	r.logged = status
	r.mu.Unlock()
	switch {
	case !news || status == http.StatusGone:
	case status == http.StatusNotFound:
		r.log.Info(0, "ElasticQuota finds no ElasticQuotas, because their CustomResourceDefinition is not installed: only those of its arguments count")
	default:
		r.log.Error(err, "ElasticQuota cannot read ElasticQuotas; the last ones are used")
	}
}
