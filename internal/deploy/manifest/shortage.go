package manifest

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TolerateShortage returns a scheduler's objects with a rollout that does not wait for replicas
// that have no node now: shortage is their number. Without it a rollout replaces one replica at a
// time, and would never replace one while another is unavailable. It changes only Deployments on
// the host network, where each replica needs its own node.
func TolerateShortage(objects []*unstructured.Unstructured, shortage int) ([]*unstructured.Unstructured, error) {
	changed := slices.Clone(objects)
	for i, o := range changed {
		if onHost, _, _ := unstructured.NestedBool(o.Object, "spec", "template", "spec",
			"hostNetwork"); o.GetKind() != "Deployment" || !onHost {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
			return nil, fmt.Errorf("read Deployment %s: %w", o.GetName(), err)
		}
		if d.Spec.Replicas == nil {
			continue
		}
		changed[i] = o.DeepCopy()
		unavailable := min(int64(*d.Spec.Replicas), 1+int64(shortage))
		if err := unstructured.SetNestedField(changed[i].Object, unavailable, "spec", "strategy", "rollingUpdate",
			"maxUnavailable"); err != nil {
			return nil, fmt.Errorf("set maxUnavailable of Deployment %s: %w", o.GetName(), err)
		}
	}
	return changed, nil
}
