package elasticquota

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// elasticQuotas are the ElasticQuotas of sigs.k8s.io/scheduler-plugins. Only their spec is read.
func elasticQuotas() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "elasticquotas"}
}

// watch reads ElasticQuotas until ctx is done, and retries pods when they change.
func (p *ElasticQuota) watch(ctx context.Context) error {
	return customresource.Watch(ctx, p.handle, customresource.Options{
		Plugin: Name, Resource: elasticQuotas(), Missing: "only the quotas of its arguments count",
		Set: func(u *unstructured.Unstructured) error {
			q, err := parse(u)
			if err == nil {
				p.setQuota(ctx, u.GetNamespace(), u.GetName(), q)
			}
			return err
		},
		Delete: func(namespace, name string) { p.setQuota(ctx, namespace, name, nil) },
	})
}

func (p *ElasticQuota) setQuota(ctx context.Context, namespace, name string, q *quota) {
	p.quotas.set(namespace, name, q)
	p.rejected.Retry(ctx, p.handle, Name)
}

// parse reads an ElasticQuota.
func parse(u *unstructured.Unstructured) (*quota, error) {
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
	if err != nil {
		return nil, err
	}
	return newQuota(u.GetNamespace()+"/"+u.GetName(), []string{u.GetNamespace()}, read.Spec.Min, read.Spec.Max)
}
