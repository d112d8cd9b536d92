package apply

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// Comparison is the difference between an object in the cluster and the result of [Client.Apply]
// for it.
type Comparison struct {
	// Object is Kind/namespace/name. Action is the action that Apply would take.
	Object string
	Action Action
	// Live is the object and Applied the result of Apply, if Action is Configured or Recreated. Secret
	// data is masked.
	Live, Applied *unstructured.Unstructured
	// Foreign is set if the object exists without pmk-sched's labels.
	Foreign bool
	// Err is the reason for a failed comparison.
	Err error
}

// Compare is like [Client.Plan], for objects that may have been changed in any way: if one object
// cannot be compared, Compare continues with the others. The error is the context's error.
func (c *Client) Compare(ctx context.Context, objs []*unstructured.Unstructured) ([]Comparison, error) {
	var before []step
	var list []Comparison
	for _, wanted := range inOrder(objs) {
		s, err := c.planOne(ctx, wanted, before, ownership.Manager)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		found := Comparison{Object: s.change.Object, Action: s.change.Action, Err: err}
		if err != nil && s.live != nil && checkOwner(wanted, s.live, ownership.Manager) != nil {
			found.Foreign, found.Err = true, nil
		}
		if err == nil {
			before = append(before, s)
			found.Live, found.Applied = s.differing()
		}
		list = append(list, found)
	}
	return list, nil
}

// differing returns the live object, with its managed fields, and the object after the step. It
// returns nil if they do not differ.
func (s step) differing() (live, applied *unstructured.Unstructured) {
	switch {
	case s.change.Action == Configured:
		live, applied = s.current, s.merged
	case s.change.Action == Recreated && !isTerminating(s.live):
		live, applied = s.live.DeepCopy(), s.live.DeepCopy()
		for field, value := range s.wanted.Object {
			if field != "metadata" {
				applied.Object[field] = value
			}
		}
	default:
		return nil, nil
	}
	live.SetManagedFields(s.live.GetManagedFields())
	return live, applied
}

// DeployedNames returns the schedulers and extenders that have a deployed revision, also those
// whose Deployment was deleted: in all namespaces or, without permission to list those, in ns.
func (c *Client) DeployedNames(ctx context.Context, ns string) ([]types.NamespacedName, error) {
	found, err := c.deployedNames(ctx)
	if errors.As(err, new(*kubeapi.ForbiddenError)) {
		return c.deployedNames(ctx, client.InNamespace(ns))
	}
	return found, err
}

func (c *Client) deployedNames(ctx context.Context, opts ...client.ListOption) ([]types.NamespacedName, error) {
	opts = append(opts, client.MatchingLabels{
		ownership.LabelManagedBy: ownership.Manager, labelRevisionStatus: string(Deployed),
	})
	var names []types.NamespacedName
	err := c.eachSecret(ctx, func(secret *metav1.PartialObjectMetadata) {
		name := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Labels[ownership.LabelInstance]}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}, opts...)
	return names, err
}
