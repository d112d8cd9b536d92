// Package router is the webhook that makes new pods use a scheduler, for API servers that have no
// policies for it.
package router

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

// Router answers requests for the schedulers that paths name, with the rules that their
// registrations record.
type Router struct {
	registrations listers.MutatingWebhookConfigurationLister
}

// New returns a router that follows the registrations in the cluster until life ends. It returns
// when it knows those that exist, or the error of ctx.
func New(ctx, life context.Context, kube kubernetes.Interface) (*Router, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTweakListOptions(
		func(o *metav1.ListOptions) { o.LabelSelector = ownership.LabelManagedBy + "=" + ownership.Manager }))
	informer := factory.Admissionregistration().V1().MutatingWebhookConfigurations()
	synced := informer.Informer().HasSynced
	factory.Start(life.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return nil, fmt.Errorf("read the registrations of routes: %w", ctx.Err())
	}
	return &Router{informer.Lister()}, nil
}

// Admit answers a request at a path, a slash and the name of a scheduler. It routes the pod or
// leaves it as it is, and never refuses it: a pod that cannot be read is left as it is, with a
// warning in the answer.
func (r *Router) Admit(_ context.Context, path string, request *admissionv1.AdmissionRequest,
) *admissionv1.AdmissionResponse {
	patch, err := r.patch(strings.TrimPrefix(path, "/"), request)
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	if err != nil {
		response.Warnings = []string{"pmk-sched: the pod is not routed: " + err.Error()}
	}
	if patch != nil {
		kind := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = patch, &kind
	}
	return response
}

// patch returns the change to the pod in a request, or nil.
func (r *Router) patch(scheduler string, request *admissionv1.AdmissionRequest) ([]byte, error) {
	if request.Operation != admissionv1.Create || request.SubResource != "" ||
		request.Resource != (metav1.GroupVersionResource{Version: "v1", Resource: "pods"}) {
		return nil, nil
	}
	registration, err := r.registrations.Get(route.Name(scheduler))
	if err != nil {
		return nil, err
	}
	rule, err := ruleOf(registration, scheduler)
	if err != nil {
		return nil, err
	}
	pod, err := decode(request.Object.Raw)
	if err != nil {
		return nil, fmt.Errorf("decode the pod: %w", err)
	}
	if !rule.Routes(request.Namespace, pod) {
		return nil, nil
	}
	return json.Marshal(change(pod, scheduler))
}

// ruleOf returns the rule of a registration, which has to be for the scheduler.
func ruleOf(registration *registrationv1.MutatingWebhookConfiguration, scheduler string) (route.Rule, error) {
	rule, err := route.Decode(registration.Annotations)
	if err == nil && rule.Scheduler != scheduler {
		err = fmt.Errorf("%s is the route of scheduler %s", registration.Name, rule.Scheduler)
	}
	return rule, err
}

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// change names the scheduler in a pod, and in its annotation.
func change(pod metav1.Object, scheduler string) []operation {
	annotation := operation{"add", "/metadata/annotations/" + escape(route.Annotation), scheduler}
	if len(pod.GetAnnotations()) == 0 {
		annotation = operation{"add", "/metadata/annotations", map[string]string{route.Annotation: scheduler}}
	}
	return []operation{{"add", "/spec/schedulerName", scheduler}, annotation}
}

// escape returns a key as an element of a JSON pointer (RFC 6901).
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
