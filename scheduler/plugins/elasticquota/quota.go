package elasticquota

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

type quota struct {
	name       string
	namespaces []string
	// min has every resource of max too.
	min, max amounts
}

func newQuota(name string, namespaces []string, min, max corev1.ResourceList) (*quota, error) {
	q := &quota{name: name, namespaces: namespaces, min: scheduler.NewAmounts(min), max: scheduler.NewAmounts(max)}
	for field, list := range map[string]amounts{"min": q.min, "max": q.max} {
		for resource, amount := range list {
			if amount < 0 {
				return nil, fmt.Errorf("%s: %s is less than 0", field, resource)
			}
		}
	}
	for resource, most := range q.max {
		if q.min[resource] > most {
			return nil, fmt.Errorf("min: %s of %s is more than max, %s", scheduler.FormatAmount(resource, q.min[resource]),
				resource, scheduler.FormatAmount(resource, most))
		}
		q.min[resource] += 0
	}
	if len(q.min) == 0 {
		return nil, fmt.Errorf("min: one of min and max is required")
	}
	return q, nil
}

// beyondMax returns the amounts by which used plus need exceeds max.
func (q *quota) beyondMax(used, need amounts) amounts {
	beyond := amounts{}
	for resource, most := range q.max {
		if excess := scheduler.Sum(used[resource], need[resource]) - most; need[resource] > 0 && excess > 0 {
			beyond[resource] = excess
		}
	}
	return beyond
}

// guarantees reports whether min covers used plus need, of the resources in need. A pod that needs
// no resource of the quota has no guarantee.
func (q *quota) guarantees(used, need amounts) bool {
	concerned := false
	for resource, least := range q.min {
		if need[resource] == 0 {
			continue
		}
		concerned = true
		if scheduler.Sum(used[resource], need[resource]) > least {
			return false
		}
	}
	return concerned
}

// concerns reports whether the quota has a resource of need.
func (q *quota) concerns(need amounts) bool { return haveAny(need, q.min) }

type quotas struct {
	// fixed are the quotas in the arguments.
	fixed map[string]*quota

	// read are the quotas of ElasticQuotas, by namespace and name.
	reading sync.Mutex
	read    map[string]map[string]*quota

	// effective is the combined quota of a namespace's ElasticQuotas. It has its own lock, because a
	// namespace may have thousands.
	mu        sync.RWMutex
	effective map[string]*quota
}

func newQuotas(fixed []*quota) *quotas {
	q := &quotas{fixed: map[string]*quota{}, read: map[string]map[string]*quota{}, effective: map[string]*quota{}}
	for _, one := range fixed {
		for _, namespace := range one.namespaces {
			q.fixed[namespace] = one
		}
	}
	return q
}

// of returns a namespace's quota, nil if it has none.
func (q *quotas) of(namespace string) *quota {
	if found := q.fixed[namespace]; found != nil {
		return found
	}
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.effective[namespace]
}

// together returns the quota for a namespace with several ElasticQuotas, nil with none: the lowest
// amounts in all of them. A user who may create an additional ElasticQuota cannot raise the
// existing limits with it. Nor can he lift them with so many that reading them takes long: then the
// namespace gets no more pods.
func together(namespace string, byName map[string]*quota) *quota {
	var one *quota
	for _, one = range byName {
	}
	if len(byName) < 2 {
		return one
	}
	if len(byName) > mostQuotas {
		return closed(namespace, fmt.Sprintf("more than %d ElasticQuotas", mostQuotas))
	}
	all := &quota{name: namespace + "/*", namespaces: []string{namespace}, min: amounts{}, max: amounts{}}
	for _, one := range byName {
		for resource, most := range one.max {
			if least, found := all.max[resource]; !found || most < least {
				all.max[resource] = most
			}
		}
		for resource := range one.min {
			all.min[resource] = one.min[resource]
		}
	}
	if len(all.min) > mostResources { // min has every resource of max
		return closed(namespace, fmt.Sprintf("more than %d resources", mostResources))
	}
	for resource := range all.min {
		for _, one := range byName {
			if amount := one.min[resource]; amount < all.min[resource] { // 0 if it does not have the resource
				all.min[resource] = amount
			}
		}
	}
	return all
}

// closed returns a quota without room for a pod.
func closed(namespace, why string) *quota {
	nothing := amounts{corev1.ResourcePods: 0}
	name := fmt.Sprintf("%s/* (%s)", namespace, why)
	return &quota{name: name, namespaces: []string{namespace}, min: nothing, max: nothing}
}

func (q *quotas) all() []*quota {
	seen := map[*quota]bool{}
	for _, one := range q.fixed {
		seen[one] = true
	}
	q.mu.RLock()
	for namespace, one := range q.effective {
		if q.fixed[namespace] == nil {
			seen[one] = true
		}
	}
	q.mu.RUnlock()
	list := make([]*quota, 0, len(seen))
	for one := range seen {
		list = append(list, one)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list
}

// set records an ElasticQuota. If value is nil, set removes it.
func (q *quotas) set(namespace, name string, value *quota) {
	q.reading.Lock()
	defer q.reading.Unlock()
	if q.read[namespace] == nil {
		q.read[namespace] = map[string]*quota{}
	}
	if value == nil {
		delete(q.read[namespace], name)
	} else {
		q.read[namespace][name] = value
	}
	effective := together(namespace, q.read[namespace])
	if effective == nil {
		delete(q.read, namespace)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if effective == nil {
		delete(q.effective, namespace)
	} else {
		q.effective[namespace] = effective
	}
}

// elasticQuotas are the ElasticQuotas of sigs.k8s.io/scheduler-plugins. Only their spec is read.
func elasticQuotas() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "elasticquotas"}
}

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
		First:  p.first,
	})
}

func (p *ElasticQuota) setQuota(ctx context.Context, namespace, name string, q *quota) {
	p.quotas.set(namespace, name, q)
	if p.quotas.fixed[namespace] == nil {
		p.rejected.RetryNamespace(ctx, p.handle, Name, namespace)
	}
}

const (
	// mostResources is the maximum number of resources in an ElasticQuota's min and max together, and
	// in all ElasticQuotas of a namespace: every scheduling attempt of the namespace's pods, and every
	// collection of metrics, reads all of them.
	mostResources = 200
	// mostQuotas is the maximum number of ElasticQuotas in a namespace: a change to one reads all of
	// them.
	mostQuotas = 100
)

func parse(u *unstructured.Unstructured) (*quota, error) {
	var read struct {
		Spec struct {
			Min map[corev1.ResourceName]customresource.Quantity `json:"min"`
			Max map[corev1.ResourceName]customresource.Quantity `json:"max"`
		} `json:"spec"`
	}
	text, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		return nil, err
	}
	if n := len(read.Spec.Min) + len(read.Spec.Max); n > mostResources {
		return nil, fmt.Errorf("min and max have %d resources, more than %d", n, mostResources)
	}
	return newQuota(u.GetNamespace()+"/"+u.GetName(), []string{u.GetNamespace()}, listOf(read.Spec.Min),
		listOf(read.Spec.Max))
}

func listOf(amounts map[corev1.ResourceName]customresource.Quantity) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, amount := range amounts {
		list[name] = amount.Quantity
	}
	return list
}

type amounts = scheduler.Amounts

// haveAny reports whether some has an amount of a resource in missing.
func haveAny(some, missing amounts) bool {
	for name := range missing {
		if some[name] > 0 {
			return true
		}
	}
	return false
}

// freeOf returns the free amounts of a node for the resources in need; they may be negative.
func freeOf(node scheduler.NodeInfo, need amounts) amounts {
	allocatable, used := node.Allocatable(), node.Requested()
	free := amounts{}
	for name := range need {
		free[name] = allocatable.Amount(name) - used.Amount(name)
	}
	return free
}
