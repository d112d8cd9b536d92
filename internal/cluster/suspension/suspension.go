// Package suspension turns registrations of webhooks and policies off and on again: a suspended one
// matches no object. Its other content stays, so that nothing has to be remembered elsewhere.
package suspension

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Annotation on a registration is the time at which it was suspended, in RFC 3339. It is also the
// label that no object has, which a suspended registration requires.
const Annotation = "pmk-sched.io/suspended"

// Since returns the time at which a registration was suspended, and whether it is. The time is zero
// if it cannot be read.
func Since(o *unstructured.Unstructured) (since time.Time, suspended bool) {
	text, suspended := o.GetAnnotations()[Annotation]
	since, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, suspended
	}
	return since, suspended
}

// Suspend suspends a MutatingWebhookConfiguration or MutatingAdmissionPolicy.
func Suspend(o *unstructured.Unstructured, now time.Time) error {
	if err := change(o, func(list []any) []any { return append(without(list), requirement()) }); err != nil {
		return err
	}
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[Annotation] = now.UTC().Format(time.RFC3339)
	o.SetAnnotations(annotations)
	return nil
}

// Resume ends a suspension.
func Resume(o *unstructured.Unstructured) error {
	annotations := o.GetAnnotations()
	delete(annotations, Annotation)
	o.SetAnnotations(annotations)
	return change(o, without)
}

// Keep suspends wanted if live is suspended, since the same time.
func Keep(wanted, live *unstructured.Unstructured) error {
	since, suspended := Since(live)
	if !suspended {
		return nil
	}
	return Suspend(wanted, since)
}

func requirement() any {
	return map[string]any{"key": Annotation, "operator": string(metav1.LabelSelectorOpExists)}
}

func without(list []any) []any {
	return slices.DeleteFunc(slices.Clone(list), func(r any) bool {
		fields, ok := r.(map[string]any)
		return ok && fields["key"] == Annotation
	})
}

// change replaces the requirements for the labels of objects.
func change(o *unstructured.Unstructured, to func([]any) []any) error {
	if o.GetKind() != "MutatingWebhookConfiguration" {
		return changeIn(o, o.Object, to, "spec", "matchConstraints", "objectSelector", "matchExpressions")
	}
	hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("read %s/%s: %w", o.GetKind(), o.GetName(), err)
	}
	for _, hook := range hooks {
		fields, ok := hook.(map[string]any)
		if !ok {
			return fmt.Errorf("read %s/%s: a webhook is no mapping", o.GetKind(), o.GetName())
		}
		if err := changeIn(o, fields, to, "objectSelector", "matchExpressions"); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(o.Object, hooks, "webhooks")
}

func changeIn(o *unstructured.Unstructured, fields map[string]any, to func([]any) []any, path ...string) error {
	list, _, err := unstructured.NestedSlice(fields, path...)
	if err == nil {
		list = to(list)
		if len(list) == 0 {
			unstructured.RemoveNestedField(fields, path...)
			return nil
		}
		err = unstructured.SetNestedSlice(fields, list, path...)
	}
	if err != nil {
		return fmt.Errorf("change the selector of %s/%s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}
