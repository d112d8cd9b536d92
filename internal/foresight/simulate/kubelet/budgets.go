package kubelet

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Budget is a PodDisruptionBudget whose status follows its pods.
type Budget struct {
	Namespace, Name string
	Selector        labels.Selector
	Rule            policyv1.PodDisruptionBudgetSpec
	// Bound counts its pods that had a node in the snapshot, and Health the status that its controller
	// had computed then. Stored is set if the budget has this status.
	Bound  int
	Health Health
	Stored bool
}

// Health is a budget's status: pod numbers.
type Health struct{ Allowed, Healthy, Desired, Expected int }

// NewHealth returns a budget's status for a number of ready pods and the number that its rule
// expects (updatePdbStatus in pkg/controller/disruption/disruption.go).
func NewHealth(rule *policyv1.PodDisruptionBudgetSpec, healthy, expected int) Health {
	return Health{Desired: Desired(rule, expected), Expected: expected}.with(healthy)
}

func (h Health) with(healthy int) Health {
	h.Healthy = max(healthy, 0)
	if h.Allowed = max(healthy-h.Desired, 0); h.Expected <= 0 {
		h.Allowed = 0
	}
	return h
}

// after returns the status with another number of pods that have a node. A pod is ready as soon as
// it has one, except for as many as were not ready in the snapshot. More pods than were expected
// were added.
func (b *Budget) after(bound int) Health {
	switch healthy := b.Health.Healthy + bound - b.Bound; {
	case bound == b.Bound:
		return b.Health
	case bound <= b.Health.Expected:
		return b.Health.with(healthy)
	default:
		return NewHealth(&b.Rule, healthy, bound)
	}
}

// NeedsScale reports whether a rule's number of allowed disruptions depends on the controllers'
// scale (getExpectedPodCount in pkg/controller/disruption/disruption.go).
func NeedsScale(rule *policyv1.PodDisruptionBudgetSpec) bool {
	return rule.MaxUnavailable != nil || rule.MinAvailable != nil && rule.MinAvailable.Type == intstr.String
}

// Desired returns how many of the expected pods a rule keeps ready (getExpectedPodCount in
// pkg/controller/disruption/disruption.go).
func Desired(rule *policyv1.PodDisruptionBudgetSpec, expected int) int {
	scaled := func(value *intstr.IntOrString) int {
		n, _ := intstr.GetScaledValueFromIntOrPercent(value, expected, true) // the API server refuses others
		return n
	}
	switch {
	case rule.MaxUnavailable != nil:
		return max(expected-scaled(rule.MaxUnavailable), 0)
	case rule.MinAvailable != nil:
		return scaled(rule.MinAvailable)
	}
	return 1 // by default
}

// budgets writes the status for PodDisruptionBudgets, as their controller does.
type budgets struct {
	client dynamic.NamespaceableResourceInterface
	// all has the budgets in each namespace, and written the status that was written last.
	all     map[string][]*Budget
	written map[*Budget]Health
	pods    cache.Indexer
}

func newBudgets(client dynamic.Interface, o Options) *budgets {
	b := &budgets{client: client.Resource(o.BudgetResource), all: map[string][]*Budget{}, written: map[*Budget]Health{}}
	for i := range o.Budgets {
		budget := &o.Budgets[i]
		b.all[budget.Namespace] = append(b.all[budget.Namespace], budget)
		if budget.Stored {
			b.written[budget] = budget.Health
		}
	}
	return b
}

// budgetChanged enqueues the budgets for a pod that gets a node, or is deleted from it.
func (a *Actors) budgetChanged(o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if m, ok := o.(*metav1.PartialObjectMetadata); ok && a.budgets != nil && a.budgets.all[m.Namespace] != nil {
		a.queue.Add(task{what: taskBudget, namespace: m.Namespace})
	}
}

// update writes the status for the budgets in a namespace.
func (b *budgets) update(ctx context.Context, namespace string) error {
	pods, err := b.pods.ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return err
	}
	for _, budget := range b.all[namespace] {
		bound := 0
		for _, o := range pods {
			m, ok := o.(*metav1.PartialObjectMetadata)
			if ok && m.DeletionTimestamp == nil && budget.Selector.Matches(labels.Set(m.Labels)) {
				bound++
			}
		}
		health := budget.after(bound)
		if last, ok := b.written[budget]; ok && last == health {
			continue
		}
		patch := fmt.Appendf(nil,
			`{"status":{"disruptionsAllowed":%d,"currentHealthy":%d,"desiredHealthy":%d,"expectedPods":%d}}`,
			health.Allowed, health.Healthy, health.Desired, health.Expected)
		_, err := b.client.Namespace(namespace).Patch(ctx, budget.Name, types.MergePatchType, patch, metav1.PatchOptions{},
			"status")
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		b.written[budget] = health
	}
	return nil
}
