package apply

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// ownsOthers are the kinds whose dependents, such as pods, are deleted before them.
var ownsOthers = []string{"Deployment"}

// Delete deletes objs with their dependents, last applied first. It waits until each object is gone
// before it deletes the next; ctx bounds the wait. An object that does not exist is Absent. An
// object without the given scheduler's labels is Skipped. After an error it continues with the
// remaining objects, and joins all errors.
func (c *Client) Delete(ctx context.Context, objs []*unstructured.Unstructured) (ChangeSet, error) {
	sorted := inOrder(objs)
	slices.Reverse(sorted)
	var done ChangeSet
	var errs []error
	for _, obj := range sorted {
		change, err := c.deleteOne(ctx, obj)
		if err != nil {
			errs = append(errs, unwrapDryRun(nameOf(obj), err))
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
	live, err := c.Live(ctx, obj)
	if err != nil {
		return change, err
	}
	if change.Action, change.Note = deletionOf(obj, live); change.Action != Deleted {
		return change, nil
	}
	propagation := metav1.DeletePropagationBackground
	if slices.Contains(ownsOthers, live.GetKind()) {
		propagation = metav1.DeletePropagationForeground
	}
	if err := c.deleteExactly(ctx, live, propagation); err != nil {
		return change, err
	}
	return change, c.waitGone(ctx, live)
}

// deletionOf returns the action for an object that is to be deleted, and a note for the user.
func deletionOf(obj, live *unstructured.Unstructured) (action Action, note string) {
	name := obj.GetLabels()[ownership.LabelInstance]
	switch {
	case live == nil:
		return Absent, ""
	case name == "" || !ownership.Owns(live.GetLabels(), name):
		return Skipped, "not managed by pmk-sched for this scheduler"
	}
	return Deleted, ""
}
