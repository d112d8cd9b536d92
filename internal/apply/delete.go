package apply

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/ownership"
)

// ownsOthers are the kinds whose own objects (pods, say) must be gone before they are.
var ownsOthers = []string{"Deployment"}

// Delete deletes objs, last applied first, each with everything it owns, and waits until it is gone before it deletes the next; ctx bounds
// the wait. What is not there is Absent. An object that is there without the labels of the scheduler that the given one
// is labelled for is Skipped. An error does not keep the others from being deleted; all errors are joined.
func (c *Client) Delete(ctx context.Context, objs []*unstructured.Unstructured) (ChangeSet, error) {
	sorted := inOrder(objs)
	slices.Reverse(sorted)
	var done ChangeSet
	var errs []error
	for _, obj := range sorted {
		change, err := c.deleteOne(ctx, obj)
		if err != nil {
			errs = append(errs, plain(nameOf(obj), err))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		done = append(done, change)
	}
	return done, errors.Join(errs...)
}

func (c *Client) deleteOne(ctx context.Context, obj *unstructured.Unstructured) (Change, error) {
	change := Change{Object: nameOf(obj)}
	live, err := c.get(ctx, obj)
	if err != nil {
		return change, err
	}
	name := obj.GetLabels()[ownership.LabelInstance]
	switch {
	case live == nil:
		change.Action = Absent
		return change, nil
	case name == "" || !ownership.Owns(live.GetLabels(), name):
		change.Action, change.Note = Skipped, "not made by pmk-sched for this scheduler"
		return change, nil
	}
	propagation := metav1.DeletePropagationBackground
	if slices.Contains(ownsOthers, live.GetKind()) {
		propagation = metav1.DeletePropagationForeground
	}
	if err := c.deleteExactly(ctx, live, propagation); err != nil {
		return change, err
	}
	change.Action = Deleted
	return change, c.waitGone(ctx, live)
}
